"""The `Reader` on SQLite: own SQL on the stock tables, one short transaction a call.

Source: langgraph-checkpoint-sqlite 3.1.2, checkpoint/sqlite/__init__.py (`setup`) and store/sqlite/base.py
(`MIGRATIONS`). LangGraph.js writes the same tables without `task_path`, with rows of type `json`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentctl.errors import StoreError
from agentctl.records.rows import CheckpointRow, Large, MemoryItem, Stored, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores import bookkeeping
from agentctl.stores.base import StoreInfo
from agentctl.stores.batches import by_size, in_chunks
from agentctl.stores.fetched import checkpoint_row, require_texts, stored_value, write_rows
from agentctl.stores.heads import HeadState
from agentctl.stores.large import changed
from agentctl.stores.memory_items import memory_item
from agentctl.stores.sqlite.heads import read_head_states
from agentctl.stores.sqlite.keys import ThreadKeys, read_keys
from agentctl.stores.sqlite.opening import Readable, SqliteFile
from agentctl.stores.sqlite.parts import Cell, in_chunks_of, large_values, read_parts

if TYPE_CHECKING:
    from agentctl.stores.sqlite.audit import SqliteAudit
    from agentctl.stores.sqlite.sizes import SqliteSizes

CHECKPOINT_COLUMNS = (
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "parent_checkpoint_id",
    "type",
    "checkpoint",
    "metadata",
)
WRITE_COLUMNS = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value")
TASK_PATH = "task_path"
"""A column of `writes` that files older than langgraph-checkpoint-sqlite 3.1 and those of LangGraph.js lack."""
STORE_COLUMNS = ("prefix", "key", "value", "created_at", "updated_at")

HEADS_QUERY = (
    "SELECT thread_id, COUNT(*), MIN(checkpoint_id), MAX(checkpoint_id) FROM checkpoints"
    " WHERE checkpoint_ns = '' GROUP BY thread_id"
)
"""Answered from the index of the primary key alone: no page that holds state is read."""

WHOLE_BYTES = 256 * 1024

_ROWS_PER_READ = 500
_IDS_PER_READ = 10_000
_BATCH_BYTES = 8 * 1024 * 1024


class SqliteReader:
    """A SQLite checkpoint file open for looking; see `agentctl.stores.base.Reader`.

    Args:
        path: The file; it must exist and hold LangGraph's tables.
        profile: The name the store was reached by, or ''.
        file: The file already open, such as a transaction that sees its own rows; None opens it without a trace.
        whole_bytes: Larger states are read in parts, where not all of their values are asked for.

    Attributes:
        keys: The rows that are seen, of threads that are looked at as they stood at one moment.

    Raises:
        StoreError: The file is missing, is no SQLite database, or has no checkpoints tables. Nothing is created.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        profile: str = "",
        file: Readable | None = None,
        whole_bytes: int = WHOLE_BYTES,
    ) -> None:
        self._file: Readable = SqliteFile(Path(path)) if file is None else file
        self.info = StoreInfo(kind="sqlite", url=str(self._file.path), profile=profile)
        try:
            columns = self._file.read(partial(_check_layout, path=self._file.path))
        except StoreError:
            if file is None:
                self._file.close()
            raise
        self._has_task_path = TASK_PATH in columns
        self._whole_bytes = whole_bytes
        self.keys: Mapping[str, ThreadKeys] = {}

    @property
    def file(self) -> Readable:
        """What it reads."""
        return self._file

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """See `Reader.heads`. Counts come from the primary key's index alone."""
        counted = self._file.read(lambda connection: connection.execute(HEADS_QUERY).fetchall())
        for thread, _, first, newest in counted:
            if not type(thread) is type(first) is type(newest) is str:
                require_texts(thread_id=thread, checkpoint_id=newest)
        counted.sort(key=lambda found: (found[3], found[0]), reverse=True)
        heads: list[ThreadHead] = []
        for chunk in in_chunks(counted, _ROWS_PER_READ):
            keys = [(thread, newest) for thread, _, _, newest in chunk]
            rows = self._file.read(partial(_head_rows, keys=keys, metadata=metadata))
            heads += [ThreadHead(thread, n, first, rows[thread]) for thread, n, first, _ in chunk if thread in rows]
        return heads

    def head_states(self, heads: Sequence[tuple[str, str]], is_asked: Callable[[str], bool]) -> Mapping[str, HeadState]:
        """See `agentctl.stores.heads.ReadsHeads`. As they stood at one moment, they are read one by one."""
        if self.keys:
            return {}
        return self._file.read(partial(read_head_states, heads=heads, is_asked=is_asked, whole_bytes=self._whole_bytes))

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`."""
        found = self._file.read(
            lambda connection: connection.execute(
                "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_ns", (thread,)
            ).fetchall()
        )
        for (ns,) in found:
            require_texts(checkpoint_ns=ns)
        keys = self.keys.get(thread)
        return [ns for (ns,) in found if keys is None or ns in keys.checkpoints]

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`. Metadata lies behind the checkpoint in its record: SQLite walks the state to reach it."""
        columns = "checkpoint_id, parent_checkpoint_id" + (", metadata" if metadata else "")
        if ids is not None:
            found = self._rows_by_id(columns, thread, ns, ids)
        else:
            found = self._all_rows(columns, thread, ns, _ROWS_PER_READ if metadata else _IDS_PER_READ)
        seen = self._seen_ids(thread, ns)
        return [checkpoint_row(thread, ns, *record) for record in found if seen is None or record[0] in seen]

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """See `Reader.stored`. A few megabytes are held at a time, however long the list or large a state."""
        wanted = None if channels is None else frozenset(channels)
        in_parts = wanted is not None or value_bytes is not None
        sizes = self._sizes(thread, ns, ids)
        present = [
            (checkpoint_id, sizes[checkpoint_id]) for checkpoint_id in dict.fromkeys(ids) if checkpoint_id in sizes
        ]
        columns = "checkpoint_id, parent_checkpoint_id, metadata, type, checkpoint"
        parts = partial(read_parts, thread=thread, ns=ns, channels=wanted, value_bytes=value_bytes)
        for batch in by_size(present, _BATCH_BYTES, _ROWS_PER_READ):
            large = [i for i in batch if in_parts and sizes[i] > self._whole_bytes]
            in_part = {i: self._file.read(partial(parts, checkpoint_id=i)) for i in large}
            whole = [i for i in batch if in_part.get(i) is None]
            records = {record[0]: record for record in self._rows_by_id(columns, thread, ns, whole)}
            for checkpoint_id in batch:
                found = in_part.pop(checkpoint_id, None)
                if found is not None:
                    yield found
                elif checkpoint_id in records:
                    *head, type_, data = records.pop(checkpoint_id)
                    row = checkpoint_row(thread, ns, *head)
                    state = bookkeeping.read_state(row, stored_value(type_, data), wanted)
                    yield bookkeeping.without_large_values(state, value_bytes)

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """See `Reader.writes`."""
        task_path = TASK_PATH if self._has_task_path else "NULL"
        value, limit = _value_up_to(value_bytes)
        query = (
            f"SELECT checkpoint_id, {task_path}, task_id, idx, channel, type, {value}, length(value) FROM writes"
            " WHERE thread_id = ? AND checkpoint_ns = ?"
        )
        parameters: tuple[object, ...] = (*limit, thread, ns)
        if channels is not None:
            query += f" AND channel IN ({_marks(channels)})"
            parameters += tuple(channels)
        found: list[tuple[Any, ...]] = []
        if ids is None:
            found = self._fetch(query, parameters)
        else:
            for chunk in in_chunks(sorted(set(ids)), _ROWS_PER_READ):
                found += self._fetch(f"{query} AND checkpoint_id IN ({_marks(chunk)})", (*parameters, *chunk))
        keys = self.keys.get(thread)
        if keys is not None:
            found = [record for record in found if keys.has_write(ns, record[0], record[2], record[3])]
        return write_rows(ns, found)

    def large_values(self, thread: str, ns: str, id: str, channels: Collection[str]) -> Mapping[str, Stored | Large]:
        """See `agentctl.stores.large.ReadsInParts`. A state that is JSON or encrypted is read whole."""
        found = large_values(self._file, thread, ns, id, channels)
        if found is not None:
            return found
        whole = next(self.stored(thread, ns, [id], channels=channels), None)
        return {} if whole is None else whole.values

    def large_write(self, thread: str, write: WriteRow) -> Stored | Large:
        """See `agentctl.stores.large.ReadsInParts`."""
        key: dict[str, object] = {"thread_id": thread, "checkpoint_ns": write.ns, "checkpoint_id": write.checkpoint_id}
        key |= {"task_id": write.task_id, "idx": write.idx}
        columns = " AND ".join(f"{name} = ?" for name in key)
        found = self._fetch(f"SELECT type FROM writes WHERE {columns}", tuple(key.values()))
        chunks = in_chunks_of(self._file, Cell("writes", "value", key)) if found else None
        if chunks is not None:
            return Large(found[0][0] or "", chunks)
        whole = self._fetch(f"SELECT type, value FROM writes WHERE {columns}", tuple(key.values()))
        if not whole:
            raise changed()
        return stored_value(*whole[0])

    def row_keys(self, thread: str) -> Collection[tuple[str, str]]:
        """See `agentctl.stores.keyed.Keyed.row_keys`."""
        keys = self.keys.get(thread) or self._file.read(partial(read_keys, threads=[thread]))[thread]
        return {(ns, id) for ns, ids in keys.checkpoints.items() for id in ids} | keys.writes.keys()

    def find_run(self, run_id: str) -> Sequence[str]:
        """See `Reader.find_run`. Reads every row's metadata."""
        found = self._fetch(
            "SELECT thread_id, metadata FROM checkpoints WHERE instr(CAST(metadata AS TEXT), ?) > 0", (run_id,)
        )
        return sorted(
            {str(thread) for thread, raw in found if bookkeeping.names_run(bookkeeping.decode_metadata(raw)[0], run_id)}
        )

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """See `Reader.memory`."""
        if not self._fetch("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'store'", ()):
            return []
        query = f"SELECT {', '.join(STORE_COLUMNS)} FROM store"
        text = ".".join(prefix)
        if prefix:
            query += " WHERE prefix = ? OR substr(prefix, 1, length(?) + 1) = ? || '.'"
        found = self._fetch(f"{query} ORDER BY prefix, key", (text, text, text) if prefix else ())
        return [memory_item(*record) for record in found]

    @contextmanager
    def still(self, threads: Collection[str]) -> Iterator[SqliteReader]:
        """See `agentctl.stores.moments.Stillable.still`. No transaction is held: keys tell which rows there were."""
        if self.keys:
            yield self
            return
        reader = SqliteReader(self._file.path, profile=self.info.profile, file=self._file)
        reader.keys = self._file.read(partial(read_keys, threads=threads))
        yield reader

    def sizes(self) -> SqliteSizes:
        """See `agentctl.stores.sizes.Measurable.sizes`."""
        from agentctl.stores.sqlite.sizes import SqliteSizes

        return SqliteSizes(self._file, self)

    def audit(self) -> SqliteAudit:
        """See `agentctl.stores.audit.Auditable.audit`."""
        from agentctl.stores.sqlite.audit import SqliteAudit

        return SqliteAudit(self._file, self.keys)

    def close(self) -> None:
        """See `Reader.close`."""
        self._file.close()

    def _fetch(self, query: str, parameters: tuple[object, ...]) -> list[tuple[Any, ...]]:
        return self._file.read(lambda connection: connection.execute(query, parameters).fetchall())

    def _all_rows(self, columns: str, thread: str, ns: str, per_read: int) -> list[tuple[Any, ...]]:
        """Fetches a namespace's rows newest first, a page a transaction, so that no lock is held for long."""
        query = f"SELECT {columns} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
        page = self._fetch(f"{query} ORDER BY checkpoint_id DESC LIMIT ?", (thread, ns, per_read))
        found = list(page)
        while len(page) == per_read:
            page = self._fetch(
                f"{query} AND checkpoint_id < ? ORDER BY checkpoint_id DESC LIMIT ?",
                (thread, ns, page[-1][0], per_read),
            )
            found += page
        return found

    def _rows_by_id(self, columns: str, thread: str, ns: str, ids: Collection[str]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for chunk in in_chunks(sorted(set(ids), reverse=True), _ROWS_PER_READ):
            found += self._fetch(
                f"SELECT {columns} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
                f" AND checkpoint_id IN ({_marks(chunk)}) ORDER BY checkpoint_id DESC",
                (thread, ns, *chunk),
            )
        return found

    def _seen_ids(self, thread: str, ns: str) -> Collection[str] | None:
        keys = self.keys.get(thread)
        return None if keys is None else keys.checkpoints.get(ns, ())

    def _sizes(self, thread: str, ns: str, ids: Collection[str]) -> dict[str, int]:
        """Returns bytes by id; SQLite knows a blob's length without reading it."""
        found = self._rows_by_id("checkpoint_id, length(checkpoint)", thread, ns, ids)
        return {str(checkpoint_id): int(n_bytes or 0) for checkpoint_id, n_bytes in found}


def _check_layout(connection: sqlite3.Connection, path: Path) -> frozenset[str]:
    """Returns the columns of `writes`.

    Raises:
        StoreError: The tables or columns that are read are not there.
    """
    tables = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    for table, needed in (("checkpoints", CHECKPOINT_COLUMNS), ("writes", WRITE_COLUMNS)):
        if table not in tables:
            raise StoreError(
                f"{path} holds no LangGraph checkpoints: it has no table {table}",
                hint=f"its tables are: {', '.join(tables)}" if tables else "the file is empty; check the path",
            )
        missing = sorted(set(needed) - _columns(connection, table))
        if missing:
            raise StoreError(
                f"{path}: table {table} lacks {', '.join(missing)}, so it is not a layout this version reads",
                hint="open the file once with a current langgraph-checkpoint-sqlite, on a copy",
            )
    return _columns(connection, "writes")


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(record[1] for record in connection.execute(f"PRAGMA table_info({table})"))


def _head_rows(
    connection: sqlite3.Connection, keys: Sequence[tuple[str, str]], metadata: bool
) -> dict[str, CheckpointRow]:
    columns = "checkpoint_id, parent_checkpoint_id" + (", metadata" if metadata else "")
    query = f"SELECT {columns} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
    found = ((key[0], connection.execute(query, key).fetchone()) for key in keys)
    return {thread: checkpoint_row(thread, "", *record) for thread, record in found if record is not None}


def _value_up_to(n_bytes: int | None) -> tuple[str, tuple[int, ...]]:
    """Returns the SQL of a write's value, NULL where it is larger, with its parameters."""
    if n_bytes is None:
        return "coalesce(value, x'')", ()
    if n_bytes == 0:
        return "NULL", ()
    return "CASE WHEN coalesce(length(value), 0) <= ? THEN coalesce(value, x'') END", (n_bytes,)


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
