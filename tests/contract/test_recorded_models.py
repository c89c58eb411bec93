"""Recorded model answers: given where the call is the recorded one, and nowhere else."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

from agentctl.errors import Refused
from agentctl.records.runs import RunReport
from tests.catalog import config_of, go
from tests.support.copies import stock_saver
from tests.support.forking import ON_BOTH, Source, sources
from tests.support.recorded import ASKED, Asked, Streamed, forked, models_run, recording_at, replayed
from tests.support.tools import call, calling

WORLD: list[str] = []
ASK = {"messages": [HumanMessage("where is A1?", id="q")]}


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[Any], operator.add]
    policy: str


@tool
def lookup(order: str) -> str:
    """Looks an order up."""
    WORLD.append(order)
    return "delivered"


def _answers(messages: list[Any], options: dict[str, Any]) -> AIMessage:
    """Looks the order up, and says what it was told."""
    if "Judge" in messages[0].text:
        return AIMessage("fine")
    if messages[-1].type == "tool":
        return AIMessage(f"it is {messages[-1].text}")
    return calling(call("lookup", "c1", order="A1")) if options.get("tools") else AIMessage(f"to {messages[0].text}")


MODEL = Asked(script=_answers)
STREAMED = Streamed(script=_answers)


def _line(saver: Any, *nodes: Callable[..., Any], **compiled: Any) -> Any:
    return StateGraph(State).add_sequence(nodes).add_edge(START, nodes[0].__name__).compile(saver, **compiled)


def agent(saver: Any) -> Any:
    model = MODEL.bind_tools([lookup])

    def think(state: State) -> Any:
        return {"messages": [model.invoke([SystemMessage(f"policy {state.get('policy')}"), *state["messages"]])]}

    graph = StateGraph(State)
    graph.add_node("agent", think)
    graph.add_node("tools", ToolNode([lookup]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "agent")
    return graph.compile(saver)


def two_agents(saver: Any) -> Any:
    """A router whose answer becomes a route, and two agents that are told the same messages."""

    def route(state: State) -> Command[Any]:
        chosen = MODEL.invoke([SystemMessage("Route"), *state["messages"]]).text
        return Command(goto=["first", "second"] if chosen else END)

    def says(name: str) -> Any:
        def node(state: State) -> Any:
            return {"notes": [MODEL.invoke([SystemMessage(name), *state["messages"]])]}

        return node

    graph = StateGraph(State).add_node("route", route, destinations=("first", "second"))
    graph.add_node("first", says("first")).add_node("second", says("second")).add_edge(START, "route")
    return graph.compile(saver)


def guarded(saver: Any) -> Any:
    """A node that judges with its model before it answers with it, and stores the answer alone."""

    def agent(state: State) -> Any:
        if MODEL.invoke([SystemMessage("Judge"), *state["messages"]]).text != "fine":
            return {"messages": [AIMessage("No.")]}
        return {"messages": [MODEL.invoke([SystemMessage("Answer"), *state["messages"]])]}

    return _line(saver, agent)


def judged_with_a_schema(saver: Any) -> Any:
    """The same, but what judges must call its one schema."""

    def agent(state: State) -> Any:
        MODEL.bind_tools(["Verdict"], tool_choice="Verdict").invoke([SystemMessage("Judge"), *state["messages"]])
        return {"messages": [MODEL.invoke([SystemMessage("Answer"), *state["messages"]])]}

    return _line(saver, agent)


def signed(saver: Any) -> Any:
    """A node that changes what its model said before it stores it."""

    def agent(state: State) -> Any:
        said = MODEL.invoke(state["messages"])
        return {"messages": [said.model_copy(update={"content": f"{said.text} --bot"})]}

    return _line(saver, agent)


def looked_up_inside(saver: Any) -> Any:
    """A node that calls a tool itself and tells the model what it said."""

    def agent(state: State) -> Any:
        said = lookup.invoke({"order": "A1"})
        return {"messages": [MODEL.invoke([SystemMessage(f"The order is {said}."), *state["messages"]])]}

    return _line(saver, agent)


def looped(saver: Any) -> Any:
    """A node that asks, calls the tool and asks again, and stores all of it at once."""
    model = MODEL.bind_tools([lookup])

    def agent(state: State) -> Any:
        new: list[Any] = [model.invoke(state["messages"])]
        new.append(lookup.invoke({**new[0].tool_calls[0], "type": "tool_call"}))
        new.append(model.invoke([*state["messages"], *new]))
        return {"messages": new}

    return _line(saver, agent)


def side_by_side(saver: Any) -> Any:
    """A node that asks two things at once."""

    def agent(state: State) -> Any:
        return {"messages": MODEL.batch([[SystemMessage(name), *state["messages"]] for name in ("one", "two")])}

    return _line(saver, agent)


def streaming(saver: Any) -> Any:
    """Nodes that take a stream: one hands the sum of its chunks on, one its text."""

    def summed(state: State) -> Any:
        whole: Any = AIMessageChunk("")
        for chunk in STREAMED.stream(state["messages"]):
            whole += chunk
        return {"messages": [whole]}

    def asynchronous(state: State) -> Any:
        async def whole() -> Any:
            chunks = [chunk async for chunk in STREAMED.astream(state["messages"])]
            return AIMessage("".join(chunk.text for chunk in chunks), id=chunks[0].id)

        return {"messages": [asyncio.run(whole())]}

    def batched(state: State) -> Any:
        return {"messages": STREAMED.batch([state["messages"]])}

    return _line(saver, summed, asynchronous, batched)


def spread(saver: Any) -> Any:
    """Two Sends of one node, each told something of its own."""

    def plan(state: State) -> Command[Any]:
        return Command(goto=[Send("write", {"policy": name}) for name in ("red", "blue")])

    def write(state: State) -> Any:
        return {"notes": [MODEL.invoke([HumanMessage(str(state["policy"]))])]}

    graph = StateGraph(State).add_node("plan", plan, destinations=("write",)).add_node("write", write)
    return graph.add_edge(START, "plan").compile(saver)


def approving(saver: Any) -> Any:
    """A node that tells its model what a person answered."""

    def agent(state: State) -> Any:
        answer = interrupt("may I?")
        return {"messages": [MODEL.invoke([SystemMessage(f"The lead says {answer}."), *state["messages"]])]}

    return _line(saver, agent)


def functional(saver: Any) -> Any:
    @task
    def think(messages: list[AnyMessage]) -> AnyMessage:
        return MODEL.bind_tools([lookup]).invoke(messages)

    @task
    def act(call: dict[str, Any]) -> AnyMessage:
        return lookup.invoke({**call, "type": "tool_call"})  # type: ignore[no-any-return]

    @entrypoint(saver)
    def work(state: dict[str, Any]) -> dict[str, Any]:
        messages = list(state["messages"])
        messages.append(think(messages).result())
        messages.append(act(messages[-1].tool_calls[0]).result())
        return {"messages": [*messages, think(messages).result()]}

    return work


def told_as_text(saver: Any) -> Any:
    """An entrypoint that tells its model what a task returned, not as a message."""

    @task
    def find(order: str) -> str:
        return f"{order} is delivered"

    @entrypoint(saver)
    def work(state: dict[str, Any]) -> dict[str, Any]:
        found = find("A1").result()
        return {"messages": [*state["messages"], MODEL.invoke([SystemMessage(found), *state["messages"]])]}

    return work


def past_the_gate(saver: Any) -> Any:
    def agent(state: State) -> Any:
        return {"messages": [MODEL._generate(state["messages"]).generations[0].message]}

    return _line(saver, agent)


GRAPHS = {
    made.__name__: made
    for made in (
        agent,
        two_agents,
        guarded,
        judged_with_a_schema,
        signed,
        looked_up_inside,
        looped,
        side_by_side,
        streaming,
        spread,
        functional,
        told_as_text,
        past_the_gate,
    )
}


def _fill(source: Source) -> None:
    with models_run():
        for name, build in GRAPHS.items():
            source.run(build, name, _ask)
        source.run(approving, "approving", _ask_and_answer)


def _ask(graph: Any, thread: str) -> None:
    go(graph, thread, ASK)


def _ask_and_answer(graph: Any, thread: str) -> None:
    go(graph, thread, ASK)
    go(graph, thread, Command(resume="yes"))


@pytest.fixture(scope="module")
def of_kind(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Source]]:
    with sources(
        _fill, tmp_path_factory.mktemp("recorded"), lambda: str(request.getfixturevalue("postgres_url"))
    ) as of:
        yield of


@pytest.fixture
def source(request: pytest.FixtureRequest, of_kind: Callable[[str], Source]) -> Iterator[Source]:
    found = of_kind(getattr(request, "param", "sqlite"))
    ASKED.clear()
    WORLD.clear()
    yield found
    assert ASKED == [] and WORLD == []


def _state(store: str, thread: str) -> dict[str, Any]:
    with stock_saver(store) as saver:
        build = GRAPHS.get(thread.partition(".")[0], approving)
        values = build(saver).get_state(config_of(thread)).values
    return {name: [_without_new_ids(each) for each in value] for name, value in values.items()}


def _without_new_ids(value: Any) -> Any:
    """A result that the recording gives has an id of its own; all else is as it was."""
    return value.model_copy(update={"id": None}) if getattr(value, "type", "") in ("tool", "human") else value


def _why(run: RunReport) -> str:
    assert run.status == "blocked" and (run.blocked_hint or "").startswith("--model PROVIDER:NAME")
    return run.error or ""


@ON_BOTH
@pytest.mark.parametrize("thread", ["agent", "looped", "streaming", "spread", "functional"])
def test_a_replay_without_a_model_ends_in_the_state_that_was_recorded(source: Source, thread: str) -> None:
    run, report = replayed(source, GRAPHS[thread](None), f"{thread}@root")

    assert run.status == "done", run.error
    assert _state(source.debug, run.thread) == _state(source.prod, thread)
    assert run.usage.model_calls == run.usage.recorded == recording_at(source.prod, f"{thread}@root").n_answers > 0
    assert (run.usage.input_tokens, run.model_ran) == (0, False)
    n = run.usage.recorded
    assert report.plan.model.startswith(f"none, {'1 answer' if n == 1 else f'{n} answers'} recorded in {thread} ")


def test_an_answer_keeps_its_id_its_usage_and_what_the_provider_said(source: Source) -> None:
    run, _ = replayed(source, agent(None), "agent@root")
    answers = [each for each in source.state(agent(None), run.thread).values["messages"] if each.type == "ai"]
    recorded = [each for each in _state(source.prod, "agent")["messages"] if each.type == "ai"]
    assert answers == recorded
    assert all(each.usage_metadata["output_tokens"] == 3 and each.response_metadata for each in answers)


def test_a_fork_that_was_told_something_else_is_blocked_and_named(source: Source) -> None:
    run, _ = forked(source, agent(None), "agent@call:lookup", answer=['lookup="lost"'])
    assert _why(run) == (
        "no recorded answer fits the model call: agent is not where it was recorded: messages[2], the result of lookup,"
        " is not as recorded"
    )


def test_a_fork_that_changes_nothing_is_answered(source: Source) -> None:
    run, _ = forked(source, agent(None), "agent@call:lookup", answer=['lookup="delivered"'])
    assert (run.status, run.reply) == ("done", "it is delivered")


def test_a_value_that_only_the_prompt_shows_counts_too(source: Source) -> None:
    run, _ = forked(source, agent(None), "agent@before:agent:1", assign=['policy="strict"'])
    assert _why(run).endswith("policy is not in the recorded state")


def test_the_memory_of_nodes_is_not_changed_under_recorded_answers(source: Source) -> None:
    with pytest.raises(Refused, match="--memory changes what nodes may put into their prompts"):
        forked(source, agent(None), "agent@before:agent:1", memory=['users/ada={"likes": 1}'])


def test_other_configuration_is_blocked_and_named(source: Source) -> None:
    run, _ = replayed(source, agent(None), "agent@root", configurable={"tone": "curt"})
    assert _why(run).endswith("agent was recorded with configurable tone none, not 'curt'")


def test_a_router_that_kept_no_message_is_blocked_and_its_agents_get_each_their_own(source: Source) -> None:
    run, _ = replayed(source, two_agents(None), "two_agents@root")
    assert "route stored no message of its model; an answer that became a route" in _why(run)
    assert run.blocked_hint == "--model PROVIDER:NAME, or begin after it: two_agents@after:route"

    run, _ = replayed(source, two_agents(None), "two_agents@after:route")
    assert run.status == "done"
    assert [each.text for each in _state(source.debug, run.thread)["notes"]] == ["to first", "to second"]


def test_a_reply_is_never_taken_for_a_judgement(source: Source) -> None:
    run, _ = replayed(source, guarded(None), "guarded@root")
    assert "agent was given a recorded answer and stored another message" in _why(run)

    run, _ = replayed(source, judged_with_a_schema(None), "judged_with_a_schema@root")
    assert "agent asks something else: it must call a tool, and the recorded answer calls none" in _why(run)


def test_an_answer_that_was_changed_before_it_was_stored_is_not_changed_twice(source: Source) -> None:
    run, _ = replayed(source, signed(None), "signed@root")
    assert "agent was given a recorded answer and stored another message" in _why(run)


def test_what_a_node_asked_a_tool_itself_is_in_no_state_and_counts_all_the_same(source: Source) -> None:
    run, _ = forked(source, looked_up_inside(None), "looked_up_inside@before:agent", answer=['lookup="lost"'])
    assert "a tool answered agent otherwise than was recorded" in _why(run)


def test_calls_side_by_side_in_one_node_are_not_told_apart(source: Source) -> None:
    run, _ = replayed(source, side_by_side(None), "side_by_side@root")
    assert "the ai message that agent had by then is not in what it asks" in _why(run)


def test_a_question_that_was_answered_otherwise_is_blocked(source: Source) -> None:
    run, _ = replayed(source, approving(None), "approving@root", answers=("yes",))
    assert (run.status, run.reply) == ("done", "to The lead says yes.")
    run, _ = replayed(source, approving(None), "approving@root", answers=("no",))
    assert _why(run).endswith("its question was answered otherwise")


def test_a_changed_result_of_a_task_is_blocked_whichever_way_the_model_is_told(source: Source) -> None:
    for thread, form in (("functional", 'act="lost"'), ("told_as_text", 'find="A1 is lost"')):
        run, _ = forked(source, GRAPHS[thread](None), f"{thread}@root", answer=[form])
        assert "a result that work" in _why(run) and "was changed" in _why(run), thread


def test_a_model_that_is_called_past_its_methods_is_stopped(source: Source) -> None:
    run, _ = replayed(source, past_the_gate(None), "past_the_gate@root")
    assert "Asked is called past its public methods" in _why(run)


def test_no_cache_is_read_or_filled(source: Source) -> None:
    cache = InMemoryCache()
    set_llm_cache(cache)
    try:
        run, _ = replayed(source, agent(None), "agent@root")
    finally:
        set_llm_cache(None)
    assert (run.status, cache._cache) == ("done", {})


def test_afterwards_models_run_as_ever(source: Source, tmp_path: Path) -> None:
    replayed(source, agent(None), "agent@root")
    with models_run():
        assert MODEL.invoke("hello").text == "to hello"
        assert "".join(chunk.text for chunk in STREAMED.stream("hello")) == "to hello "
        assert asyncio.run(MODEL.ainvoke("hello")).text == "to hello"
    ASKED.clear()
