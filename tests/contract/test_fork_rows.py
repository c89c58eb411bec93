"""Forks in the shapes that real graphs have: one ToolNode with many calls, Commands, entrypoints, Postgres."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from agentctl.errors import Ambiguous, NotFound, Refused, UsageError
from agentctl.experiments.experiment import DebugStore, Experiment, Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import parse_forms
from agentctl.experiments.replay import replay
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.open import open_reader, open_writer
from agentctl.stores.reading.lineage import head_id
from tests.catalog import CATALOG, config_of, run_case, sqlite_thread
from tests.support.experiments import about_to_run, experiment_on, policy
from tests.support.forking import target_at

RAN: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> Iterator[None]:
    RAN.clear()
    yield


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]


@tool
def look(order: str) -> str:
    """Looks an order up."""
    RAN["look"] += 1
    return f'{{"order": "{order}", "status": "delivered"}}'


@tool
def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Notes something down."""
    RAN["note"] += 1
    return Command(update={"seen": [text], "messages": [ToolMessage("noted", tool_call_id=tool_call_id)]})


@tool
def fails(order: str) -> str:
    """Always fails."""
    RAN["fails"] += 1
    raise ValueError("down")


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def agent(*calls: dict[str, Any], saver: Any = None, handle: bool = False, **compiled: Any) -> Any:
    """A model node and one ToolNode that runs all calls of a message as one task."""

    def model(state: State) -> State:
        RAN["model"] += 1
        said = state["messages"]
        if not any(message.type == "tool" for message in said):
            return {"messages": [AIMessage("", id="ai-1", tool_calls=list(calls))]}
        results = " ".join(str(message.content) for message in said if message.type == "tool")
        return {"messages": [AIMessage(results, id="ai-2")]}

    builder = StateGraph(State).add_node("model", model)
    builder.add_node("tools", ToolNode([look, note, fails], handle_tool_errors=handle))
    builder.add_edge(START, "model").add_edge("tools", "model")
    builder.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else "__end__")
    return builder.compile(checkpointer=saver, **compiled)


class Bench:
    def __init__(self, folder: Path) -> None:
        (folder / "prod").mkdir()
        self.prod = str(folder / "prod" / "prod.sqlite")
        self.debug = str(folder / "debug.sqlite")

    def ran(self, *calls: dict[str, Any], raises: bool = False, **compiled: Any) -> Any:
        with SqliteSaver.from_conn_string(self.prod) as saver:
            graph = agent(*calls, saver=saver, **compiled)
            start = {"messages": [HumanMessage("?", id="h")]}
            if raises:
                with pytest.raises(ValueError, match="down"):
                    graph.invoke(start, config_of("t"), durability="sync")
            else:
                graph.invoke(start, config_of("t"), durability="sync")
        RAN.clear()
        return agent(*calls)

    def values(self, graph: Any, thread: str = "t.fork-1") -> Any:
        with SqliteSaver.from_conn_string(self.debug) as saver:
            return graph.copy(update={"checkpointer": saver}).get_state(config_of(thread)).values


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_one_of_many_calls_of_one_tools_task_is_changed_and_no_tool_runs(bench: Bench) -> None:
    graph = bench.ran(call("look", "c1", order="A1"), call("look", "c2", order="B2"))
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        report = fork(experiment, target, parse_forms(patch=['c2:status="lost"']))
    assert RAN == {"model": 1}
    assert report.group.runs[0].reply == ('{"order": "A1", "status": "delivered"} {"order": "B2", "status": "lost"}')


def test_two_results_of_one_tools_task_are_changed_at_once(bench: Bench) -> None:
    graph = bench.ran(call("look", "c1", order="A1"), call("look", "c2", order="B2"))
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        report = fork(experiment, target, parse_forms(answer=['c1="one"', 'c2="two"']))
    assert report.group.runs[0].reply == "one two"


