"""Taking rows of a SQLite file away, in short transactions that an application beside them waits for.

Source: langgraph-checkpoint-sqlite 3.1.2, checkpoint/sqlite/__init__.py (`setup`, `put`); www.sqlite.org,
lang_vacuum.html and wal.html.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from agentctl.codec.packed import join_map, split_map
from agentctl.errors import StoreError
from agentctl.records.prunes import Compaction, Key, Removed
from agentctl.stores.base import Reader, StoreInfo
from agentctl.stores.deleting import Deletion, RowWeight, ThreadEnd, ThreadMark, ThreadOverview
from agentctl.stores.fetched import require_texts
from agentctl.stores.reading.layout import INTERRUPT
from agentctl.stores.sqlite.opening import SqliteFile, store_error
from agentctl.stores.sqlite.writer import SqliteTransaction, SqliteWriter

_TABLES: Final = ("checkpoints", "writes")
_OF_KEY: Final = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_NOT_STORED: Final = """
AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = writes.thread_id
    AND c.checkpoint_ns = writes.checkpoint_ns AND c.checkpoint_id = writes.checkpoint_id)
"""
_VACUUM_TIMEOUT_S: Final = 30.0
_NONE: Final = (0, 0)

_THREADS: Final = """
SELECT thread_id, max(newest), sum(n) FROM (
    SELECT * FROM (SELECT thread_id, max(checkpoint_id) AS newest, count(*) AS n FROM checkpoints {after}
                   GROUP BY thread_id ORDER BY thread_id LIMIT :n)
    UNION ALL
    SELECT * FROM (SELECT thread_id, max(checkpoint_id) AS newest, 0 AS n FROM writes {after}
                   GROUP BY thread_id ORDER BY thread_id LIMIT :n)
) GROUP BY thread_id ORDER BY thread_id LIMIT :n
"""
_NAMESPACES: Final = """
SELECT checkpoint_ns, count(*), max(checkpoint_id) FROM checkpoints WHERE thread_id = ?
GROUP BY checkpoint_ns ORDER BY checkpoint_ns
"""
_WRITES: Final = "SELECT count(*), max(checkpoint_id), max(rowid) FROM writes WHERE thread_id = ?"
_NO_WRITES: Final = (0, None, None)
_CHECKPOINTS_OF_EACH: Final = """
SELECT thread_id, checkpoint_ns, count(*), max(checkpoint_id),
    sum(coalesce(length(checkpoint), 0) + coalesce(length(metadata), 0))
FROM checkpoints WHERE thread_id IN ({threads}) GROUP BY thread_id, checkpoint_ns ORDER BY thread_id, checkpoint_ns
"""
_WRITES_OF_EACH: Final = """
SELECT thread_id, count(*), max(checkpoint_id), max(rowid), coalesce(sum(length(value)), 0),
    max(channel = ? AND checkpoint_ns = '')
