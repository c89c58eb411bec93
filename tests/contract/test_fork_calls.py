"""Forks that change what a tool answered: recorded, pending, and in the state already; and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.errors import Ambiguous, NotFound, Refused, UsageError
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import Forms, parse_forms
from agentctl.experiments.forking.point import read_point
from agentctl.records.runs import ForkReport, RunReport
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.reading.lineage import head_id
from tests.catalog import CATALOG, config_of, sqlite_thread
from tests.catalog.scripted import ScriptedModel
from tests.support.experiments import about_to_run, contents, experiment_on, policy

STUBS = policy(stubs={"issue_refund": {"refunded": True}})


def forms(**given: Any) -> Forms:
    return parse_forms(**given)


@pytest.fixture
def debug(tmp_path: Path) -> Path:
    return tmp_path / "debug" / "debug.sqlite"


def source(tmp_path: Path, name: str) -> tuple[Path, Any]:
    folder = tmp_path / "prod"
    folder.mkdir()
    case = CATALOG[name]
    return sqlite_thread(folder, case, "t"), case.build(None)


def messages(experiment: Experiment, thread: str, graph: Any) -> list[Any]:
    with SqliteSaver.from_conn_string(experiment.debug.url) as saver:
        values = graph.copy(update={"checkpointer": saver}).get_state(config_of(thread)).values
    return list(values["messages"])


def only(report: ForkReport) -> RunReport:
    (run,) = report.group.runs
    return run


def test_one_field_of_a_recorded_result_changes_and_the_answer_becomes_right(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent")
    before = contents(prod)
    with experiment_on(prod, graph, debug, policy=STUBS, reason="INC-31") as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        report = fork(experiment, target, forms(patch=['lookup_order:status="lost"']), 2)
        told = messages(experiment, "t.fork-1", graph)
        rows = experiment.debug.writer.rows("t.fork-2")
    assert [run.thread for run in report.group.runs] == ["t.fork-1", "t.fork-2"]
    assert [run.reply for run in report.group.runs] == ["Your refund is on its way."] * 2
    assert [(call.name, call.served_by) for call in report.group.runs[0].tool_calls] == [("issue_refund", "stub")]
    assert report.group.runs[0].nodes == ("model", "tools", "model")
    assert (report.as_node, report.next, report.target.id) == ("tools", ("model",), target.id)
    changed, kept = report.answered
    assert (changed.name, changed.id, changed.how) == ("lookup_order", "c1", "substituted")
    assert changed.fields == (("status", "delivered", "lost"),)
    assert (kept.name, kept.id, kept.how) == ("get_policy", "c2", "kept")
    assert told[2].content == '{"order_id": "A1", "status": "lost", "total": 120.0}'
    assert [message.tool_call_id for message in told if message.type == "tool"] == ["c1", "c2", "c3"]
    facts = {
        "agentctl_origin": f"prod::t@{target.id}",
        "agentctl_op": "patch",
        "agentctl_reason": "INC-31",
    }
    assert all(facts.items() <= row.metadata.items() for row in rows)
    assert contents(prod) == before


def test_the_edited_message_keeps_its_id_name_and_place(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        fork(experiment, target, forms(answer=['c2={"days": 0}']))
        with SqliteSaver.from_conn_string(str(prod)) as saver:
            stock = graph.copy(update={"checkpointer": saver}).get_state(config_of("t")).values["messages"]
        told = messages(experiment, "t.fork-1", graph)
    assert [(m.id, m.name, m.type) for m in told[:4]] == [(m.id, m.name, m.type) for m in stock[:4]]
    assert (told[2].content, told[3].content) == (stock[2].content, '{"days":0}')


def test_an_error_as_a_result_becomes_a_success_when_it_is_replaced(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        fork(experiment, target, forms(answer=['lookup_order="plain text"']))
        told = messages(experiment, "t.fork-1", graph)
    assert (told[2].content, told[2].status) == ("plain text", "success")


def test_no_run_leaves_one_fork_that_continues_like_any_thread(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        report = fork(experiment, target, forms(patch=['c1:status="lost"']), 5, run=False)
        assert report.group.runs == ()
        assert [head.thread for head in experiment.debug.writer.heads()] == ["t.fork-1"]
        assert head_id(experiment.debug.writer, "t.fork-1") == report.target.id == target.id
        with SqliteSaver.from_conn_string(str(debug)) as saver:
            state = graph.copy(update={"checkpointer": saver}).get_state(config_of("t.fork-1"))
    assert '"lost"' in state.values["messages"][2].content


def test_the_substituted_answer_holds_for_the_same_call_later(tmp_path: Path, debug: Path) -> None:
    """The model looks the order up twice; the fork corrects the first result and the second call is the same."""
    real: list[str] = []

    @tool
    def lookup(order: str) -> str:
        """Looks an order up."""
        real.append(order)
        return '{"status": "delivered"}'

    def script(said: list[Any], bound: list[str]) -> AIMessage:
        n = sum(message.type == "tool" for message in said)
        calls = [{"name": "lookup", "args": {"order": "A1"}, "id": f"c{n}", "type": "tool_call"}] if n < 2 else []
        return AIMessage("" if calls else said[-1].content, tool_calls=calls)

    (tmp_path / "prod").mkdir()
    prod = tmp_path / "prod" / "threads.sqlite"
    graph = create_agent(ScriptedModel(script=script), tools=[lookup])
    with SqliteSaver.from_conn_string(str(prod)) as saver:
        stock = graph.copy(update={"checkpointer": saver})
        stock.invoke({"messages": [HumanMessage("?")]}, config_of("t"), durability="sync")
    real.clear()
    with experiment_on(prod, graph, debug) as experiment:
        experiment = _with_recording(experiment, "t")
        target = about_to_run(experiment.source, "t", "tools")
        run = only(fork(experiment, target, forms(patch=['c0:status="lost"'])))
    assert run.reply == '{"status": "lost"}'
    assert [(call.id, call.served_by) for call in run.tool_calls] == [("c1", "answered")]
    assert real == []


def _with_recording(experiment: Experiment, thread: str) -> Experiment:
    return replace(experiment, recording=record_thread(experiment.source, thread))


def test_a_result_in_the_state_already_is_replaced_in_place(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = about_to_run(experiment.source, "t", "model", visit=1)
        report = fork(experiment, target, forms(patch=['lookup_order:status="lost"']))
        with SqliteSaver.from_conn_string(str(prod)) as saver:
            stock = graph.copy(update={"checkpointer": saver}).get_state(config_of("t")).values["messages"]
        told = messages(experiment, "t.fork-1", graph)
    assert (only(report).status, only(report).reply) == ("done", "Your refund is on its way.")
    assert report.next == ("model",)
    assert (told[2].id, told[2].name, told[2].tool_call_id) == (stock[2].id, "lookup_order", "c1")
    assert told[2].content == '{"order_id": "A1", "status": "lost", "total": 120.0}'
    assert [message.type for message in told[:4]] == ["human", "ai", "tool", "tool"]


def pending(tmp_path: Path, *, finished: int = 0) -> tuple[Path, Any]:
    """An agent stopped right before its tools; of its two calls none has a result."""
    folder = tmp_path / "prod"
    folder.mkdir()
    graph = CATALOG["agent"].build(None)
    path = folder / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        stopped = graph.copy(update={"checkpointer": saver, "interrupt_before_nodes": ["tools"]})
        stopped.invoke({"messages": [HumanMessage("where is my order?", id="h-0")]}, config_of("t"), durability="sync")
    return path, graph


def test_pending_calls_are_answered_as_the_tasks_that_own_them(tmp_path: Path, debug: Path) -> None:
    prod, graph = pending(tmp_path)
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = Target("t", head_id(experiment.source, "t"), profile="prod")
        given = forms(answer=['lookup_order={"order_id": "A1", "status": "lost"}', 'get_policy={"days": 30}'])
        report = fork(experiment, target, given)
        told = messages(experiment, "t.fork-1", graph)
    run = only(report)
    assert (run.status, run.reply) == ("done", "Your refund is on its way.")
    assert run.nodes == ("model", "tools", "model")
    assert report.as_node == "tools"
    assert [(m.name, m.tool_call_id) for m in told if m.type == "tool"][:2] == [
        ("lookup_order", "c1"),
        ("get_policy", "c2"),
    ]
    assert told[2].content == '{"order_id":"A1","status":"lost"}'


def test_an_unanswered_sibling_is_refused_by_name_and_nothing_is_written(tmp_path: Path, debug: Path) -> None:
    prod, graph = pending(tmp_path)
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        with pytest.raises(Refused, match=r"get_policy \(c2\)") as refused:
            fork(experiment, target, forms(answer=['lookup_order="lost"']))
        assert not experiment.debug.writer.heads()
    assert refused.value.hint == "answer every call of the message: --answer c2=JSON"


def test_a_pending_call_has_no_field_to_change(tmp_path: Path, debug: Path) -> None:
    prod, graph = pending(tmp_path)
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        with pytest.raises(UsageError, match="no recorded result"):
            fork(experiment, target, forms(patch=['lookup_order:status="lost"']))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"answer": ["nope=1"]}, NotFound, "no call nope"),
        ({"patch": ["lookup_order:nope=1"]}, UsageError, "has no nope"),
        ({"answer": ['lookup_order="x"', 'c1="y"']}, UsageError, "more than one result"),
        ({"patch": ['c1:status="x"'], "goto": "model"}, Refused, "leaves the target's own step behind"),
    ],
)
def test_calls_that_cannot_be_changed_are_refused_before_any_write(
    tmp_path: Path, debug: Path, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    prod, graph = source(tmp_path, "agent")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        with pytest.raises(error, match=says):
            fork(experiment, target, forms(**given))
        assert not experiment.debug.writer.heads()


def test_a_name_or_id_used_in_two_turns_is_ambiguous_where_neither_waits(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent two turns")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        with pytest.raises(Ambiguous, match="c1 names 2 calls") as refused:
            fork(experiment, Target("t", head_id(experiment.source, "t")), forms(answer=['c1="x"']))
        assert [one["name"] for one in refused.value.candidates] == ["lookup_order"] * 2


def test_the_turn_of_the_target_is_the_one_that_is_changed(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent two turns")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        second = about_to_run(experiment.source, "t", "tools", visit=1)
        report = fork(experiment, second, forms(patch=['c1:status="lost"']))
        told = messages(experiment, "t.fork-1", graph)
    assert only(report).status == "done"
    results = [m.content for m in told if m.type == "tool" and m.tool_call_id == "c1"]
    assert ["lost" in content for content in results] == [False, True]


def test_a_call_whose_approval_waits_first_is_refused_with_the_way_on(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent asking")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        with pytest.raises(Refused, match="does not answer it") as refused:
            fork(experiment, target, forms(answer=['issue_refund={"refunded": 1}']))
    assert "--resume" in (refused.value.hint or "")


def test_a_result_inside_a_subagent_is_changed_and_the_parent_goes_on(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "deep agent")
    with experiment_on(prod, graph, debug) as experiment:
        experiment = _with_recording(experiment, "t")
        ns = next(ns for ns in experiment.source.namespaces("t") if ns.startswith("tools:"))
        target = about_to_run(experiment.source, "t", "tools", ns)
        report = fork(experiment, target, forms(patch=['lookup_order:status="lost"']))
        with SqliteSaver.from_conn_string(str(debug)) as saver:
            inner = saver.get_tuple(config_of("t.fork-1", checkpoint_ns=ns))
    run = only(report)
    assert run.status == "done", run.error
    assert report.next == ("model",)
    assert "tools|model" in run.nodes
    assert inner is not None
    results = [m for m in inner.checkpoint["channel_values"]["messages"] if m.type == "tool"]
    assert ['"lost"' in m.content for m in results] == [True]


def test_state_inside_a_subagent_cannot_be_set_and_says_so(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "deep agent")
    with experiment_on(prod, graph, debug) as experiment:
        ns = next(ns for ns in experiment.source.namespaces("t") if ns.startswith("tools:"))
        target = about_to_run(experiment.source, "t", "tools", ns)
        with pytest.raises(Refused, match="cannot be found from outside"):
            fork(experiment, target, forms(assign=["messages=[]"]))


def test_a_result_and_a_value_are_changed_in_one_fork(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "agent")
    with experiment_on(prod, graph, debug, policy=STUBS) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        given = forms(patch=['lookup_order:status="lost"'], assign=['messages[0].content="where is A1?"'])
        report = fork(experiment, target, given)
        told = messages(experiment, "t.fork-1", graph)
    assert only(report).reply == "Your refund is on its way."
    assert (told[0].content, told[2].content) == (
        "where is A1?",
        '{"order_id": "A1", "status": "lost", "total": 120.0}',
    )


def test_a_result_in_a_deep_agents_messages_is_replaced_in_place(tmp_path: Path, debug: Path) -> None:
    """Its messages and files are delta channels: no checkpoint holds them, only writes do."""
    prod, graph = source(tmp_path, "deep agent")
    with experiment_on(prod, graph, debug) as experiment:
        experiment = _with_recording(experiment, "t")
        target = about_to_run(experiment.source, "t", "model", visit=2)
        before = [message.text for message in read_point(experiment.source, target).messages]
        report = fork(experiment, target, forms(answer=['d2="Order A1 is lost."']))
        told = messages(experiment, "t.fork-1", graph)
    assert (only(report).status, only(report).tool_calls) == ("done", ())
    assert [call.how for call in report.answered] == ["substituted"]
    kept = [text for text in before if text != "Order A1 was delivered."]
    assert [m.content for m in told if m.type == "tool" and m.tool_call_id == "d2"] == ["Order A1 is lost."]
    assert len(kept) == len(before) - 1


def test_a_recorded_result_of_a_deep_agent_is_edited_beside_its_siblings(tmp_path: Path, debug: Path) -> None:
    prod, graph = source(tmp_path, "deep agent")
    with experiment_on(prod, graph, debug) as experiment:
        experiment = _with_recording(experiment, "t")
        target = about_to_run(experiment.source, "t", "tools", visit=1)
        report = fork(experiment, target, forms(answer=['task="Order A1 is lost."']))
        told = messages(experiment, "t.fork-1", graph)
        with SqliteSaver.from_conn_string(experiment.debug.url) as saver:
            files = graph.copy(update={"checkpointer": saver}).get_state(config_of("t.fork-1")).values["files"]
    assert only(report).status == "done"
    assert [(call.name, call.how) for call in report.answered] == [("task", "substituted"), ("write_file", "kept")]
    assert [m.content for m in told if m.type == "tool" and m.tool_call_id == "d2"] == ["Order A1 is lost."]
    assert list(files) == ["/notes.md"]
