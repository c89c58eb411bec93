"""What a store offers to take rows away: what there is and what it weighs, and transactions that delete.

Apart from `Reader` and `Writer`, since neither a saver nor an Agent Server can delete single rows. Every method of a
`Deleter` is a short statement of its own; a `Deletion` is one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from agentctl.errors import Refused
from agentctl.records.prunes import Compaction, Key, Removed
from agentctl.stores.base import Reader

ThreadMark = tuple[object, ...]
"""Changes whenever rows are added to a thread, or taken from it; marks are only compared with each other."""


class Overtaken(Exception):
    """Another transaction changed the same rows at the same time; this one was rolled back."""


class ThreadEnd(NamedTuple):
    """A thread with any row, its newest checkpoint id in any namespace, and how many checkpoints it has.

    Of a thread that only pending writes are left of, the id is the newest that they name; only blobs: ''.
    """

    thread: str
    newest: str
    n_checkpoints: int


class ThreadOverview(NamedTuple):
    """What a thread is as a whole.

    Attributes:
        mark: What `Weighing.mark` gives of it.
        head: The newest checkpoint id of its root graph, '' where none is stored.
        rows: Its rows of all tables, and their bytes.
        asks: Whether the root graph has stored a question at any time, answered or not.
    """

    mark: ThreadMark
    head: str
    rows: Removed
    asks: bool


class RowWeight(NamedTuple):
    """One checkpoint with its pending writes, and their bytes; `is_stored` is False where only writes are left."""

    key: Key
    is_stored: bool
    n_writes: int
    n_bytes: int


class Weighing(Protocol):
    """Tells what is stored, by keys and lengths alone."""

    def mark(self, thread: str) -> ThreadMark:
        """Returns what tells the thread as it is now from the same thread later."""
        ...

    def weights(self, thread: str) -> Sequence[RowWeight]:
        """Returns every checkpoint of a thread, in all namespaces, in no order."""
        ...

    def blobs_beside(self, thread: str, kept: Collection[Key]) -> Removed:
        """Returns how many blobs none of some checkpoints names; none where values lie in the checkpoints."""
        ...

    def stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """Returns how many blobs no checkpoint names at all.

        Args:
            thread: Thread id.
            newer: Also those of versions that come after all that are named, which a run may be about to name.
        """
        ...


class Deletion(Weighing, Protocol):
    """One transaction: committed where its block ends well, else rolled back."""

    def reader(self) -> Reader:
        """Returns a reader that sees the transaction's own rows."""
        ...

    def set_parent(self, thread: str, key: Key, parent: str | None) -> None:
        """Makes a checkpoint the child of another, or a root."""
        ...

    def set_snapshot(self, thread: str, key: Key, channel: str, snapshot: bytes) -> None:
        """Stores the whole value of a delta channel with a checkpoint.

        Args:
            thread: Thread id.
            key: The checkpoint.
            channel: A channel that it has a version of.
            snapshot: The packed `_DeltaSnapshot`.
        """
        ...

    def delete(self, thread: str, keys: Sequence[Key]) -> Removed:
        """Deletes checkpoints with their pending writes, and blobs that no other checkpoint of the thread names."""
        ...

    def delete_stray_writes(self, thread: str, keys: Sequence[Key]) -> Removed:
        """Deletes the pending writes of checkpoints, but of those that are stored."""
        ...

    def delete_stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """Deletes what `stray_blobs` counts."""
        ...

    def delete_thread(self, thread: str) -> Removed:
        """Deletes every row of a thread in every table."""
        ...


class Deleter(Weighing, Protocol):
    """A store whose rows can be taken away."""

    def threads(self, *, after: str | None, limit: int) -> Sequence[ThreadEnd]:
        """Returns threads with rows in any table, in the order of the database, that come after one; None for all."""
        ...

    def overviews(self, threads: Sequence[str]) -> Mapping[str, ThreadOverview]:
        """Returns what each of some threads is as a whole, but for those without rows: a page of them is one read."""
        ...

    def n_rows(self, thread: str) -> int:
        """Returns how many rows of all tables belong to a thread."""
        ...

    def check_allowed(self, *, compact: bool) -> None:
        """Looks whether rows may be taken away, before any is.

        Args:
            compact: Whether `compact` is to follow.

        Raises:
            StoreError: This role may not delete rows.
            Refused: The database gives room back by itself.
        """
        ...

    def transaction(self) -> AbstractContextManager[Deletion]:
        """Yields one transaction.

        Raises:
            Overtaken: Another transaction changed the same rows; nothing was done.
            StoreError: The store is locked, cannot be reached, or refuses.
        """
        ...

    def compact(self) -> Compaction:
        """Gives the room of deleted rows back to the system."""
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...


def open_deleter(url: str, reader: Reader, *, schema: str | None = None) -> Deleter:
    """Returns what takes rows of a store away. Nothing is written by opening it.

    Args:
        url: Text of the store, which may hold a password.
        reader: The same store open for reading.
        schema: Postgres schema of the tables; None takes the search path.

    Raises:
        Refused: It is no database, or its tables are newer than this version knows.
    """
    from agentctl.stores.urls import parse_store_url

    kind = reader.info.kind
    if kind == "sqlite":
        from agentctl.stores.sqlite.deleting import SqliteDeleter

        return SqliteDeleter(Path(parse_store_url(url).location), reader.info)
    if kind == "postgres":
        from agentctl.stores.postgres.deleting import PostgresDeleter

        return PostgresDeleter(parse_store_url(url).location, reader, schema=schema)
    what, hint = _NO_ROWS.get(kind, (f"a {kind}", "give the database behind it"))
    raise Refused(f"{reader.info} is {what}: its rows are not pruned from here", hint=hint)


_DATABASE = "agentctl prune --store FILE.sqlite|postgresql://..."
_NO_ROWS = {
    "saver": ("a saver, which has no way to take single rows away", f"give the database behind it: {_DATABASE}"),
    "server": (
        "an Agent Server, which deletes its own threads",
        "its ttl setting, or threads.prune of langgraph-sdk with its strategy said: the default is to delete the "
        "threads; the database behind it: " + _DATABASE,
    ),
}