def test_a_sibling_that_returned_a_command_keeps_all_its_writes(bench: Bench) -> None:
    graph = bench.ran(call("note", "c1", text="x"), call("look", "c2", order="B2"))
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        report = fork(experiment, target, parse_forms(answer=['look="lost"']))
    assert report.group.runs[0].reply == "noted lost"
    assert (bench.values(graph)["seen"], RAN) == (["x"], {"model": 1})


def test_a_command_itself_is_changed_in_its_message_alone(bench: Bench) -> None:
    graph = bench.ran(call("note", "c1", text="x"))
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        report = fork(experiment, target, parse_forms(answer=['note="refused"']))
    assert (report.group.runs[0].reply, bench.values(graph)["seen"]) == ("refused", ["x"])


def test_pending_calls_of_one_task_are_answered_together(bench: Bench) -> None:
    graph = bench.ran(call("look", "c1", order="A1"), call("look", "c2", order="B2"), interrupt_before=["tools"])
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        with pytest.raises(Refused, match=r"look \(c1\)"):
            fork(experiment, target, parse_forms(answer=['c2="two"']))
        report = fork(experiment, target, parse_forms(answer=['c2="two"', 'c1="one"']))
    assert (report.group.runs[0].reply, RAN) == ("one two", {"model": 1})
    assert report.next == ("model",)


def test_a_sibling_is_answered_from_the_recording_of_the_thread(bench: Bench) -> None:
    """Its own tools task failed; the same call was answered in an earlier turn."""
    bench.ran(call("look", "c1", order="A1"))

    def again(state: State) -> State:
        if state["messages"][-1].type == "human":
            calls = [call("look", "d1", order="A1"), call("fails", "d2", order="A1")]
            return {"messages": [AIMessage("", id="ai-3", tool_calls=calls)]}
        return {"messages": [AIMessage(" ".join(str(m.content) for m in state["messages"][-2:]), id="ai-4")]}

    builder = StateGraph(State).add_node("model", again).add_node("tools", ToolNode([look, note, fails]))
    builder.add_edge(START, "model").add_edge("tools", "model")
    builder.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else "__end__")
    with SqliteSaver.from_conn_string(bench.prod) as saver, pytest.raises(ValueError, match="down"):
        start = {"messages": [HumanMessage("and now?", id="h2")]}
        builder.compile(checkpointer=saver).invoke(start, config_of("t"), durability="sync")
    RAN.clear()
    with experiment_on(bench.prod, builder.compile(), bench.debug) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        with pytest.raises(Refused, match=r"look \(d1\)"):
            fork(experiment, target, parse_forms(answer=['fails="up again"']))
    recording = record_thread(open_reader(bench.prod), "t")
    with experiment_on(bench.prod, builder.compile(), bench.debug, recording=recording) as experiment:
        report = fork(experiment, target, parse_forms(answer=['fails="up again"']))
    assert report.group.runs[0].reply == '{"order": "A1", "status": "delivered"} up again'
    assert [(one.name, one.how) for one in report.answered] == [("fails", "substituted"), ("look", "kept")]
    assert not RAN


def test_a_failed_call_gets_the_result_that_it_should_have_had(bench: Bench) -> None:
    graph = bench.ran(call("fails", "c1", order="A1"), raises=True)
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        report = fork(experiment, target, parse_forms(answer=['fails={"ok": true}']))
    assert (report.group.runs[0].reply, RAN) == ('{"ok":true}', {"model": 1})


def test_a_call_that_was_never_answered_and_talked_past_gets_its_answer_right_after_it(bench: Bench) -> None:
    graph = bench.ran(call("fails", "c1", order="A1"), raises=True)
    with SqliteSaver.from_conn_string(bench.prod) as saver:
        stock = graph.copy(update={"checkpointer": saver})
        stock.update_state(config_of("t"), {"messages": [HumanMessage("hello?", id="h2")]}, as_node="__start__")
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        fork(experiment, target, parse_forms(answer=['c1="late"']))
    said = bench.values(graph)["messages"]
    assert [(m.type, m.content) for m in said][:4] == [
        ("human", "?"),
        ("ai", ""),
        ("tool", "late"),
        ("human", "hello?"),
    ]