FROM writes WHERE thread_id IN ({threads}) GROUP BY thread_id
"""
_CHECKPOINT_WEIGHTS: Final = """
SELECT checkpoint_ns, checkpoint_id, coalesce(length(checkpoint), 0) + coalesce(length(metadata), 0)
FROM checkpoints WHERE thread_id = ?
"""
_WRITE_WEIGHTS: Final = """
SELECT checkpoint_ns, checkpoint_id, count(*), coalesce(sum(length(value)), 0) FROM writes WHERE thread_id = ?
GROUP BY checkpoint_ns, checkpoint_id
"""


class SqliteDeleter:
    """See `agentctl.stores.deleting.Deleter`.

    Args:
        path: The file; it must exist.
        info: How it is named.
    """

    def __init__(self, path: Path, info: StoreInfo) -> None:
        self._file = SqliteFile(path)
        self._writer = SqliteWriter(self._file.path, create=False, profile=info.profile)

    def threads(self, *, after: str | None, limit: int) -> Sequence[ThreadEnd]:
        """See `Deleter.threads`."""
        query = _THREADS.format(after="" if after is None else "WHERE thread_id > :after")
        given = {"n": limit, "after": after}
        found = self._file.read(lambda connection: connection.execute(query, given).fetchall())
        ends = (ThreadEnd(str(thread), str(newest or ""), int(n)) for thread, newest, n in found)
        # An id that is no UTF-8 is read as other text, after which it would come again and again.
        return [end for end in ends if after is None or end.thread > after]

    def mark(self, thread: str) -> ThreadMark:
        """See `Weighing.mark`."""
        return self._file.read(partial(_mark, thread=thread))

    def weights(self, thread: str) -> Sequence[RowWeight]:
        """See `Weighing.weights`."""
        return self._file.read(partial(_weights, thread=thread))

    def blobs_beside(self, thread: str, kept: Collection[Key]) -> Removed:
        """See `Weighing.blobs_beside`: values lie in the checkpoints."""
        return Removed()

    def stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """See `Weighing.stray_blobs`: values lie in the checkpoints."""
        return Removed()

    def overviews(self, threads: Sequence[str]) -> Mapping[str, ThreadOverview]:
        """See `Deleter.overviews`."""
        return self._file.read(partial(_overviews, threads=threads))

    def n_rows(self, thread: str) -> int:
        """See `Deleter.n_rows`."""
        counts = [
            self._file.read(
                lambda connection, table=table: connection.execute(  # type: ignore[misc]
                    f"SELECT count(*) FROM {table} WHERE thread_id = ?", (thread,)
                ).fetchone()[0]
            )
            for table in _TABLES
        ]
        return sum(counts)

    def check_allowed(self, *, compact: bool) -> None:
        """See `Deleter.check_allowed`: the file's permissions decide, at the first transaction."""

    @contextmanager
    def transaction(self) -> Iterator[Deletion]:
        """See `Deleter.transaction`. It holds the file's one write lock, so nothing can overtake it."""
        with self._writer.transaction() as transaction:
            yield SqliteDeletion(transaction)

    def compact(self) -> Compaction:
        """See `Deleter.compact`: VACUUM, then the `-wal` cut to nothing, or the file would stay as large as it is."""
        path = self._file.path
        before = _disk_bytes(path)
        try:
            with closing(sqlite3.connect(path, timeout=_VACUUM_TIMEOUT_S, isolation_level=None)) as connection:
                connection.execute("VACUUM")
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            return Compaction(before, _disk_bytes(path), store_error(path, error).message)
        problem = "another program reads the file, so its -wal could not be cut" if busy else ""
        return Compaction(before, _disk_bytes(path), problem)

    def close(self) -> None:
        """See `Deleter.close`."""
        self._file.close()
        self._writer.close()


