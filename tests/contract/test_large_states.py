"""Large values are stepped over, not held, wherever a command does not print them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph

from agentctl.records.rows import StoredCheckpoint
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.history import read_history
from agentctl.stores.sqlite.reader import SqliteReader
from agentctl.testing import run_cli
from tests.catalog import CATALOG, sqlite_case
from tests.support.stores import saver_at

N_BYTES = 3_000_000


class State(TypedDict):
    document: str
    pages: list[str]
    left: int


def write_large(url: str) -> None:
    """Writes a checkpoint and two updates of it; the second one's values are large, and it leaves no rows."""
    graph: Any = StateGraph(State).add_node("edit", lambda state: {}).add_edge(START, "edit")
    with saver_at(url) as saver:
        saver.setup()
        bound = graph.compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "large"}}
        first = bound.update_state(thread, {"document": "", "pages": [], "left": 1}, as_node="edit")
        for text in ("small", "x" * N_BYTES):
            bound.update_state(first, {"document": text, "pages": [text], "left": 0}, as_node="edit")


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("large") / "large.sqlite")
    write_large(path)
    return path


def peak_bytes(work: Callable[[], object]) -> int:
    """The most that Python held at a time for a piece of work."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["agent two turns", "join", "delta", "fan out"])
def test_a_state_read_in_parts_is_the_state_read_whole(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]

    def read(reader: Reader, channels: Collection[str] | None, value_bytes: int | None) -> list[StoredCheckpoint]:
        ids = [row.id for row in reader.rows(case.thread)]
        return list(reader.stored(case.thread, "", ids, channels=channels, value_bytes=value_bytes))

    with (
        sqlite_case(tmp_path, case) as (path, _),
        closing(SqliteReader(path)) as whole,
        closing(SqliteReader(path, whole_bytes=0)) as in_parts,
    ):
        everything = read(whole, None, None)
        some = {next(iter(sorted(state.values)), "") for state in everything}
        for channels in (None, (), some):
            for value_bytes in (None, 0, 20):
                assert read(in_parts, channels, value_bytes) == read(whole, channels, value_bytes)
        assert any(state.unread for state in read(in_parts, None, 0))


@pytest.mark.parametrize("words", [("history",), ("size", "--by", "channel"), ("show", "--channel", "left")])
def test_looking_holds_no_large_value_that_it_does_not_print(words: tuple[str, ...], large_file: str) -> None:
    command, *options = words

    peak = peak_bytes(lambda: run_cli(command, "large", *options, "--store", large_file))

    assert peak < N_BYTES


def test_an_update_with_a_large_value_is_told_by_its_channel(large_file: str, fresh_postgres_url: str) -> None:
    write_large(fresh_postgres_url)
    for url in (large_file, fresh_postgres_url):
        with closing(open_reader(url)) as reader:
            large, small, _ = read_history(reader, "large").items

            assert small.summary == 'document = "small", pages = ["small"], left = 0'
            assert large.summary == "document changed, left = 0, pages changed"


def test_postgres_sends_no_inline_text_that_was_not_asked_for(fresh_postgres_url: str) -> None:
    write_large(fresh_postgres_url)
    with closing(open_reader(fresh_postgres_url)) as reader:
        ids = [row.id for row in reader.rows("large")]

        def states() -> Iterator[StoredCheckpoint]:
            return reader.stored("large", "", ids, channels=["left"])

        assert [sorted(state.values) for state in states()] == [["left"]] * 3
        assert peak_bytes(lambda: list(states())) < N_BYTES


def test_a_conversation_holds_the_writes_of_few_steps_at_a_time(tmp_path: Path) -> None:
    class Chat(TypedDict):
        messages: list[Any]

    window: Any = [{"type": "human", "id": f"m-{i}", "content": "x" * 10_000} for i in range(10)]
    graph: Any = StateGraph(Chat)
    graph.add_node("again", lambda state: {"messages": window})
    graph.add_edge(START, "again").add_conditional_edges("again", lambda state: "again")
    path = str(tmp_path / "chat.sqlite")
    with saver_at(path) as saver, pytest.raises(GraphRecursionError):
        config = {"configurable": {"thread_id": "chat"}, "recursion_limit": 150}
        graph.compile(checkpointer=saver).invoke({"messages": window}, config, durability="sync")

    peak = peak_bytes(lambda: run_cli("show", "chat", "--messages", "--store", path))

    assert peak < 150 * 10 * 10_000 / 2
