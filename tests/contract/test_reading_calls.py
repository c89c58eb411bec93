"""Tool calls read from rows of real threads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Send

from agentctl.records.messages import CallSite
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.calls import read_calls
from agentctl.stores.reading.lineage import read_lineage
from agentctl.stores.reading.state import read_values
from tests.catalog import CATALOG, config_of, run_case, sqlite_case


def calls_of(path: Path, thread: str, tip: str | None = None, **names: Any) -> tuple[CallSite, ...]:
    reader = open_reader(str(path))
    return read_calls(reader, read_lineage(reader, thread, tip=tip), **names)


def named(sites: tuple[CallSite, ...]) -> list[tuple[str, str, int]]:
    return [(site.name, site.id, site.occurrence) for site in sites]


def check_places(graph: Any, reader: Reader, thread: str, sites: tuple[CallSite, ...]) -> None:
    """A call is pending at the parent of the checkpoint that holds its answer, which is the first to hold it."""
    assert sites
    for site in sites:
        if site.answered_at is None:
            continue
        place = {"thread_id": thread, "checkpoint_ns": site.ns, "checkpoint_id": site.answered_at}
        answered = graph.checkpointer.get_tuple({"configurable": place})
        assert answered.parent_config["configurable"]["checkpoint_id"] == site.pending_at
        before, after = (
            read_values(reader, thread, site.ns, id).values.get("messages", ())
            for id in (site.pending_at, site.answered_at)
        )
        if site.args is not None:
            assert site.answer is not None
            assert site.answer.id not in {message["id"] for message in before}
            assert site.answer.id in {message["id"] for message in after}


def test_parallel_calls_of_an_agent_wait_and_are_answered_together(tmp_path: Path) -> None:
    case = CATALOG["agent"]
    with sqlite_case(tmp_path, case) as (path, graph):
        sites = calls_of(path, case.thread)
        history = {
            s.config["configurable"]["checkpoint_id"]: s for s in graph.get_state_history(config_of(case.thread))
        }

    assert named(sites) == [("lookup_order", "c1", 1), ("get_policy", "c2", 1)]
    assert [site.args for site in sites] == [{"order_id": "A1"}, {"topic": "lost"}]
    for site in sites:
        assert history[site.pending_at].next == ("tools", "tools")
        assert site.answered_at is not None
        assert site.answer is not None
        assert history[site.answered_at].next == ("model",)
        ids = [m.tool_call_id for m in history[site.answered_at].values["messages"] if isinstance(m, ToolMessage)]
        assert site.id in ids


def test_call_ids_that_repeat_across_turns_are_different_occurrences(tmp_path: Path) -> None:
    case = CATALOG["agent two turns"]
    with sqlite_case(tmp_path, case) as (path, graph):
        sites = calls_of(path, case.thread)
        check_places(graph, open_reader(str(path)), case.thread, sites)

    assert named(sites) == [
        ("lookup_order", "c1", 1),
        ("get_policy", "c2", 1),
        ("lookup_order", "c1", 2),
        ("get_policy", "c2", 2),
    ]
    assert len({site.pending_at for site in sites}) == 2
    assert len({site.answer.id for site in sites if site.answer}) == 4


def test_a_call_waiting_for_approval_is_pending_at_the_head(tmp_path: Path) -> None:
    case = CATALOG["agent asking"]
    with sqlite_case(tmp_path, case) as (path, graph):
        sites = calls_of(path, case.thread)
        head = graph.get_state(config_of(case.thread)).config["configurable"]["checkpoint_id"]

    assert [(site.name, site.pending_at, site.answered_at, site.answer) for site in sites] == [
        ("issue_refund", head, None, None),
        ("lookup_order", head, None, None),
    ]


def test_an_approved_call_is_pending_where_its_tool_ran(tmp_path: Path) -> None:
    case = CATALOG["agent approved"]
    with sqlite_case(tmp_path, case) as (path, graph):
        sites = calls_of(path, case.thread)
        nexts = {
            s.config["configurable"]["checkpoint_id"]: s.next for s in graph.get_state_history(config_of(case.thread))
        }

    assert {nexts[site.pending_at] for site in sites} == {("tools", "tools")}


def test_a_corrected_branch_has_the_corrected_answer_and_the_old_branch_the_old_one(tmp_path: Path) -> None:
    case = CATALOG["agent corrected"]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        tips = {row.id for row in reader.rows(case.thread)} - {row.parent for row in reader.rows(case.thread)}
        texts = {tip: [s.answer.text for s in calls_of(path, case.thread, tip) if s.answer] for tip in tips}
        head = graph.get_state(config_of(case.thread)).config["configurable"]["checkpoint_id"]

    old = next(texts[tip] for tip in tips if tip != head)
    assert '"lost"' in texts[head][0]
    assert '"delivered"' in old[0]
    assert texts[head][1] == old[1]


def test_calls_of_a_subagent_are_found_in_its_namespace(tmp_path: Path) -> None:
    case = CATALOG["deep agent"]
    with sqlite_case(tmp_path, case) as (path, graph):
        sites = calls_of(path, case.thread)
        check_places(graph, open_reader(str(path)), case.thread, sites)

    assert named(sites) == [
        ("write_todos", "d1", 1),
        ("task", "d2", 1),
        ("write_file", "d3", 1),
        ("lookup_order", "s1", 1),
    ]
    assert [site.ns.partition(":")[0] for site in sites] == ["", "", "", "tools"]
    assert all(site.answer is not None and site.answered_at is not None for site in sites)


def test_calls_on_postgres_are_those_on_sqlite(tmp_path: Path, fresh_postgres_url: str) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        reader = open_reader(fresh_postgres_url)
        for name in ("agent two turns", "agent asking", "agent corrected", "deep agent", "functional answered"):
            case = CATALOG[name]
            folder = tmp_path / case.thread
            folder.mkdir()
            graph = run_case(case, saver)
            sites = read_calls(reader, read_lineage(reader, case.thread), task_names=["fetch", "approve"])
            with sqlite_case(folder, case) as (path, _):
                same = calls_of(path, case.thread, task_names=["fetch", "approve"])

            check_places(graph, reader, case.thread, sites)
            assert [(s.name, s.args, s.occurrence, s.answer and s.answer.text) for s in sites] == [
                (s.name, s.args, s.occurrence, s.answer and s.answer.text) for s in same
            ]
        reader.close()


@tool
def fine(x: int) -> str:
    """Answers."""
    return f"fine {x}"


@tool
def broken(x: int) -> str:
    """Raises."""
    raise ValueError("no")


def agent_graph(saver: SqliteSaver, calls: list[dict[str, Any]], *, send: bool) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [AIMessage("", tool_calls=calls)]})
    builder.add_node("tools", ToolNode([fine, broken], handle_tool_errors=False))
    builder.add_edge(START, "model")
    if send:
        builder.add_conditional_edges(
            "model", lambda s: [Send("tools", [call]) for call in s["messages"][-1].tool_calls], ["tools"]
        )
    else:
        builder.add_edge("model", "tools")
    return builder.compile(checkpointer=saver)


def call(name: str, id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "id": id, "args": args, "type": "tool_call"}


def test_an_answer_of_a_half_done_step_is_shown_although_no_checkpoint_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = agent_graph(saver, [call("fine", "c1", x=1), call("broken", "c2", x=2)], send=True)
        with pytest.raises(ValueError):
            graph.invoke({"messages": "go"}, config_of("t") | {"max_concurrency": 1}, durability="sync")
        sites = calls_of(path, "t")
        head = graph.get_state(config_of("t", checkpoint_id=None)).config["configurable"]["checkpoint_id"]

    assert [(s.name, s.pending_at, s.answered_at, s.answer and s.answer.text) for s in sites] == [
        ("fine", head, None, "fine 1"),
        ("broken", head, None, None),
    ]


def test_an_orphaned_call_stays_pending_where_its_turn_ended(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = agent_graph(saver, [call("broken", "c1", x=1)], send=False)
        for _ in range(2):
            with pytest.raises(ValueError):
                graph.invoke({"messages": "go"}, config_of("t"), durability="sync")
        sites = calls_of(path, "t")
        pending = [graph.get_state(config_of("t", checkpoint_id=site.pending_at)).next for site in sites]

    assert named(sites) == [("broken", "c1", 1), ("broken", "c1", 2)]
    assert pending == [("tools",), ("tools",)]
    assert [site.answer for site in sites] == [None, None]


def test_empty_call_ids_pair_by_position(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = agent_graph(saver, [call("fine", "", x=1), call("fine", "", x=2)], send=False)
        graph.invoke({"messages": "go"}, config_of("t"), durability="sync")
        sites = calls_of(path, "t")

    assert [(site.args, site.answer and site.answer.text) for site in sites] == [
        ({"x": 1}, "fine 1"),
        ({"x": 2}, "fine 2"),
    ]


def test_an_invalid_call_counts(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    invalid = {"name": "pay", "id": "c9", "args": "{oops", "error": "not JSON", "type": "invalid_tool_call"}
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder = StateGraph(MessagesState)
        builder.add_node("model", lambda state: {"messages": [AIMessage("", invalid_tool_calls=[invalid])]})
        builder.add_edge(START, "model")
        builder.compile(checkpointer=saver).invoke({"messages": "go"}, config_of("t"), durability="sync")
        sites = calls_of(path, "t")

    assert [(site.name, site.args, site.answer) for site in sites] == [("pay", "{oops", None)]


def test_calls_of_messages_that_were_trimmed_away_are_still_found(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder = StateGraph(MessagesState)
        builder.add_node("model", lambda state: {"messages": [AIMessage("", tool_calls=[call("fine", "c1", x=1)])]})
        builder.add_node("tools", ToolNode([fine]))
        builder.add_node("trim", lambda state: {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("so")]})
        builder.add_edge(START, "model").add_edge("model", "tools").add_edge("tools", "trim")
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": "go"}, config_of("t"), durability="sync")
        sites = calls_of(path, "t")
        pending = graph.get_state(config_of("t", checkpoint_id=sites[0].pending_at))

    assert [(site.name, site.answer and site.answer.text) for site in sites] == [("fine", "fine 1")]
    assert pending.next == ("tools",)


def test_a_subgraph_that_shares_its_messages_counts_each_call_once_where_it_waited(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        inner = agent_graph(None, [call("fine", "c1", x=1)], send=False)  # type: ignore[arg-type]
        builder = StateGraph(MessagesState)
        builder.add_node("orders", inner)
        builder.add_node("refunds", agent_graph(None, [call("fine", "c1", x=2)], send=False))  # type: ignore[arg-type]
        builder.add_edge(START, "orders").add_edge("orders", "refunds")
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": "go"}, config_of("t"), durability="sync")
        sites = calls_of(path, "t")

    assert [(site.ns.partition(":")[0], site.args, site.occurrence) for site in sites] == [
        ("orders", {"x": 1}, 1),
        ("refunds", {"x": 2}, 2),
    ]


def test_calls_of_an_abandoned_branch_are_not_on_the_other(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        inner = agent_graph(None, [call("fine", "c1", x=1)], send=False)  # type: ignore[arg-type]
        builder = StateGraph(MessagesState)
        builder.add_node("orders", inner)
        builder.add_edge(START, "orders")
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": "go"}, config_of("t"), durability="sync")
        old = graph.get_state(config_of("t")).config["configurable"]["checkpoint_id"]
        start = next(s for s in graph.get_state_history(config_of("t")) if s.next == ("orders",))
        graph.invoke(None, start.config, durability="sync")
        on_head, on_old = calls_of(path, "t"), calls_of(path, "t", old)

    assert len(on_head) == len(on_old) == 1
    assert on_head[0].ns != on_old[0].ns


class Private(TypedDict):
    dialogue: Annotated[list[AnyMessage], add_messages]


def test_history_given_as_input_counts_its_calls_once(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    seeded = [
        HumanMessage("before"),
        AIMessage("", tool_calls=[call("fine", "c1", x=1)]),
        ToolMessage("old", tool_call_id="c1"),
    ]
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder = StateGraph(Private)
        builder.add_node("reply", lambda state: {"dialogue": [AIMessage("ok")]})
        builder.add_edge(START, "reply")
        builder.compile(checkpointer=saver).invoke({"dialogue": seeded}, config_of("t"), durability="sync")
        sites = calls_of(path, "t")

    assert [(site.name, site.answer and site.answer.text) for site in sites] == [("fine", "old")]


def test_task_calls_of_the_functional_api_have_their_results_and_the_names_that_fit(tmp_path: Path) -> None:
    case = CATALOG["functional answered"]
    with sqlite_case(tmp_path, case) as (path, _):
        unnamed = calls_of(path, case.thread)
        sites = calls_of(path, case.thread, task_names=["approve", "fetch", "pipeline"])

    assert {site.name for site in unnamed} == {"?"}
    assert [(site.name, site.occurrence, site.answer and site.answer.content) for site in sites] == [
        ("fetch", 1, "fetched a"),
        ("fetch", 2, "fetched b"),
        ("approve", 1, True),
    ]
    assert all(site.args is None and site.answered_at is not None for site in sites)


def test_task_results_of_a_waiting_entrypoint_are_in_no_checkpoint_yet(tmp_path: Path) -> None:
    case = CATALOG["functional"]
    with sqlite_case(tmp_path, case) as (path, _):
        sites = calls_of(path, case.thread, task_names=["fetch"])

    assert [(site.name, site.answered_at) for site in sites] == [("fetch", None), ("fetch", None)]


@pytest.mark.parametrize("name", ["linear", "fan out", "subgraph nested answered", "exit"])
def test_threads_without_tools_have_no_calls(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]
    with sqlite_case(tmp_path, case) as (path, _):
        assert calls_of(path, case.thread) == ()
