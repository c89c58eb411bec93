"""Forks of what code of a node asks a tool for, in the shapes that graphs have where nobody prepared them."""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.func import task
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Send

from agentctl.errors import NotFound, Refused, UsageError
from agentctl.records.runs import ForkReport, RunReport
from tests.catalog import config_of, go
from tests.catalog.case import go_failing
from tests.strangers.graphs import direct_calls
from tests.support.experiments import policy
from tests.support.forking import Source, sqlite_source

WORLD: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> Iterator[None]:
    WORLD.clear()
    yield


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return sqlite_source(tmp_path)


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    calls: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]
    order: str
    status: str
    policy: int


class Seen(TypedDict, total=False):
    calls: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]


@tool
def lookup(order: str) -> str:
    """Looks an order up."""
    WORLD["lookup"] += 1
    if order == "none":
        raise ValueError("no such order")
    return json.dumps({"order": order, "status": "delivered"})


@tool
def stocks(order: str) -> int:
    """Counts what is left; its name is as long as another tool's."""
    WORLD["stocks"] += 1
    return 3


@tool
def days(topic: str) -> dict[str, int]:
    """Tells how many days a policy grants."""
    WORLD["days"] += 1
    return {"days": 30}


def pair(name: str, call_id: str, answer: str, **args: Any) -> list[AnyMessage]:
    call = {"name": name, "args": args, "id": call_id, "type": "tool_call"}
    asked = AIMessage("", id=f"{call_id}:asked", tool_calls=[call])
    return [asked, ToolMessage(answer, name=name, tool_call_id=call_id, id=f"{call_id}:answered")]


def say(state: State) -> State:
    return {"seen": [f"{state.get('order')} {state.get('status')} {state.get('policy')}"]}


def line(saver: Any, **nodes: Any) -> Any:
    builder = StateGraph(State)
    for before, name in zip((START, *nodes), nodes, strict=False):
        builder.add_node(name, nodes[name])
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver)


def only(report: ForkReport) -> RunReport:
    (run,) = report.group.runs
    return run


def seen(source: Source, graph: Any, report: ForkReport) -> list[str]:
    return list(source.state(graph, only(report).thread).values["seen"])


# Calls that no row holds


def silent(saver: Any) -> Any:
    """Two nodes side by side use tools and keep what they make of the results, not the calls."""

    def look(state: State) -> State:
        return {"status": json.loads(lookup.invoke({"order": state["order"]}))["status"]}

    def rule(state: State) -> State:
        return {"policy": days.invoke({"topic": "lost"})["days"]}

    builder = StateGraph(State).add_node("look", look).add_node("rule", rule).add_node("say", say)
    builder.add_edge(START, "look").add_edge(START, "rule").add_edge(["look", "rule"], "say")
    return builder.compile(checkpointer=saver)


