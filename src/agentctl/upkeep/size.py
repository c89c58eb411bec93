"""What a store, a thread, a namespace, a channel, a message, a field or a row takes.

Threads, namespaces and rows are counted by the database, which tells the length of a value without reading it. Channels
are too on Postgres; on SQLite they lie inside the states, which are then read one at a time, and so are messages and
fields everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from agentctl.errors import Refused
from agentctl.records.copies import command
from agentctl.records.sizes import (
    Assumptions,
    ChannelPart,
    DatabaseSize,
    Level,
    Role,
    SizeItem,
    SizePart,
    SizeReport,
)
from agentctl.stores.base import Reader
from agentctl.stores.sizes import Measurable, SizeReader, Tick
from agentctl.stores.stated import StatesTasks
from agentctl.upkeep.copies import fields, messages
from agentctl.upkeep.largest import Largest
from agentctl.upkeep.projection import project

Progress = Callable[[int, int], None]
"""Told how many states or blobs of how many have been read."""

_ROW_TABLES: Final[tuple[Role, ...]] = ("checkpoints", "blobs", "writes")


def measure(
    reader: Reader,
    *,
    thread: str | None = None,
    by: Level = "thread",
    top: int | None = 20,
    assumed: Assumptions | None = None,
    progress: Progress | None = None,
) -> SizeReport:
    """Returns what a store or one of its threads takes, and the largest parts of it.

    Args:
        reader: The store.
        thread: Exact thread id; None for the whole store.
        by: What the parts are.
        top: How many of them; None for all.
        assumed: What a projection assumes; None makes none.
        progress: Told while states are read.

    Raises:
        Refused: The store cannot tell what its rows take: a saver, or a server at this level.
        StoreError: It cannot be read.
    """
    if not isinstance(reader, Measurable):
        raise Refused(
            f"{reader.info} is a saver: it hands out loaded values and cannot tell what its rows take",
            hint="give the database that the saver writes to: agentctl size --store FILE.sqlite|postgresql://...",
        )
    if by == "namespace" and isinstance(reader, StatesTasks):
        raise Refused(
            f"{reader.info} does not tell namespaces apart when it counts bytes",
            hint=command("size", *(() if thread is None else (reader.info.target(thread),)), "--by", "channel"),
        )
    sizes = reader.sizes()
    counted = _counted(sizes.parts(thread))
    on_disk = sizes.database() if thread is None else None
    database = None if on_disk is None else _with_rows(on_disk, counted)
    unread: Counter[str] = Counter()
    largest = Largest(top)
    notes: list[str] = []
    match by:
        case "thread":
            largest.update(tally.item(thread=name) for name, tally in counted.threads.items())
        case "namespace":
            largest.update(tally.item(ns=path) for path, tally in counted.paths.items())
        case "channel":
            with _ticking(progress, counted.total.n_rows["checkpoints"]) as tick:
                channels = sizes.channels(thread, tick=tick)
                largest.update(_channels(channels, sizes, thread, counted, unread, notes))
        case "message" | "field":
            read = messages if by == "message" else fields
            n_reads = counted.total.n_rows["blobs"] or counted.total.n_rows["checkpoints"]
            with _ticking(progress, n_reads) as tick:
                largest.update(read(sizes.values(thread, tick=tick), unread))
        case "row":
            largest.update(_rows(sizes, thread, top))
            largest.n_seen = sum(counted.total.n_rows[role] for role in _ROW_TABLES)
    notes += [f"{n:,} could not be read: {why}" for why, n in unread.items()]
    bytes_of_threads = [tally.stored_bytes for tally in counted.threads.values()]
    return SizeReport(
        store=str(reader.info),
        thread=thread,
        by=by,
        total=counted.total.item(thread=thread),
        n_threads=len(counted.threads),
        items=largest.items(),
        n_total=largest.n_seen,
        database=database,
        projection=None if assumed is None else project(assumed, bytes_of_threads, database),
        notes=tuple(notes),
    )


def usual_level(reader: Reader, thread: str | None) -> Level:
    """Returns what is listed where nothing was asked for; an Agent Server does not count namespaces."""
    if thread is None:
        return "thread"
    return "channel" if isinstance(reader, StatesTasks) else "namespace"


@dataclass(slots=True)
class _Tally:
    """Rows and bytes of one thread, one namespace path, or all of them."""

    n_rows: Counter[Role] = field(default_factory=Counter)
    n_bytes: Counter[Role] = field(default_factory=Counter)
    metadata_bytes: int = 0
    newest_bytes: int | None = 0
    n_namespaces: int = 0

    @property
    def stored_bytes(self) -> int:
        return sum(self.n_bytes.values()) + self.metadata_bytes

    def add(self, part: SizePart) -> None:
        self.n_rows[part.role] += part.n_rows
        self.n_bytes[part.role] += part.n_bytes
        self.metadata_bytes += part.metadata_bytes
        self.newest_bytes = _sum(self.newest_bytes, part.newest_bytes)
        self.n_namespaces += part.n_namespaces

    def item(self, *, thread: str | None = None, ns: str | None = None) -> SizeItem:
        return SizeItem(
            thread=thread,
            ns=ns,
            n_namespaces=self.n_namespaces,
            n_checkpoints=self.n_rows["checkpoints"],
            n_writes=self.n_rows["writes"],
            state_bytes=self.n_bytes["checkpoints"] + self.n_bytes["blobs"],
            metadata_bytes=self.metadata_bytes,
            write_bytes=self.n_bytes["writes"],
            payload_bytes=self.newest_bytes,
        )


@dataclass(slots=True)
class _Counted:
    """What was counted without reading any state."""

    total: _Tally = field(default_factory=_Tally)
    threads: dict[str, _Tally] = field(default_factory=dict)
    paths: dict[str, _Tally] = field(default_factory=dict)


def _counted(parts: Iterable[SizePart]) -> _Counted:
    counted = _Counted()
    for part in parts:
        counted.total.add(part)
        counted.threads.setdefault(part.thread, _Tally()).add(part)
        counted.paths.setdefault(part.path, _Tally()).add(part)
    return counted


def _with_rows(database: DatabaseSize, counted: _Counted) -> DatabaseSize:
    """Returns the database with rows and values of the tables that hold threads."""
    total = counted.total
    tables = []
    for table in database.tables:
        if table.role != "memory":
            n_bytes = total.n_bytes[table.role] + (total.metadata_bytes if table.role == "checkpoints" else 0)
            table = replace(table, n_rows=total.n_rows[table.role], value_bytes=n_bytes)
        tables.append(table)
    return replace(database, tables=tuple(tables))


def _channels(
    parts: Iterable[ChannelPart],
    sizes: SizeReader,
    thread: str | None,
    counted: _Counted,
    unread: Counter[str],
    notes: list[str],
) -> Iterator[SizeItem]:
    """Yields one item a channel of each path: its values in states, its pending writes; and what belongs to none."""
    found: dict[tuple[str, str, str], SizeItem] = {}
    delta: set[str] = set()
    for part in parts:
        key = (part.path, part.channel, part.rest)
        found[key] = _with_values(found.get(key), part)
        if part.is_delta:
            delta.add(part.channel)
        if part.rest == "unread":
            unread[part.why] += part.n_values
    for write in sizes.written(thread):
        item = found.get((write.path, write.channel, "")) or SizeItem(ns=write.path, channel=write.channel)
        found[write.path, write.channel, ""] = replace(
            item, n_writes=(item.n_writes or 0) + write.n_rows, write_bytes=item.write_bytes + write.n_bytes
        )
    for path, tally in counted.paths.items():
        if tally.metadata_bytes:
            found[path, "", "metadata"] = SizeItem(ns=path, name="metadata", metadata_bytes=tally.metadata_bytes)
    notes += [
        f"{channel} is a delta channel: between snapshots its values are rebuilt from writes"
        for channel in sorted(delta)
    ]
    yield from (item for _, item in sorted(found.items(), key=lambda entry: entry[0]))


def _with_values(item: SizeItem | None, part: ChannelPart) -> SizeItem:
    if part.rest:
        item = item or SizeItem(ns=part.path, name=part.rest)
        return replace(item, state_bytes=item.state_bytes + part.n_bytes)
    item = item or SizeItem(ns=part.path, channel=part.channel, n_values=0, n_distinct=0, payload_bytes=0)
    return replace(
        item,
        n_values=(item.n_values or 0) + part.n_values,
        n_distinct=_sum(item.n_distinct, part.n_distinct),
        state_bytes=item.state_bytes + part.n_bytes,
        payload_bytes=_sum(item.payload_bytes, part.newest_bytes),
    )


def _sum(left: int | None, right: int | None) -> int | None:
    """Returns a sum, None where one of the two is not known."""
    return None if left is None or right is None else left + right


def _rows(sizes: SizeReader, thread: str | None, top: int | None) -> Iterator[SizeItem]:
    for row in sizes.largest(thread, limit=top):
        yield SizeItem(
            thread=row.thread,
            ns=row.ns,
            channel=row.channel or None,
            name=row.key,
            detail=row.table,
            state_bytes=0 if _is_write(row.table) else row.n_bytes,
            write_bytes=row.n_bytes if _is_write(row.table) else 0,
        )


def _is_write(table: str) -> bool:
    return table in ("writes", "checkpoint_writes")


@contextmanager
def _ticking(progress: Progress | None, n_total: int) -> Iterator[Tick]:
    """Gives what counts reads and tells how many of how many were done; at the end it tells that all were."""
    done = 0

    def tick(n: int) -> None:
        nonlocal done
        done += n
        if progress is not None:
            progress(min(done, n_total), n_total)

    try:
        yield tick
    finally:
        if progress is not None:
            progress(n_total, n_total)