class SqliteDeletion:
    """See `agentctl.stores.deleting.Deletion`."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        self._transaction = transaction

    def reader(self) -> Reader:
        """See `Deletion.reader`."""
        return self._transaction.reader()

    def mark(self, thread: str) -> ThreadMark:
        """See `Weighing.mark`."""
        return self._transaction.read(partial(_mark, thread=thread))

    def weights(self, thread: str) -> Sequence[RowWeight]:
        """See `Weighing.weights`."""
        return self._transaction.read(partial(_weights, thread=thread))

    def blobs_beside(self, thread: str, kept: Collection[Key]) -> Removed:
        """See `Weighing.blobs_beside`: values lie in the checkpoints."""
        return Removed()

    def stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """See `Weighing.stray_blobs`: values lie in the checkpoints."""
        return Removed()

    def set_parent(self, thread: str, key: Key, parent: str | None) -> None:
        """See `Deletion.set_parent`."""
        self._execute(f"UPDATE checkpoints SET parent_checkpoint_id = ? WHERE {_OF_KEY}", (parent, thread, *key))

    def set_snapshot(self, thread: str, key: Key, channel: str, snapshot: bytes) -> None:
        """See `Deletion.set_snapshot`. All else of the packed checkpoint stays byte for byte what it was."""
        found = self._execute(f"SELECT type, checkpoint FROM checkpoints WHERE {_OF_KEY}", (thread, *key)).fetchone()
        if found is None or found[0] != "msgpack":
            raise StoreError(f"checkpoint {key[1]} cannot take a snapshot: it is of type {found and found[0]!r}")
        parts = split_map(bytes(found[1]))
        parts["channel_values"] = join_map({**split_map(parts["channel_values"]), channel: snapshot})
        self._execute(f"UPDATE checkpoints SET checkpoint = ? WHERE {_OF_KEY}", (join_map(parts), thread, *key))

    def delete(self, thread: str, keys: Sequence[Key]) -> Removed:
        """See `Deletion.delete`."""
        places = [(thread, *key) for key in keys]
        n_writes, n_checkpoints = (self._delete_all(table, places) for table in ("writes", "checkpoints"))
        return Removed(n_checkpoints, n_writes)

    def delete_stray_writes(self, thread: str, keys: Sequence[Key]) -> Removed:
        """See `Deletion.delete_stray_writes`."""
        places = [(thread, *key) for key in keys]
        return Removed(n_writes=self._delete_all("writes", places, _NOT_STORED))

    def delete_stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """See `Deletion.delete_stray_blobs`: values lie in the checkpoints."""
        return Removed()

    def delete_thread(self, thread: str) -> Removed:
        """See `Deletion.delete_thread`."""
        n_writes, n_checkpoints = (
            self._execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread,)).rowcount
            for table in ("writes", "checkpoints")
        )
        return Removed(n_checkpoints, n_writes)

    def _delete_all(self, table: str, places: Sequence[tuple[str, ...]], beside: str = "") -> int:
        statement = f"DELETE FROM {table} WHERE {_OF_KEY} {beside}"
        return self._transaction.read(lambda connection: connection.executemany(statement, places)).rowcount

    def _execute(self, query: str, parameters: tuple[object, ...]) -> sqlite3.Cursor:
        return self._transaction.read(lambda connection: connection.execute(query, parameters))


def _mark(connection: sqlite3.Connection, thread: str) -> ThreadMark:
    namespaces = connection.execute(_NAMESPACES, (thread,)).fetchall()
    return (*namespaces, connection.execute(_WRITES, (thread,)).fetchone())


def _overviews(connection: sqlite3.Connection, threads: Sequence[str]) -> dict[str, ThreadOverview]:
    marks = ", ".join("?" * len(threads))
    namespaces: dict[str, list[tuple[Any, ...]]] = {}
    for thread, *found in connection.execute(_CHECKPOINTS_OF_EACH.format(threads=marks), threads):
        namespaces.setdefault(thread, []).append(tuple(found))
    query, parameters = _WRITES_OF_EACH.format(threads=marks), (INTERRUPT, *threads)
    writes = {thread: found for thread, *found in connection.execute(query, parameters)}
    return {
        thread: _overview(namespaces.get(thread, ()), writes.get(thread, (*_NO_WRITES, 0, 0)))
        for thread in threads
        if thread in namespaces or thread in writes
    }


def _overview(namespaces: Sequence[tuple[Any, ...]], writes: Sequence[Any]) -> ThreadOverview:
    *written, write_bytes, asks = writes
    n_bytes = sum(found[-1] for found in namespaces) + write_bytes
    return ThreadOverview(
        mark=(*(found[:-1] for found in namespaces), tuple(written)),
        head=next((newest for ns, _, newest, _ in namespaces if ns == ""), ""),
        rows=Removed(sum(n for _, n, *_ in namespaces), written[0], 0, n_bytes),
        asks=bool(asks),
    )


def _weights(connection: sqlite3.Connection, thread: str) -> list[RowWeight]:
    rows: dict[Key, int] = {
        (ns, id): n_bytes for ns, id, n_bytes in connection.execute(_CHECKPOINT_WEIGHTS, (thread,)).fetchall()
    }
    writes: dict[Key, tuple[Any, Any]] = {
        (ns, id): (n, n_bytes) for ns, id, n, n_bytes in connection.execute(_WRITE_WEIGHTS, (thread,)).fetchall()
    }
    for ns, id in rows.keys() | writes.keys():
        require_texts(checkpoint_ns=ns, checkpoint_id=id)
    return [
        RowWeight(key, key in rows, writes.get(key, _NONE)[0], rows.get(key, 0) + writes.get(key, _NONE)[1])
        for key in rows.keys() | writes.keys()
    ]


def _disk_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")) if file.exists())
