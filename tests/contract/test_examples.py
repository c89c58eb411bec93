"""Real threads as examples: one a user turn, whole, and able to run again with nothing real called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage, messages_from_dict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from agentctl.codec.jsontext import dumps
from agentctl.datasets.branch import Branch, origin_lineage
from agentctl.datasets.examples import read_examples
from agentctl.datasets.folder import example_object, example_of
from agentctl.datasets.recorded import bad_results, read_sites
from agentctl.errors import NotFound
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import parse_forms
from agentctl.records.datasets import Example
from agentctl.stores.open import open_reader
from agentctl.stores.reading.lineage import read_lineage, read_tree
from tests.catalog import CATALOG, config_of, go, sqlite_case, sqlite_thread
from tests.support.examples import examples_in, examples_of
from tests.support.experiments import about_to_run, experiment_on, policy
from tests.support.tools import World, agent, call, calling

N_TURNS = {
    "two turns": 2,
    "cached": 2,
    "two cached": 2,
    "subgraph persistent": 2,
    "agent two turns": 2,
    "delta": 4,
    "delta interrupted": 2,
    "exit delta": 2,
    "functional twice": 2,
    "research": 2,
}


def ids(messages: object) -> list[str]:
    assert isinstance(messages, list)
    return [entry["data"]["id"] for entry in messages]


def live(example: Example, part: str) -> list[Any]:
    """The messages of one side, after JSON, as LangChain reads them."""
    entries = json.loads(dumps(example_object(example)))[part]["messages"]
    return list(messages_from_dict(entries))


@pytest.mark.parametrize("name", [name for name in CATALOG if name != "empty"])
def test_every_thread_has_one_example_a_user_turn_and_each_survives_json(tmp_path: Path, name: str) -> None:
    examples = examples_of(tmp_path, name)
    assert [example.turn for example in examples] == list(range(1, N_TURNS.get(name, 1) + 1))
    for example in examples:
        once = example_of(json.loads(dumps(example_object(example))))
        assert example_of(json.loads(dumps(example_object(once)))) == once
        assert "?" not in example.steps


def test_a_thread_without_checkpoints_has_none(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        examples_of(tmp_path, "empty")


def test_the_messages_of_the_turns_are_those_of_the_thread_field_by_field(tmp_path: Path) -> None:
    case = CATALOG["agent two turns"]
    with sqlite_case(tmp_path, case) as (path, graph):
        stored = graph.get_state(config_of(case.thread)).values["messages"]
        first, second = examples_in(path, case.thread)
    assert [*live(first, "inputs"), *live(first, "outputs")] == stored[:5]
    assert live(second, "inputs") == stored[:6]
    assert live(second, "outputs") == stored[6:]
    assert (first.n_earlier, second.n_earlier) == (0, 5)
    assert first.outputs["reply"] == stored[4].text


def test_calls_have_their_whole_results_and_those_of_earlier_turns_are_marked(tmp_path: Path) -> None:
    _, second = examples_of(tmp_path, "agent two turns")
    assert [(call.name, call.before) for call in second.tool_calls] == [
        ("lookup_order", True),
        ("get_policy", True),
        ("lookup_order", False),
        ("get_policy", False),
    ]
    for made in second.tool_calls:
        assert made.result is not None
        (message,) = messages_from_dict([dict(made.result)])
        assert isinstance(message, ToolMessage)
        assert (message.name, message.tool_call_id, message.status) == (made.name, made.id, "success")


def test_the_input_is_what_the_graph_was_given(tmp_path: Path) -> None:
    first, second = examples_of(tmp_path, "two turns")
    assert (first.inputs["input"], second.inputs["input"]) == ({"log": ["first"]}, {"log": ["second"]})
    assert second.inputs["state"] == first.outputs["state"]


def test_an_interrupt_adds_no_turn_and_its_answers_are_kept(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "agent approved")
    assert example.answers == ({"decisions": [{"type": "approve"}]},)
    assert example.outputs["reply"] == "Done."


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("interrupt answered", ("yes",)),
        ("interrupt twice answered", ("yes", "no")),
        ("parallel interrupts answered", ("fine", "fine")),
        ("subgraph answered", ("ACME",)),
        ("subgraph nested answered", ("ACME",)),
        ("functional answered", (True,)),
        ("interrupt inside", ()),
    ],
)
def test_answers_come_once_each_in_order(tmp_path: Path, name: str, answers: tuple[object, ...]) -> None:
    (example,) = examples_of(tmp_path, name)
    assert example.answers == answers


def test_the_answers_of_a_turn_are_its_own(tmp_path: Path) -> None:
    assert [example.answers for example in examples_of(tmp_path, "delta interrupted")] == [("yes",), ()]


def test_a_fork_adds_no_turn_and_has_its_own_outcome(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "agent corrected")
    assert example.outputs["reply"] == "Your refund is on its way."
    assert [call.name for call in example.tool_calls] == ["lookup_order", "get_policy", "issue_refund"]
    assert '"lost"' in str(example.tool_calls[0].result)


def test_each_branch_of_a_thread_is_the_same_turn_with_its_own_outcome(tmp_path: Path) -> None:
    case = CATALOG["agent corrected"]
    path = sqlite_thread(tmp_path, case)
    reader = open_reader(str(path))
    tips = read_tree(reader, case.thread).tips
    reader.close()
    seen = [examples_in(path, case.thread, tip)[0] for tip in tips]
    assert len({example.id for example in seen}) == 1
    assert {example.outputs["reply"] for example in seen} == {
        "Your refund is on its way.",
        "No refund is due: your order was delivered.",
    }


def test_inner_steps_have_their_path_and_come_after_the_node_that_ran_them(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "deep agent")
    outer = [step for step in example.steps if "|" not in step]
    assert outer.count("tools") == 3
    inner = [step for step in example.steps if step.startswith("tools|")]
    assert inner == ["tools|PatchToolCallsMiddleware.before_agent", "tools|model", "tools|tools", "tools|model"]
    assert example.steps.index("tools|model") > example.steps.index("tools")


def test_a_subagents_calls_are_marked_and_a_tools_other_writes_are_kept(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "deep agent")
    by_name = {call.name: call for call in example.tool_calls}
    assert {name: call.inside for name, call in by_name.items()} == {
        "write_todos": False,
        "task": False,
        "write_file": False,
        "lookup_order": True,
    }
    todos = by_name["write_todos"]
    assert todos.kind == "command"
    assert dict(todos.writes)["todos"] == [{"content": "look the order up", "status": "in_progress"}]


def test_a_graph_that_ends_at_its_tools_has_their_results_in_the_last_state(tmp_path: Path) -> None:
    world = World()
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [calling(call("lookup_order", "c1", order_id="A1"))]})
    graph.add_node("tools", ToolNode([world.lookup()]))
    graph.add_edge("__start__", "agent").add_edge("agent", "tools")
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        go(graph.compile(checkpointer=saver), "t", {"messages": [HumanMessage("where?")]})
    (example,) = examples_in(path, "t")
    assert [entry["type"] for entry in example.outputs["messages"]] == ["ai", "tool"]  # type: ignore[attr-defined]
    assert example.tool_calls[0].result is not None
    assert example.outputs["reply"] is None


def test_messages_that_a_turn_dropped_again_are_in_it(tmp_path: Path) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("think", lambda state: {"messages": [AIMessage("thinking", id="ai-1")]})
    graph.add_node("tidy", lambda state: {"messages": [RemoveMessage(id="ai-1"), AIMessage("done", id="ai-2")]})
    graph.add_edge("__start__", "think").add_edge("think", "tidy")
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        go(graph.compile(checkpointer=saver), "t", {"messages": [HumanMessage("go", id="h-1")]})
    (example,) = examples_in(path, "t")
    assert ids(example.outputs["messages"]) == ["ai-1", "ai-2"]


def echo(saver: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("echo", lambda state: {"messages": [AIMessage(f"reply {len(state['messages'])}")]})
    graph.add_edge("__start__", "echo")
    return graph.compile(checkpointer=saver)


def test_a_message_sent_again_under_its_id_and_a_resume_add_no_turn(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = echo(saver)
        go(graph, "t", {"messages": [HumanMessage("hi", id="h-1")]})
        go(graph, "t", {"messages": [HumanMessage("hi", id="h-1")]})
        go(graph, "t", Command(update={"messages": []}))
        go(graph, "t", {"messages": [HumanMessage("bye", id="h-2")]})
    first, second = examples_in(path, "t")
    assert ids(first.inputs["messages"]) == ["h-1"]
    assert ids(second.inputs["messages"])[-1] == "h-2"
    assert [entry["type"] for entry in first.outputs["messages"]] == ["ai", "ai"]  # type: ignore[attr-defined]


def test_several_messages_at_once_and_messages_without_ids_are_one_turn(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = echo(saver)
        go(graph, "t", {"messages": [("user", "hi"), ("assistant", "hello"), ("user", "one more thing")]})
        go(graph, "t", {"messages": "and now?"})
    first, second = examples_in(path, "t")
    assert [message.text for message in live(first, "inputs")] == ["hi", "hello", "one more thing"]
    assert [message.text for message in live(first, "outputs")] == ["reply 3"]
    assert (second.n_earlier, live(second, "inputs")[-1].text) == (4, "and now?")
    assert second.inputs["input"] == {"messages": "and now?"}


def test_a_message_that_was_added_by_hand_after_an_answer_is_a_turn(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = echo(saver)
        go(graph, "t", {"messages": [HumanMessage("hi")]})
        graph.update_state(config_of("t"), {"messages": [HumanMessage("by hand", id="h-2")]}, as_node="__start__")
        go(graph, "t", None)
    first, second = examples_in(path, "t")
    assert len(first.outputs["messages"]) == 1  # type: ignore[arg-type]
    assert ids(second.inputs["messages"])[-1] == "h-2"
    assert second.inputs["input"] is None


def test_a_question_replaced_before_anything_ran_is_what_was_asked(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "delta fork")
    assert [message.text for message in live(example, "inputs")] == ["another question"]
    assert example.inputs["input"] is None


def test_recorded_configuration_is_kept_with_that_of_later_runs_of_the_turn(tmp_path: Path) -> None:
    case = CATALOG["interrupt answered"]
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = case.build(saver)
        graph.invoke({"log": ["input"]}, config_of("t", user_id="u-1", prompt="v2"), durability="sync")
        answer = config_of("t", user_id="lead", actor="lead")
        graph.invoke(Command(resume="yes"), answer, durability="sync")
    (example,) = examples_in(path, "t")
    assert example.configurable == {"user_id": "u-1", "prompt": "v2", "actor": "lead"}


def test_a_turn_has_the_same_id_every_time_and_different_turns_different_ones(tmp_path: Path) -> None:
    case = CATALOG["delta"]
    path = sqlite_thread(tmp_path, case)
    first, again = examples_in(path, case.thread), examples_in(path, case.thread)
    assert [one.id for one in first] == [one.id for one in again]
    assert len({one.id for one in first}) == 4


LOST = '{"order_id":"A1","status":"lost","total":120.0}'


def forked(tmp_path: Path, name: str = "agent two turns", visit: int = 1) -> tuple[Path, Path, str]:
    """Forks the last turn of a catalog thread with its look-up corrected; returns source, debug store and thread."""
    case = CATALOG[name]
    source, debug = sqlite_thread(tmp_path, case), tmp_path / "debug.sqlite"
    effects = policy(stubs={"issue_refund": "paid"})
    with experiment_on(source, case.build(None), debug, policy=effects) as experiment:
        target = about_to_run(experiment.source, case.thread, "tools", visit=visit)
        report = fork(experiment, target, parse_forms(answer=[f"lookup_order={LOST}"]))
    assert report.group.runs[0].reply == "Your refund is on its way."
    return source, debug, report.target.thread


def fork_branch(source: Path, debug: Path, thread: str, *, with_origin: bool = True) -> Branch:
    reader, origin = open_reader(str(debug)), open_reader(str(source))
    lineage = read_lineage(reader, thread)
    if not with_origin:
        return Branch(reader, lineage)
    above = origin_lineage(origin, CATALOG["agent two turns"].thread, lineage)
    assert above is not None
    return Branch(reader, lineage, Branch(origin, above))


def test_a_fork_of_one_checkpoint_is_completed_from_where_it_was_copied_from(tmp_path: Path) -> None:
    source, debug, thread = forked(tmp_path)
    branch = fork_branch(source, debug, thread)
    first, second = read_examples(branch)
    was_first, was_second = examples_in(source, CATALOG["agent two turns"].thread)
    assert branch.is_correction
    assert (first.id, second.id) == (was_first.id, was_second.id)
    assert first.outputs == was_first.outputs
    assert second.inputs == was_second.inputs
    assert second.outputs["reply"] == "Your refund is on its way."
    assert second.steps == ("model", "tools", "tools", "model", "tools", "model")
    current = [call for call in second.tool_calls if not call.before]
    assert [call.name for call in current] == ["lookup_order", "get_policy", "issue_refund"]
    assert current[0].result is not None
    assert current[0].result["data"]["content"] == LOST  # type: ignore[index]
    assert second.source.thread == thread


def test_the_result_that_a_fork_corrected_is_told_with_the_field(tmp_path: Path) -> None:
    branch = fork_branch(*forked(tmp_path))
    (bad,) = bad_results(branch, read_sites(branch))
    assert (bad.tool, bad.id, bad.args, bad.field) == ("lookup_order", "c1", {"order_id": "A1"}, "status")
    assert json.loads(str(bad.result))["status"] == "delivered"
    assert bad.corrected == LOST


def test_without_its_origin_a_fork_has_one_example_with_gaps_and_nothing_invented(tmp_path: Path) -> None:
    branch = fork_branch(*forked(tmp_path), with_origin=False)
    (example,) = read_examples(branch)
    assert example.turn == 2
    assert example.inputs["input"] is None
    assert ids(example.inputs["messages"])[-1] == "h-1"
    assert example.steps == ("tools", "tools", "model", "tools", "model")
    assert example.outputs["reply"] == "Your refund is on its way."


def test_calls_that_a_subagent_made_inside_a_corrected_call_are_no_calls_of_the_turn_itself(tmp_path: Path) -> None:
    case = CATALOG["deep agent"]
    source, debug = sqlite_thread(tmp_path, case), tmp_path / "debug.sqlite"
    with experiment_on(source, case.build(None), debug) as experiment:
        target = about_to_run(experiment.source, case.thread, "tools", visit=1)
        report = fork(experiment, target, parse_forms(answer=['task="Nobody knows."']))
        lineage = read_lineage(experiment.debug.writer, report.target.thread)
        above = origin_lineage(experiment.source, case.thread, lineage)
        assert above is not None
        (example,) = read_examples(Branch(experiment.debug.writer, lineage, Branch(experiment.source, above)))
    assert [call.name for call in example.tool_calls if not call.inside] == ["write_todos", "task", "write_file"]
    assert "Nobody knows." in str(example.tool_calls[1].result)


def test_agents_with_parallel_calls_of_one_tool_keep_each_answer_with_its_call(tmp_path: Path) -> None:
    def script(messages: list[Any]) -> AIMessage:
        if any(isinstance(message, ToolMessage) for message in messages):
            return AIMessage("done")
        return calling(call("lookup_order", "c1", order_id="A1"), call("lookup_order", "c2", order_id="B2"))

    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        go(agent([World().lookup()], script, checkpointer=saver), "t", {"messages": [HumanMessage("both?")]})
    (example,) = examples_in(path, "t")
    for made in example.tool_calls:
        assert isinstance(made.args, dict)
        assert made.result is not None
        assert made.args["order_id"] in str(made.result["data"])
