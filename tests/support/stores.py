"""Stock savers and memory stores, on SQLite and on Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
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


def copied(saver: InMemorySaver, thread: str, name: str) -> InMemorySaver:
    """A saver of its own that holds a thread of another one under another name."""
    own = InMemorySaver()
    for namespace, checkpoints in saver.storage[thread].items():
        own.storage[name][namespace].update(checkpoints)
    for (of, namespace, checkpoint), writes in saver.writes.items():
        if of == thread:
            own.writes[name, namespace, checkpoint] = dict(writes)
    for (of, namespace, channel, version), blob in saver.blobs.items():
        if of == thread:
            own.blobs[name, namespace, channel, version] = blob
    return own
