"""Threads found by time, status, metadata and text, on real rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from agentctl.records.rows import id_time
from agentctl.records.threads import ThreadQuery
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.threads import list_threads
from tests.catalog import CATALOG, Saver, config_of, run_case

STATUS = {
    "linear": "done",
    "interrupt inside": "interrupted",
    "interrupt before": "pending",
    "failed": "error",
    "half done resumed": "done",
    "agent": "done",
    "deep agent": "done",
    "functional": "interrupted",
    "exit": "done",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file with a thread of each status, the oldest first."""
    path = tmp_path_factory.mktemp("store") / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        for name in STATUS:
            run_case(CATALOG[name], saver)
        for number in range(3):
            talk(saver, f"chat-{number}", f"Where is ORDER-{number}?", user_id=f"u-{number}", vip=number == 1)
    return path


def talk(saver: Saver, thread: str, text: str, **metadata: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("reply", lambda state: {"messages": [AIMessage("It was delivered.")]})
    builder.add_edge(START, "reply")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(text)]}, config_of(thread) | {"metadata": metadata}, durability="sync")
    return graph


def thread_of(name: str) -> str:
    return CATALOG[name].thread


def found(path: Path | str, **query: Any) -> list[str]:
    reader = open_reader(str(path))
    threads = [summary.thread for summary in list_threads(reader, ThreadQuery(**{"limit": None, **query}))]
    reader.close()
    return threads


def test_threads_are_listed_newest_first_with_their_status(store: Path) -> None:
    items = list_threads(open_reader(str(store)), ThreadQuery(limit=None)).items

    assert [item.thread for item in items] == [
        *(f"chat-{n}" for n in (2, 1, 0)),
        *(thread_of(name) for name in reversed(STATUS)),
    ]
    assert {item.thread: item.status for item in items if not item.thread.startswith("chat")} == {
        thread_of(name): status for name, status in STATUS.items()
    }
    failed = next(item for item in items if item.status == "error")
    assert failed.error is not None
    assert "the bureau did not answer" in failed.error
    assert all(item.created_at and item.updated_at and item.created_at <= item.updated_at for item in items)
    assert all(item.error is None for item in items if item.status != "error")


def test_threads_on_postgres_are_found_by_the_same_filters(fresh_postgres_url: str) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        for name in ("failed", "agent"):
            run_case(CATALOG[name], saver)
        talk(saver, "chat", "Where is ORDER-7?", user_id="u-7")

    assert found(fresh_postgres_url) == ["chat", thread_of("agent"), thread_of("failed")]
    assert found(fresh_postgres_url, status="error", grep="bureau") == [thread_of("failed")]
    assert found(fresh_postgres_url, where=(("user_id", "u-7"),), grep="order-7") == ["chat"]


@pytest.mark.parametrize("status", ["done", "interrupted", "pending", "error", "empty"])
def test_the_status_filter_keeps_that_status_only(status: str, store: Path) -> None:
    expected = [thread_of(name) for name in reversed(STATUS) if STATUS[name] == status]
    if status == "done":
        expected = ["chat-2", "chat-1", "chat-0", *expected]

    assert found(store, status=status) == expected


def test_the_limit_cuts_and_says_so(store: Path) -> None:
    listing = list_threads(open_reader(str(store)), ThreadQuery(limit=2))

    assert [item.thread for item in listing] == ["chat-2", "chat-1"]
    assert (listing.truncated, listing.n_read, listing.n_total) == (True, 2, len(STATUS) + 3)
    assert not list_threads(open_reader(str(store)), ThreadQuery(limit=None)).truncated


def test_where_compares_metadata_as_text(store: Path) -> None:
    assert found(store, where=(("user_id", "u-1"),)) == ["chat-1"]
    assert found(store, where=(("vip", "true"),)) == ["chat-1"]
    assert found(store, where=(("user_id", "u-1"), ("vip", "false"))) == []
    assert found(store, where=(("nobody", "x"),)) == []


def test_since_and_until_keep_threads_that_were_active_in_the_span(store: Path) -> None:
    reader = open_reader(str(store))
    head = next(h for h in reader.heads() if h.thread == "chat-1")
    created, updated = id_time(head.first_id), head.head.at
    assert created is not None
    assert updated is not None

    assert found(store, since=created, until=updated) == ["chat-1"]
    assert found(store, since=updated + timedelta(microseconds=1)) == ["chat-2"]
    assert found(store, until=created)[0] == "chat-1"