def test_calls_with_an_empty_id_are_told_apart_by_their_number(bench: Bench) -> None:
    graph = bench.ran(call("look", "", order="A1"), call("look", "", order="B2"))
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        with pytest.raises(Ambiguous, match="names 2 calls"):
            fork(experiment, about_to_run(experiment.source, "t", "tools"), parse_forms(answer=['look="x"']))
        replies = [
            fork(experiment, target_at(experiment.source, f"t@call:look:{k}"), parse_forms(answer=['look="x"']))
            for k in (1, 2)
        ]
    assert [report.group.runs[0].reply for report in replies] == [
        'x {"order": "B2", "status": "delivered"}',
        '{"order": "A1", "status": "delivered"} x',
    ]
    assert RAN == {"model": 2}


# The functional API


def flow() -> Any:
    @task
    def fetch(order: str) -> dict[str, Any]:
        RAN["fetch"] += 1
        return {"order": order, "status": "delivered", "items": [1, 2]}

    @task
    def policy_days(kind: str) -> int:
        RAN["policy_days"] += 1
        return 30

    @task
    def decide(order: dict[str, Any], days: int) -> str:
        RAN["decide"] += 1
        return f"{order['status']} {order['items']} within {days}"

    @entrypoint()
    def refund(order: str) -> str:
        RAN["refund"] += 1
        days = policy_days("all").result()
        found = fetch(order).result()
        return decide(found, days).result()

    return refund


def ran_flow(bench: Bench) -> Any:
    graph = flow()
    with SqliteSaver.from_conn_string(bench.prod) as saver:
        graph.copy(update={"checkpointer": saver}).invoke("A1", config_of("t"), durability="sync")
    RAN.clear()
    return graph


def test_what_a_task_returned_is_changed_and_later_calls_are_made_again(bench: Bench) -> None:
    graph = ran_flow(bench)
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = about_to_run(experiment.source, "t", "refund")
        given = parse_forms(patch=['fetch:status="lost"', "fetch:items[-1]=9"])
        report = fork(experiment, target, given)
    assert report.group.runs[0].status == "done"
    assert RAN == {"refund": 1, "decide": 1}
    assert bench.values(graph) == "lost [1, 9] within 30"
    assert [(one.name, one.how) for one in report.answered] == [
        ("fetch", "substituted"),
        ("fetch", "substituted"),
        ("?", "kept"),
    ]