def test_a_call_that_no_row_holds_is_answered_wherever_the_step_makes_it(source: Source) -> None:
    source.run(silent, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    WORLD.clear()
    stubs = policy(stubs={"days": {"days": 14}})
    report = source.fork(silent(None), "t@before:look", answer=['lookup={"status": "lost"}'], policy=stubs)
    assert seen(source, silent(None), report) == ["A1 lost 14"]
    assert [(call.name, call.served_by) for call in only(report).tool_calls] == [
        ("lookup", "answered"),
        ("days", "stub"),
    ]
    assert sorted(report.next) == ["look", "rule"]
    assert report.warnings == tuple(f"finished in the source, and run again here: {name}" for name in ("look", "rule"))
    assert [(entry.name, entry.fields) for entry in report.answered] == [("lookup", (("", None, {"status": "lost"}),))]
    assert not WORLD


def test_code_gets_the_plain_value_that_the_tool_would_give(source: Source) -> None:
    """`days` says that it returns a dict, `lookup` that it returns text."""
    source.run(silent, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    given = ['days={"days": 7}', 'lookup={"status": "lost"}']
    report = source.fork(silent(None), "t@before:look", answer=given)
    assert seen(source, silent(None), report) == ["A1 lost 7"]


def test_two_tools_that_leave_no_trace_are_answered_at_once(source: Source) -> None:
    def build(saver: Any) -> Any:
        def look(state: State) -> State:
            return {"status": lookup.invoke({"order": "A1"}), "policy": stocks.invoke({"order": "A1"})}

        return line(saver, look=look, say=say)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    report = source.fork(build(None), "t@before:look", answer=['lookup="lost"', "stocks=0"])
    assert seen(source, build(None), report) == ["A1 lost 0"]


def test_in_a_failed_step_the_unfinished_task_alone_runs_again(source: Source) -> None:
    """One task at a time: `rule` had finished before `work` raised."""

    def build(saver: Any) -> Any:
        builder = StateGraph(State).add_node("rule", lambda state: {"policy": days.invoke({"topic": "lost"})["days"]})
        builder.add_node("work", lambda state: {"status": json.loads(lookup.invoke({"order": "none"}))["status"]})
        builder.add_node("say", say).add_edge(START, "rule").add_edge(START, "work").add_edge(["rule", "work"], "say")
        return builder.compile(checkpointer=saver)

    source.run(build, "t", lambda graph, thread: go_failing(graph, thread, {"order": "A1"}))
    WORLD.clear()
    report = source.fork(build(None), "t@error", answer=['lookup={"status": "lost"}'])
    assert seen(source, build(None), report) == ["A1 lost 30"]
    assert (report.next, only(report).nodes) == (("work",), ("work", "say"))
    assert not WORLD


def test_a_run_that_never_asks_is_no_evidence(source: Source) -> None:
    source.run(silent, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    run = only(source.fork(silent(None), "t@before:say", answer=["lookup=1"]))
    assert (run.status, run.error) == ("not_run", "was never asked for its new result: lookup")


def test_a_field_of_a_result_that_no_row_holds_cannot_be_changed(source: Source) -> None:
    source.run(silent, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    with pytest.raises(UsageError, match="no recorded result") as refused:
        source.fork(silent(None), "t@before:look", patch=['lookup:status="lost"'])
    assert refused.value.hint == "give it a whole one: --answer lookup=JSON"


def test_a_tool_that_only_a_tool_node_has_is_not_looked_for_in_nodes(source: Source) -> None:
    def build(saver: Any) -> Any:
        builder = StateGraph(State).add_node("say", say).add_node("tools", ToolNode([lookup]))
        return builder.add_edge(START, "say").compile(checkpointer=saver)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    with pytest.raises(NotFound, match="no call lookup"):
        source.fork(build(None), "t@before:say", answer=["lookup=1"])


def test_later_steps_get_the_answer_for_the_same_arguments_alone(source: Source) -> None:
    def look(state: State) -> State:
        return {"seen": [json.loads(lookup.invoke({"order": state["order"]}))["status"]], "order": "A1"}

    def again(state: State) -> State:
        found = [json.loads(lookup.invoke({"order": order})) for order in ("A1", "B2")]
        return {"seen": [one["status"] for one in found]}

    def build(saver: Any) -> Any:
        return line(saver, look=look, again=again)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    stubs = policy(stubs={"lookup": '{"status": "stub"}'})
    report = source.fork(build(None), "t@before:look", answer=['lookup={"status": "lost"}'], policy=stubs)
    assert seen(source, build(None), report) == ["lost", "lost", "stub"]


# Calls of a model that a node, not a ToolNode, answers


@pytest.fixture
def loop(source: Source) -> Iterator[Source]:
    """The tutorial's agent, run to its end as `done` and stopped before its own tools node as `waits`."""

    def ask(graph: Any, thread: str, **compiled: Any) -> None:
        graph.copy(update=compiled).invoke(
            {"messages": [HumanMessage("?", id="h")]}, config_of(thread), durability="sync"
        )

    source.run(lambda saver: _saved(saver), "done", ask)
    source.run(lambda saver: _saved(saver), "waits", lambda g, t: ask(g, t, interrupt_before_nodes=["act"]))
    direct_calls.WORLD.clear()
    yield source
    assert not direct_calls.WORLD


def _saved(saver: Any) -> Any:
    return direct_calls.make().copy(update={"checkpointer": saver})


def test_a_result_that_a_node_stored_by_itself_is_edited_in_its_row(loop: Source) -> None:
    graph = direct_calls.make()
    report = loop.fork(graph, "done@call:lookup_order:1", answer=['lookup_order="gone"'], policy=_refunds())
    told = loop.state(graph, only(report).thread).values["messages"]
    assert next(message.content for message in told if message.type == "tool") == "gone"
    assert (report.as_node, report.next) == ("act", ("agent",))


def _refunds() -> Any:
    return policy(stubs={"issue_refund": "refunded", "lookup_order": '{"status": "stub"}'})


def test_a_call_that_waits_for_a_node_is_answered_when_the_node_asks(loop: Source) -> None:
    graph = direct_calls.make()
    report = loop.fork(graph, "waits@call:lookup_order:1", answer=['lookup_order="gone"'], policy=_refunds())
    run = only(report)
    told = [m.content for m in loop.state(graph, run.thread).values["messages"] if m.type == "tool"]
    assert report.next == ("act",)
    assert (run.tool_calls[0].name, run.tool_calls[0].served_by, told[0]) == ("lookup_order", "answered", "gone")
    with pytest.raises(Refused, match="given while act runs"):
        loop.fork(graph, "waits@call:lookup_order:1", run=False, answer=['lookup_order="gone"'])


# Own calls in shapes that the helper does not make


def test_a_call_made_inside_a_task_of_the_functional_api_is_made_again(source: Source) -> None:
    @task
    def looked_up(order: str) -> str:
        WORLD["task"] += 1
        return str(lookup.invoke({"order": order}))

    def look(state: State) -> State:
        found = looked_up(state["order"]).result()
        return {"status": json.loads(found)["status"], "calls": pair("lookup", "look:1", found, order=state["order"])}

    def build(saver: Any) -> Any:
        return line(saver, look=look, say=say)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    WORLD.clear()
    report = source.fork(build(None), "t@call:lookup", patch=['lookup:status="lost"'])
    assert (seen(source, build(None), report), WORLD) == (["A1 lost None"], {"task": 1})


def test_a_node_that_hands_its_whole_conversation_on_is_forked_for_its_new_call_alone(source: Source) -> None:
    def first(state: State) -> State:
        return {"messages": pair("lookup", "one", lookup.invoke({"order": "A1"}), order="A1")}

    def second(state: State) -> State:
        found = lookup.invoke({"order": "B2"})
        return {"messages": [*state["messages"], *pair("lookup", "two", found, order="B2")], "status": found}

    def build(saver: Any) -> Any:
        return line(saver, first=first, second=second, say=say)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"messages": [HumanMessage("?", id="h")]}))
    report = source.fork(build(None), "t@before:second", answer=['lookup="lost"'])
    assert seen(source, build(None), report) == ["None lost None"]
    assert [(entry.id, entry.how) for entry in report.answered] == [("two", "substituted")]


def test_a_whole_subgraph_is_run_again_where_the_checkpoint_around_it_is_named(source: Source) -> None:
    def look(state: State) -> State:
        found = lookup.invoke({"order": state["order"]})
        return {"status": json.loads(found)["status"], "calls": pair("lookup", "look:1", found, order=state["order"])}

    def build(saver: Any) -> Any:
        inner = StateGraph(State).add_node("look", look).add_edge(START, "look").compile()
        return line(saver, sub=inner, say=say)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    WORLD.clear()
    outer = source.fork(build(None), "t@before:sub", patch=['lookup:status="lost"'])
    inner = source.fork(build(None), "t@call:lookup", patch=['lookup:status="lost"'])
    assert (outer.next, inner.next) == (("sub",), ("look",))
    assert [seen(source, build(None), one) for one in (outer, inner)] == [["A1 lost None"]] * 2
    assert not WORLD


def test_a_subgraph_that_keeps_its_state_cannot_be_run_again_by_itself_and_says_so(source: Source) -> None:
    def look(state: State) -> State:
        found = lookup.invoke({"order": state["order"]})
        return {"calls": pair("lookup", "look:1", found, order=state["order"])}

    def build(saver: Any) -> Any:
        inner = StateGraph(State).add_node("look", look).add_edge(START, "look").compile(checkpointer=True)
        return line(saver, sub=inner, say=say)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"order": "A1"}))
    with pytest.raises(Refused, match="keeps its state between calls"):
        source.fork(build(None), "t@before:sub", answer=['lookup="lost"'])