def test_metadata_of_the_first_row_counts_where_a_hand_written_head_has_none(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = talk(saver, "t", "hello", user_id="u-1042")
        graph.update_state(config_of("t"), {"messages": [HumanMessage("by hand")]}, as_node="reply")

    assert found(path, where=(("user_id", "u-1042"),)) == ["t"]


def test_a_run_id_of_an_earlier_turn_is_found(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        for run in ("r-1", "r-2"):
            talk(saver, "t", "hello", run_id=run)
        talk(saver, "other", "hello", run_id="r-3")

    assert found(path, where=(("run_id", "r-1"),)) == ["t"]


@pytest.mark.parametrize(
    ("text", "threads", "hit"),
    [
        ("order-1?", ["chat-1"], "Where is ORDER-1?"),
        ("no refund is due", ["agent"], "No refund is due"),
        ('"delivered"', ["deep agent", "agent"], '"delivered"'),
        ("bureau did not", ["half done resumed", "failed"], "the bureau did not answer"),
        ("fetched a", ["functional"], "fetched a"),
        ("get_policy", ["agent"], "get_policy"),
        ("what happened to order a1", ["deep agent"], "What happened to order A1?"),
        ("nowhere to be found", [], ""),
        ("langchain_core", [], ""),
    ],
)
def test_grep_finds_messages_results_errors_and_calls(text: str, threads: list[str], hit: str, store: Path) -> None:
    items = list_threads(open_reader(str(store)), ThreadQuery(grep=text, limit=None)).items

    expected = [CATALOG[name].thread if name in CATALOG else name for name in threads]
    assert [item.thread for item in items] == expected
    assert all(item.hit is not None and hit in item.hit for item in items)


def test_grep_finds_text_that_only_a_state_holds(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder = StateGraph(MessagesState)
        builder.add_node("reply", lambda state: {"messages": [AIMessage("grün ist die Heide")]})
        builder.add_edge(START, "reply")
        builder.compile(checkpointer=saver).invoke({"messages": "hi"}, config_of("t"), durability="exit")

    assert found(path, grep="GRÜN") == ["t"]


def test_a_long_hit_is_cut_around_the_match(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        talk(saver, "t", "a" * 500 + " needle " + "b" * 500)
    hit = list_threads(open_reader(str(path)), ThreadQuery(grep="needle")).items[0].hit

    assert hit is not None
    assert len(hit) < 120
    assert hit.startswith("...a")
    assert hit.endswith("b...")


def test_a_search_tells_how_far_it_read(store: Path) -> None:
    listing = list_threads(open_reader(str(store)), ThreadQuery(grep="order-0", limit=1))

    assert next(listing).thread == "chat-0"
    assert listing.n_read == 3
    assert list(listing) == []
    assert [item.thread for item in listing.items] == ["chat-0"]


def test_listing_reads_one_head_row_a_thread_and_no_state(store: Path) -> None:
    reader = Counting(open_reader(str(store)))

    list(list_threads(reader, ThreadQuery(limit=3)))

    assert reader.threads == {"chat-0", "chat-1", "chat-2"}


class Counting:
    """Notes the threads of which rows, writes or states are read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.threads: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._reader, name)
        if name == "head_states":
            return self._of_many(method)
        if name not in ("rows", "stored", "writes", "namespaces"):
            return method

        def noting(thread: str, *args: Any, **kwargs: Any) -> Any:
            self.threads.add(thread)
            return method(thread, *args, **kwargs)

        return noting

    def _of_many(self, method: Any) -> Any:
        def noting(heads: Sequence[tuple[str, str]], *args: Any) -> Any:
            self.threads.update(thread for thread, _ in heads)
            return method(heads, *args)

        return noting


def test_a_thread_that_cannot_be_read_is_listed_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        for name in ("linear", "agent"):
            run_case(CATALOG[name], saver)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET checkpoint = x'c1' WHERE thread_id = ?", (thread_of("agent"),))

    assert found(path) == [thread_of("agent"), thread_of("linear")]
    assert found(path, grep="no refund") == [thread_of("agent")]
    assert found(path, grep="nothing") == []
