"""Deleting a case: everything that is kept of a thread, and what is remembered about its owner."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from graphs.common.database import Database

_TABLES = ("outbound_requests", "answer_claims")
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went: rows of the application's tables and items of the memory store. Checkpoints are not counted."""

    n_rows: int
    n_items: int


def delete_case(
    thread: str,
    *,
    saver: BaseCheckpointSaver[Any],
    memory: BaseStore | None,
    namespace: tuple[str, ...],
    database: Database,
    tables: Collection[str] = (),
) -> Deleted:
    """Deletes a thread's checkpoints, writes and blobs, its rows of the application, and its owner's memory.

    Args:
        thread: The thread.
        saver: The checkpointer.
        memory: The memory store, None where there is none.
        namespace: What is remembered about the owner; namespaces below it go too.
        database: The application's database.
        tables: Further tables of its own that name their rows' `thread`.
    """
    saver.delete_thread(thread)
    with database.transaction() as transaction:
        n_rows = sum(
            len(transaction.execute(f"DELETE FROM {table} WHERE thread = ? RETURNING thread", (thread,)))
            for table in (*_TABLES, *tables)
        )
    return Deleted(n_rows, 0 if memory is None else _forget(memory, namespace))


def _forget(memory: BaseStore, namespace: tuple[str, ...]) -> int:
    n_items = 0
    while items := memory.search(namespace, limit=_PAGE):
        for item in items:
            memory.delete(item.namespace, item.key)
        n_items += len(items)
    return n_items
