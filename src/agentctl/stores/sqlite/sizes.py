"""What a SQLite file holds, counted without reading states: SQLite knows a value's length from the head of its record.

Long scans go in pages of a few thousand checkpoints, each a short transaction, so that a writer is not kept waiting.

Source: www.sqlite.org/fileformat2.html (record format) and dbstat.html; langgraph-checkpoint-sqlite 3.1.2,
store/sqlite/base.py (`MIGRATIONS`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any, Final

from agentctl.errors import StoreError
from agentctl.records.sizes import (
    ChannelPart,
    ChannelWrites,
    DatabaseSize,
    Role,
    RowSize,
    SizePart,
    StateValues,
    TableSize,
)
from agentctl.revisions.namespaces import node_path
from agentctl.stores.base import Reader
from agentctl.stores.batches import in_chunks
from agentctl.stores.fetched import require_texts
from agentctl.stores.large import LARGE_BYTES, values_of
from agentctl.stores.reading.state import delta_channels
from agentctl.stores.sizes import Tick
from agentctl.stores.sqlite.opening import Readable

_ROWS_PER_PAGE: Final = 2000
_IDS_PER_READ: Final = 500
_KEY: Final = ("thread_id", "checkpoint_ns", "checkpoint_id")
_MEMORY_TABLES: Final = {"store": ("value",), "store_vectors": ("embedding",)}
_TABLES: Final[tuple[tuple[str, Role], ...]] = (("checkpoints", "checkpoints"), ("writes", "writes"))


def _bytes(column: str) -> str:
    """Returns the SQL of a value's bytes. Of text, which LangGraph.js has stored, `length` would count characters."""
    return (
        f"coalesce(CASE typeof({column}) WHEN 'text' THEN length(CAST({column} AS BLOB)) ELSE length({column}) END, 0)"
    )


