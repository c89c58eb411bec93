"""What a store holds, in bytes: parts as the stores count them, and the report that `size` makes of them.

*State* bytes are those of checkpoint rows, and on Postgres of the blob rows that hold their values. *Stored* bytes are
state, metadata and pending writes together. *Payload* is what would be left if each thing were kept once: at the
levels of threads, namespaces and channels the newest state, which is what `get_state` loads; at the levels of messages
and fields each distinct message or item. Amplification is stored by payload.

A namespace is counted by its path of nodes (`research|writer`), without the task ids of its visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from agentctl.records.rows import Large, Stored

Level = Literal["thread", "namespace", "channel", "message", "field", "row"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

Role = Literal["checkpoints", "blobs", "writes", "memory"]
"""What a table is for; `blobs` are on Postgres alone, `memory` are the tables of the memory store."""

Rest = Literal["", "bookkeeping", "unread"]
"""What bytes are that belong to no channel: versions and keys of a checkpoint, or a state that cannot be read."""


class SizePart(NamedTuple):
    """Rows of one table that belong to one thread and namespace path; several parts of one kind add up.

    `newest_bytes` is what of `n_bytes` the newest checkpoint of each namespace holds, None where the store does not say
    so; `n_namespaces` counts visits.
    """

    role: Role
    thread: str
    path: str
    n_rows: int
    n_bytes: int
    metadata_bytes: int = 0
    newest_bytes: int | None = 0
    n_namespaces: int = 0


class ChannelPart(NamedTuple):
    """Values of one channel in the states of one namespace path, or bytes that belong to no channel (`rest`).

    Attributes:
        path: Namespace path.
        channel: Channel name, '' for bytes of no channel.
        n_values: How many checkpoints hold a value.
        n_distinct: How many versions of it there are; None where a store has values by version alone.
        n_bytes: All that is stored, on SQLite once a checkpoint, on Postgres once a version.
        newest_bytes: The newest stored value of each namespace; None where it is not told.
        is_delta: Whether most checkpoints leave the value out, to be rebuilt from writes.
        rest: What the bytes are where they belong to no channel.
        why: Why they could not be read, where they are `unread`.
    """

    path: str
    channel: str
    n_values: int = 0
    n_distinct: int | None = 0
    n_bytes: int = 0
    newest_bytes: int | None = 0
    is_delta: bool = False
    rest: Rest = ""
    why: str = ""


class ChannelWrites(NamedTuple):
    """Pending writes to one channel."""

    path: str
    channel: str
    n_rows: int
    n_bytes: int


class StateValues(NamedTuple):
    """Values of one thread's states as they are stored: of one checkpoint, or of one blob row.

    `unread` says why there are none.
    """

    thread: str
    path: str
    values: Mapping[str, Stored | Large]
    unread: str | None = None


class RowSize(NamedTuple):
    """One row of a table. `key` is a checkpoint id, a channel's version, or `checkpoint task idx` of a write."""

    table: str
    thread: str
    ns: str
    key: str
    channel: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class TableSize:
    """One table of the database; None where it cannot be known.

    Attributes:
        name: Table name.
        role: What it is for.
        n_rows: Rows.
        value_bytes: Bytes of the values in them.
        disk_bytes: What the table takes on disk, without its indexes (Postgres).
        index_bytes: What its indexes take.
        n_dead_rows: Rows that were deleted or replaced and still take room, by the server's own estimate (Postgres).
    """

    name: str
    role: Role
    n_rows: int | None = None
    value_bytes: int | None = None
    disk_bytes: int | None = None
    index_bytes: int | None = None
    n_dead_rows: int | None = None


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """What the database takes on disk; None where it cannot be known.

    Attributes:
        tables: LangGraph's tables.
        disk_bytes: The file and its `-wal` (SQLite), or all of the tables with their indexes (Postgres).
        free_bytes: Pages of the file that hold nothing (SQLite).
        wal_bytes: What of `disk_bytes` is the `-wal` (SQLite).
    """

    tables: tuple[TableSize, ...]
    disk_bytes: int
    free_bytes: int | None = None
    wal_bytes: int | None = None

    @property
    def used_bytes(self) -> int:
        """What the tables and their indexes take."""
        return self.disk_bytes - (self.free_bytes or 0) - (self.wal_bytes or 0)

    @property
    def index_bytes(self) -> int | None:
        """What all indexes take, None where it is not known of one."""
        known = [table.index_bytes for table in self.tables if table.index_bytes is not None]
        return sum(known) if len(known) == len(self.tables) else None