def test_an_own_call_in_a_graph_that_a_tool_runs_is_changed_in_its_namespace(source: Source) -> None:
    """As in a research subagent: the namespace `tools:<task>` belongs to no node that the graph declares."""

    def look(state: State) -> State:
        found = lookup.invoke({"order": state["order"]})
        said = json.loads(found)["status"]
        return {"calls": pair("lookup", "look:1", found, order=state["order"]), "messages": [AIMessage(said, id="sub")]}

    inner = line(None, begin=lambda state: {"seen": ["begin"]}, look=look)

    @tool
    def research(order: str) -> str:
        """Asks a subagent."""
        return str(inner.invoke({"order": order})["messages"][-1].content)

    def model(state: State) -> State:
        if state["messages"][-1].type == "tool":
            return {"messages": [AIMessage(f"it is {state['messages'][-1].content}", id="ai-2")]}
        call = {"name": "research", "args": {"order": "A1"}, "id": "r1", "type": "tool_call"}
        return {"messages": [AIMessage("", id="ai-1", tool_calls=[call])]}

    def build(saver: Any) -> Any:
        builder = StateGraph(State).add_node("model", model).add_node("tools", ToolNode([research]))
        builder.add_edge(START, "model").add_edge("tools", "model")
        builder.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else "__end__")
        return builder.compile(checkpointer=saver)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"messages": [HumanMessage("?", id="h")]}))
    WORLD.clear()
    effects = policy(effects={"research": "state"})
    report = source.fork(build(None), "t@call:lookup", patch=['lookup:status="lost"'], policy=effects)
    run = only(report)
    assert (run.status, run.reply, report.next) == ("done", "it is lost", ("look",))
    assert [(call.name, call.served_by) for call in run.tool_calls] == [("research", "state"), ("lookup", "answered")]
    assert "tools|begin" not in run.nodes
    assert not WORLD