def test_a_whole_task_result_is_replaced(bench: Bench) -> None:
    graph = ran_flow(bench)
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = about_to_run(experiment.source, "t", "refund")
        fork(experiment, target, parse_forms(answer=["policy_days=0"]))
    assert (bench.values(graph), RAN) == ("delivered [1, 2] within 0", {"refund": 1, "fetch": 1, "decide": 1})


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"answer": ["nope=1"]}, NotFound, "no task nope"),
        ({"patch": ["fetch:nope=1"]}, UsageError, "has no nope"),
        ({"goto": "refund"}, Refused, "no nodes to update"),
    ],
)
def test_forms_that_do_not_fit_an_entrypoint_are_refused(
    bench: Bench, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    graph = ran_flow(bench)
    with experiment_on(bench.prod, graph, bench.debug) as experiment:
        target = about_to_run(experiment.source, "t", "refund")
        with pytest.raises(error, match=says):
            fork(experiment, target, parse_forms(**given))
        assert not experiment.debug.writer.heads()


# Postgres


def test_a_replay_and_a_fork_from_postgres_into_postgres(fresh_postgres_url: str) -> None:
    case = CATALOG["agent"]
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        run_case(case, saver, "t")
    stubs = policy(stubs={"issue_refund": {"refunded": True}})
    graph = case.build(None)
    with experiment_on(fresh_postgres_url, graph, fresh_postgres_url, policy=stubs) as experiment:
        recording = record_thread(experiment.source, "t")
    with experiment_on(fresh_postgres_url, graph, fresh_postgres_url, policy=stubs, recording=recording) as experiment:
        target = about_to_run(experiment.source, "t", "tools")
        again = replay(experiment, target, 3)
        report = fork(experiment, target, parse_forms(patch=['lookup_order:status="lost"']), 2)
    assert [run.reply for run in again.group.runs] == ["No refund is due: your order was delivered."] * 3
    assert (again.side_effects.recorded, again.side_effects.escaped) == (6, 0)
    assert [run.reply for run in report.group.runs] == ["Your refund is on its way."] * 2


def test_runs_in_a_schema_of_its_own_leave_the_search_path_alone(fresh_postgres_url: str, tmp_path: Path) -> None:
    import psycopg

    case = CATALOG["linear"]
    prod = sqlite_thread(tmp_path, case, "t")
    with psycopg.connect(fresh_postgres_url, autocommit=True) as connection, ExitStack() as closing:
        connection.execute("CREATE SCHEMA lab")
        reader, writer = open_reader(str(prod)), open_writer(fresh_postgres_url, schema="lab")
        closing.callback(reader.close)
        closing.callback(writer.close)
        writer.setup()
        debug = DebugStore(fresh_postgres_url, writer, schema="lab")
        experiment = Experiment(reader, debug, case.build(None))
        target = about_to_run(reader, "t", "decide")
        report = replay(experiment, target)
        assert report.group.runs[0].status == "done"
        assert report.group.runs[0].head == head_id(writer, "t.replay-1")
        found = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'checkpoints'").fetchall()
    assert found == [("lab",)]


def test_a_pending_call_of_a_postgres_thread_is_answered_in_a_sqlite_debug_store(
    fresh_postgres_url: str, tmp_path: Path
) -> None:
    graph = CATALOG["agent"].build(None)
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        stopped = graph.copy(update={"checkpointer": saver, "interrupt_before_nodes": ["tools"]})
        stopped.invoke({"messages": [HumanMessage("?", id="h-0")]}, config_of("t"), durability="sync")
    stubs = policy(stubs={"issue_refund": {"refunded": True}})
    with experiment_on(fresh_postgres_url, graph, tmp_path / "debug.sqlite", policy=stubs) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        given = parse_forms(answer=['c1={"order_id": "A1", "status": "lost"}', "c2={}"])
        report = fork(experiment, target, given)
    assert report.group.runs[0].reply == "Your refund is on its way."


def asks_inside_tools() -> Any:
    @tool
    def approve(amount: int) -> str:
        """Asks a person."""
        RAN["approve"] += 1
        return f"approved: {interrupt('how much?')}"

    def model(state: State) -> State:
        if state["messages"][-1].type == "human":
            calls = [call("look", "c1", order="A1"), call("approve", "c2", amount=3)]
            return {"messages": [AIMessage("", id="ai-1", tool_calls=calls)]}
        return {"messages": [AIMessage(" ".join(str(m.content) for m in state["messages"][-2:]), id="ai-2")]}

    builder = StateGraph(State).add_node("model", model).add_node("tools", ToolNode([look, approve]))
    builder.add_edge(START, "model").add_edge("tools", "model")
    builder.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else "__end__")
    return builder


def test_calls_of_a_task_that_stopped_at_a_question_are_answered_and_the_question_is_gone(bench: Bench) -> None:
    builder = asks_inside_tools()
    with SqliteSaver.from_conn_string(bench.prod) as saver:
        start = {"messages": [HumanMessage("?", id="h")]}
        builder.compile(checkpointer=saver).invoke(start, config_of("t"), durability="sync")
    RAN.clear()
    with experiment_on(bench.prod, builder.compile(), bench.debug) as experiment:
        target = Target("t", head_id(experiment.source, "t"))
        report = fork(experiment, target, parse_forms(answer=['c1="seen"', 'c2="approved: 3"']))
    assert (report.group.runs[0].status, report.group.runs[0].reply) == ("done", "seen approved: 3")
    assert not RAN
