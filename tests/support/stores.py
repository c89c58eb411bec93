"""Stock savers and memory stores, on SQLite and on Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from tests.support.stored import is_postgres


def saver_at(url: str) -> Any:
    """The stock saver on a store, as a context manager; it is not set up."""
    return (PostgresSaver if is_postgres(url) else SqliteSaver).from_conn_string(url)


@contextmanager
def stores_at(url: str) -> Iterator[tuple[Any, Any]]:
    """The stock saver and memory store on a store, set up."""
    memory_kind: Any = PostgresStore if is_postgres(url) else SqliteStore
    with ExitStack() as stack:
        saver, memory = stack.enter_context(saver_at(url)), stack.enter_context(memory_kind.from_conn_string(url))
        saver.setup()
        memory.setup()
        yield saver, memory