class SqliteSizes:
    """See `agentctl.stores.sizes.SizeReader`.

    Args:
        file: The open file.
        reader: What reads its states.
    """

    def __init__(self, file: Readable, reader: Reader) -> None:
        self._file = file
        self._reader = reader

    def parts(self, thread: str | None = None) -> Iterator[SizePart]:
        """See `SizeReader.parts`."""
        yield from _joined(self._checkpoints(thread))
        columns = f"thread_id, checkpoint_ns, count(*), sum({_bytes('value')})"
        writes = self._grouped("writes", columns, "thread_id, checkpoint_ns", thread)
        yield from _joined(SizePart("writes", *found) for found in writes)

    def written(self, thread: str | None = None) -> Iterator[ChannelWrites]:
        """See `SizeReader.written`."""
        for where, parameters in self._pages("writes", thread):
            # LIMIT keeps the measuring inside: the order of the groups is no index's, and whole values would be sorted.
            measured = f"SELECT checkpoint_ns, channel, {_bytes('value')} AS n FROM writes{where} LIMIT -1"
            query = f"SELECT checkpoint_ns, channel, count(*), sum(n) FROM ({measured}) GROUP BY 1, 2 ORDER BY 1, 2"
            for ns, channel, n_rows, n_bytes in self._fetch(query, parameters):
                require_texts(checkpoint_ns=ns, channel=channel)
                yield ChannelWrites(node_path(ns), channel, n_rows, n_bytes)

    def channels(self, thread: str | None = None, *, tick: Tick) -> Iterator[ChannelPart]:
        """See `SizeReader.channels`."""
        for owner, ns in self._namespaces(thread):
            yield from self._channels_of(owner, ns, tick)

    def values(self, thread: str | None = None, *, tick: Tick) -> Iterator[StateValues]:
        """See `SizeReader.values`."""
        for owner, ns in self._namespaces(thread):
            path = node_path(ns)
            for chunk in in_chunks(self._sizes(owner, ns), _IDS_PER_READ):
                ids = [checkpoint_id for checkpoint_id, _ in chunk]
                for stored in self._reader.stored(owner, ns, ids, value_bytes=LARGE_BYTES):
                    tick(1)
                    yield StateValues(owner, path, values_of(self._reader, stored), stored.damage)

    def largest(self, thread: str | None = None, *, limit: int | None) -> Sequence[RowSize]:
        """See `SizeReader.largest`."""
        state = f"{_bytes('checkpoint')} + {_bytes('metadata')}"
        checkpoints = (
            f"SELECT 'checkpoints', thread_id, checkpoint_ns, checkpoint_id, '', {state} AS n FROM checkpoints"
        )
        writes = (
            "SELECT 'writes', thread_id, checkpoint_ns, checkpoint_id || ' ' || task_id || ' ' || idx, channel,"
            f" {_bytes('value')} AS n FROM writes"
        )
        found: list[RowSize] = []
        for table, query in (("checkpoints", checkpoints), ("writes", writes)):
            for where, parameters in self._pages(table, thread):
                for row in self._fetch(f"{query}{where} ORDER BY n DESC LIMIT ?", (*parameters, limit or -1)):
                    require_texts(thread_id=row[1], checkpoint_ns=row[2], checkpoint_id=row[3], channel=row[4])
                    found.append(RowSize(*row))
                if limit is not None:
                    found = nlargest(limit, found, key=lambda row: row.n_bytes)
        return sorted(found, key=lambda row: (-row.n_bytes, row.table, row.thread, row.key))

    def database(self) -> DatabaseSize:
        """See `SizeReader.database`."""
        n_pages, page_bytes, n_free = (
            int(self._fetch(f"PRAGMA {name}")[0][0]) for name in ("page_count", "page_size", "freelist_count")
        )
        tables = [TableSize(name, role, index_bytes=self._index_bytes(name)) for name, role in _TABLES]
        for name, columns in _MEMORY_TABLES.items():
            if self._fetch("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)):
                size = " + ".join(_bytes(column) for column in columns)
                ((n_rows, n_bytes),) = self._fetch(f"SELECT count(*), coalesce(sum({size}), 0) FROM {name}")
                tables.append(TableSize(name, "memory", n_rows, n_bytes, index_bytes=self._index_bytes(name)))
        wal_bytes = _file_bytes(self._file.path.with_name(self._file.path.name + "-wal"))
        return DatabaseSize(tuple(tables), n_pages * page_bytes + wal_bytes, n_free * page_bytes, wal_bytes)

    def _checkpoints(self, thread: str | None) -> Iterator[SizePart]:
        """Yields the groups of each page. The newest is joined: as a column beside max() it would be read whole."""
        for where, parameters in self._pages("checkpoints", thread):
            for owner, ns, *found in self._fetch(
                f"SELECT thread_id, checkpoint_ns, n, state, metadata_, {_bytes('c.checkpoint')}, 1 FROM"
                f" (SELECT thread_id, checkpoint_ns, count(*) AS n, sum({_bytes('checkpoint')}) AS state,"
                f" sum({_bytes('metadata')}) AS metadata_, max(checkpoint_id) AS checkpoint_id FROM checkpoints{where}"
                " GROUP BY thread_id, checkpoint_ns)"
                " JOIN checkpoints c USING (thread_id, checkpoint_ns, checkpoint_id) ORDER BY thread_id, checkpoint_ns",
                parameters,
            ):
                require_texts(thread_id=owner, checkpoint_ns=ns)
                yield SizePart("checkpoints", owner, ns, *found)

    def _channels_of(self, thread: str, ns: str, tick: Tick) -> Iterator[ChannelPart]:
        path, counted = node_path(ns), dict[str, _Channel]()
        bookkeeping_bytes, unread = 0, dict[str, list[int]]()
        for chunk in in_chunks(self._sizes(thread, ns), _IDS_PER_READ):
            sizes = dict(chunk)
            for stored in self._reader.stored(thread, ns, list(sizes), value_bytes=0):
                tick(1)
                left = sizes[stored.row.id]
                if stored.damage is not None:
                    unread.setdefault(stored.damage, []).append(left)
                    continue
                for name in delta_channels(stored.row):
                    counted.setdefault(name, _Channel()).is_delta = True
                for name, n_bytes in stored.unread.items():
                    left -= n_bytes
                    counted.setdefault(name, _Channel()).add(n_bytes, stored.channel_versions.get(name))
                bookkeeping_bytes += left
        for name, channel in counted.items():
            yield channel.part(path, name)
        if bookkeeping_bytes > 0:
            yield ChannelPart(path, "", n_bytes=bookkeeping_bytes, rest="bookkeeping")
        for why, bytes_of_each in unread.items():
            yield ChannelPart(path, "", len(bytes_of_each), n_bytes=sum(bytes_of_each), rest="unread", why=why)

    def _namespaces(self, thread: str | None) -> Iterator[tuple[str, str]]:
        """Yields every (thread, namespace) that has checkpoints, each found from the one before by the index."""
        found = self._fetch(*_next_namespace(thread, None))
        while found:
            owner, ns = found[0]
            require_texts(thread_id=owner, checkpoint_ns=ns)
            yield owner, ns
            found = self._fetch(*_next_namespace(thread, (owner, ns)))
            if found == [(owner, ns)]:  # text that is no UTF-8 is read as other text, after which it comes again
                raise StoreError(f"the namespace {ns!r} of thread {owner!r} is no UTF-8 text: it cannot be measured")

    def _sizes(self, thread: str, ns: str) -> list[tuple[str, int]]:
        """Returns id and bytes of a namespace's checkpoints, newest first, in pages."""
        found: list[tuple[str, int]] = []
        query = (
            f"SELECT checkpoint_id, {_bytes('checkpoint')} FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = ?{} ORDER BY checkpoint_id DESC LIMIT ?"
        )
        page = self._fetch(query.format(""), (thread, ns, _ROWS_PER_PAGE))
        while page:
            require_texts(checkpoint_id=page[0][0])  # the newest: a blob comes after every text
            found += page
            after = (thread, ns, page[-1][0], _ROWS_PER_PAGE)
            page = self._fetch(query.format(" AND checkpoint_id < ?"), after)
        return found

    def _grouped(self, table: str, columns: str, by: str, thread: str | None) -> Iterator[tuple[Any, ...]]:
        """Yields the groups of each page of a table; a group that goes on in the next page comes again."""
        for where, parameters in self._pages(table, thread):
            for found in self._fetch(f"SELECT {columns} FROM {table}{where} GROUP BY {by} ORDER BY {by}", parameters):
                require_texts(**dict(zip(by.split(", "), found, strict=False)))
                yield found

    def _pages(self, table: str, thread: str | None) -> Iterator[tuple[str, tuple[object, ...]]]:
        """Yields WHERE clauses that cut a table into pages by checkpoint; one checkpoint's rows are never parted."""
        # A range over the whole key beside `thread_id = ?` would make SQLite walk the thread from its start each time.
        key = _KEY if thread is None else _KEY[1:]
        columns, marks = ", ".join(key), ", ".join("?" * len(key))
        own = [] if thread is None else ["thread_id = ?"]
        mine: tuple[object, ...] = () if thread is None else (thread,)
        low: tuple[object, ...] = ()
        while True:
            lower = [*own, *([f"({columns}) > ({marks})"] if low else [])]
            ends = self._fetch(
                f"SELECT {columns} FROM {table}{_where(lower)} ORDER BY {columns} LIMIT 1 OFFSET ?",
                (*mine, *low, _ROWS_PER_PAGE - 1),
            )
            if not ends:
                yield _where(lower), (*mine, *low)
                return
            yield _where([*lower, f"({columns}) <= ({marks})"]), (*mine, *low, *ends[0])
            low = ends[0]

    def _index_bytes(self, table: str) -> int | None:
        """Returns what a table's indexes take, None where this SQLite was built without `dbstat`.

        `dbstat` reads every page it tells of: those of indexes are few, those of a table would be the whole file.
        """
        indexes = self._fetch("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ?", (table,))
        query = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = ? AND aggregate = TRUE"
        try:
            return sum(int(self._fetch(query, name)[0][0]) for name in indexes)
        except _NoDbstat:
            return None

    def _fetch(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        def work(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            try:
                return connection.execute(query, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table: dbstat" in str(error):
                    raise _NoDbstat from error
                raise

        return self._file.read(work)


class _NoDbstat(Exception):
    """This SQLite cannot tell what an index takes."""


class _Channel:
    """What was counted of one channel of one namespace, newest checkpoint first."""

    __slots__ = ("is_delta", "n_bytes", "n_unversioned", "n_values", "newest_bytes", "versions")

    def __init__(self) -> None:
        self.n_values = self.n_bytes = self.newest_bytes = self.n_unversioned = 0
        self.versions: set[int] = set()
        self.is_delta = False

    def add(self, n_bytes: int, version: str | int | float | None) -> None:
        if self.n_values == 0:
            self.newest_bytes = n_bytes
        self.n_values += 1
        self.n_bytes += n_bytes
        if version is None:
            self.n_unversioned += 1
        else:
            self.versions.add(hash(version))  # a number takes half the room of the text

    def part(self, path: str, name: str) -> ChannelPart:
        n_distinct = len(self.versions) + self.n_unversioned
        return ChannelPart(path, name, self.n_values, n_distinct, self.n_bytes, self.newest_bytes, self.is_delta)


def _joined(found: Iterator[SizePart]) -> Iterator[SizePart]:
    """Puts together what pages have cut apart, and tells namespaces by their path of nodes."""
    last: SizePart | None = None
    for part in found:
        if last is not None and (last.thread, last.path) == (part.thread, part.path):
            part = part._replace(
                n_rows=last.n_rows + part.n_rows,
                n_bytes=last.n_bytes + part.n_bytes,
                metadata_bytes=last.metadata_bytes + part.metadata_bytes,
            )
        elif last is not None:
            yield last._replace(path=node_path(last.path))
        last = part
    if last is not None:
        yield last._replace(path=node_path(last.path))


def _next_namespace(thread: str | None, after: tuple[str, str] | None) -> tuple[str, tuple[object, ...]]:
    """Returns the query of the (thread, namespace) that comes next, with its parameters."""
    conditions: list[str] = []
    parameters: tuple[object, ...] = ()
    if thread is not None:
        conditions, parameters = ["thread_id = ?"], (thread,)
        if after is not None:
            conditions, parameters = [*conditions, "checkpoint_ns > ?"], (thread, after[1])
    elif after is not None:
        conditions, parameters = ["(thread_id, checkpoint_ns) > (?, ?)"], after
    return f"SELECT thread_id, checkpoint_ns FROM checkpoints{_where(conditions)} ORDER BY 1, 2 LIMIT 1", parameters


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