def test_one_of_several_sends_that_run_a_subgraph_is_changed_inside_it(source: Source) -> None:
    def look(state: State) -> State:
        found = lookup.invoke({"order": state["order"]})
        return {"seen": [found], "calls": pair("lookup", "look:1", found, order=state["order"])}

    def build(saver: Any) -> Any:
        inner = StateGraph(State, output_schema=Seen).add_node("look", look).add_edge(START, "look").compile()
        builder = StateGraph(State).add_node("plan", lambda state: {"seen": ["plan"]}).add_node("sub", inner)
        builder.add_edge(START, "plan")
        sends = [Send("sub", {"order": order}) for order in ("A1", "B2")]
        builder.add_conditional_edges("plan", lambda _: sends, ["sub"])
        return builder.compile(checkpointer=saver)

    source.run(build, "t", lambda graph, thread: go(graph, thread, {"order": "?"}))
    WORLD.clear()
    report = source.fork(build(None), "t@call:lookup:2", answer=['lookup="lost"'])
    assert only(report).nodes == ("sub", "sub|look")
    first, *answers = seen(source, build(None), report)
    # Which of two that run side by side calls second is a race.
    kept = [answer for answer in answers if answer != "lost"]
    assert (first, len(answers), len(kept)) == ("plan", 2, 1)
    assert kept[0] in [f'{{"order": "{order}", "status": "delivered"}}' for order in ("A1", "B2")]
    assert not WORLD