@dataclass(frozen=True, slots=True)
class SizeItem:
    """One line of a report. What its level does not have is None, or '' for `name` and `detail`.

    Attributes:
        thread: Thread id.
        ns: Namespace path, of a row the full namespace; '' for the root graph.
        channel: Channel name.
        name: Id of a message, path of a field, key of a row; `bookkeeping` and `unread` for bytes of no channel.
        detail: Role and tool of a message, table of a row.
        n_namespaces: Visits of a namespace path.
        n_checkpoints: Checkpoints.
        n_writes: Pending writes.
        n_values: Values in states: of a channel once a checkpoint that holds one, of a message its copies.
        n_distinct: How many of these are different.
        state_bytes: Bytes in states.
        metadata_bytes: Bytes of metadata.
        write_bytes: Bytes in pending writes.
        payload_bytes: See the module.
    """

    thread: str | None = None
    ns: str | None = None
    channel: str | None = None
    name: str = ""
    detail: str = ""
    n_namespaces: int | None = None
    n_checkpoints: int | None = None
    n_writes: int | None = None
    n_values: int | None = None
    n_distinct: int | None = None
    state_bytes: int = 0
    metadata_bytes: int = 0
    write_bytes: int = 0
    payload_bytes: int | None = None

    @property
    def stored_bytes(self) -> int:
        """All that is stored."""
        return self.state_bytes + self.metadata_bytes + self.write_bytes

    @property
    def amplification(self) -> float | None:
        """Stored by payload, None where there is no payload."""
        return self.stored_bytes / self.payload_bytes if self.payload_bytes else None

    @property
    def unchanged(self) -> float | None:
        """Which fraction of the values was the same already in an earlier checkpoint, None where it is not known."""
        if not self.n_values or self.n_distinct is None:
            return None
        return 1 - self.n_distinct / self.n_values


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a projection assumes: how many threads begin a day, and for how many days each is kept."""

    threads_per_day: float
    retention_days: float


FORMULAS: Final = (
    "bytes_per_thread = total.stored_bytes / n_threads",
    "n_threads_kept = threads_per_day * retention_days",
    "value_bytes = n_threads_kept * bytes_per_thread",
    "disk_ratio = (database.disk_bytes - database.free_bytes - database.wal_bytes) / sum(tables[].value_bytes)",
    "disk_bytes = value_bytes * disk_ratio",
)


@dataclass(frozen=True, slots=True)
class Projection:
    """What the store will hold once as many threads end as begin; `FORMULAS` says how it is computed.

    `median_bytes` and `largest_bytes` of the threads tell how far one may trust their mean. `disk_ratio` and
    `disk_bytes` are None where the report is of one thread.
    """

    assumed: Assumptions
    bytes_per_thread: float
    median_bytes: float
    largest_bytes: int
    n_threads_kept: float
    value_bytes: float
    disk_ratio: float | None = None
    disk_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class SizeReport:
    """What `size` found.

    Attributes:
        store: The store.
        thread: The one thread that was measured, None for the whole store.
        by: Level of the items.
        total: All of the scope: the sums of its threads.
        n_threads: Threads in the scope.
        items: The largest, by stored bytes.
        n_total: How many there are.
        database: What the whole database takes; None where one thread was measured.
        projection: Where assumptions were given.
        notes: What to know about the figures.
    """

    store: str
    thread: str | None
    by: Level
    total: SizeItem
    n_threads: int
    items: tuple[SizeItem, ...]
    n_total: int
    database: DatabaseSize | None = None
    projection: Projection | None = None
    notes: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        """Whether there are more items."""
        return len(self.items) < self.n_total
