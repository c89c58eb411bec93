"""Rows as a store keeps them: nothing decoded but ids and metadata.

Those that come by the ten thousand are named tuples: making one costs a tenth of making a frozen dataclass.

Source: table layouts of langgraph-checkpoint-sqlite 3.1.2 and langgraph-checkpoint-postgres 3.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

Version = str | int | float

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""Task id of writes that belong to no task: input of a resume, Command updates."""

_UUID_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
_HEX = "[0-9a-fA-F]"
_is_uuid6 = re.compile(f"{_HEX}{{8}}-{_HEX}{{4}}-6{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}").fullmatch
"""Long lists have no time for UUID objects, nor for a pattern that ignores case: it takes twice as long."""


def id_time(checkpoint_id: str) -> datetime | None:
    """Returns the UTC time inside a UUIDv6 checkpoint id, or None where the id is not one.

    Source: langgraph-checkpoint 4.3.2, checkpoint/base/id.py (uuid6).
    """
    if _is_uuid6(checkpoint_id) is None:
        return None
    ticks = int(checkpoint_id[:8] + checkpoint_id[9:13] + checkpoint_id[15:18], 16)
    return _UUID_EPOCH + timedelta(0, 0, ticks // 10)


class Stored(NamedTuple):
    """One serialized value exactly as stored: LangGraph's type tag and the bytes.

    Tags are `msgpack`, `json`, `null`, `bytes`, `bytearray`, `empty`, `pickle`, and any of them with `+aes`.
    """

    type: str
    data: bytes


class Sliceable(Protocol):
    """Bytes that need not be in memory, such as a value in a database that is open for reading."""

    def __len__(self) -> int:
        """Returns how many there are."""
        ...

    def __getitem__(self, part: slice, /) -> bytes:
        """Returns some of them, fewer where they end."""
        ...


class Large(NamedTuple):
    """One serialized value that stays where it is stored: its type tag, and its bytes, read as they are asked for."""

    type: str
    data: Sliceable


class CheckpointRow(NamedTuple):
    """One checkpoint without its state. `metadata` is decoded JSON; `ns` is '' for the root graph.

    `metadata_error` says why `metadata` is empty where the stored text cannot be read.
    """

    thread: str
    ns: str
    id: str
    parent: str | None
    metadata: Mapping[str, object]
    metadata_error: str | None = None

    @property
    def step(self) -> int | None:
        """The super-step number: -1 for input, None where the row has none."""
        step = self.metadata.get("step")
        return step if isinstance(step, int) else None

    @property
    def source(self) -> str:
        """How the checkpoint came to be: input, loop, update, fork, or '' where the row does not say."""
        return str(self.metadata.get("source") or "")

    @property
    def at(self) -> datetime | None:
        """When the checkpoint was made, from its id, UTC."""
        return id_time(self.id)


class WriteRow(NamedTuple):
    """One pending write.

    `value` is None where the caller did not ask for it or it is over the asked size; `n_bytes` is its
    stored size all the same. `task_path` is None in files older than that column.
    """

    ns: str
    checkpoint_id: str
    task_id: str
    task_path: str | None
    idx: int
    channel: str
    value: Stored | None
    n_bytes: int


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint with its bookkeeping decoded and its channel values still serialized.

    `values` holds what the row itself (SQLite, or inline in Postgres) or a blob row holds, one entry a channel;
    DeltaChannel values that the row does not hold are absent.
    """

    row: CheckpointRow
    format: int
    channel_versions: Mapping[str, Version]
    versions_seen: Mapping[str, Mapping[str, Version]]
    values: Mapping[str, Stored]
    updated_channels: tuple[str, ...] | None = None
    missing_blobs: tuple[str, ...] = ()
    """Channels whose version names a blob row that is not there (Postgres)."""
    ts: str | None = None
    """The checkpoint's own ISO 8601 time, as stored; None where the reader does not give it."""
    damage: str | None = None
    """Why nothing of the row could be read (all maps are empty then), or None."""
    has_versions: bool = True
    """False where the store does not give versions, so that the maps of them are empty."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the values, by channel, that are larger than the caller asked for; `values` lacks them."""
    cipher: str = ""
    """What the row is encrypted with as a whole (SQLite), where it was read whole; '' where it is not."""


class ThreadHead(NamedTuple):
    """One thread's newest root checkpoint and how many checkpoints it has (root namespace).

    An Agent Server also lists threads that have none: then the head's id is ''. It does not count checkpoints
    (`n_checkpoints` is None, `first_id` is '') and states times of its own: created and updated, in `stated_times`.
    """

    thread: str
    n_checkpoints: int | None
    first_id: str
    head: CheckpointRow
    stated_times: tuple[datetime | None, datetime | None] | None = None

    @property
    def created_at(self) -> datetime | None:
        """When the thread began, UTC."""
        return self.stated_times[0] if self.stated_times else id_time(self.first_id)

    @property
    def updated_at(self) -> datetime | None:
        """When it was last written to, UTC."""
        return self.stated_times[1] if self.stated_times else self.head.at


class MemoryItem(NamedTuple):
    """One item of LangGraph's BaseStore (the memory store)."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, object]
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """A parent chain inside one namespace, oldest first (`rows[0]` is its root, `rows[-1]` its tip).

    `dangling` is the parent id recorded on `rows[0]` that the store does not hold, or None.
    """

    rows: tuple[CheckpointRow, ...]
    dangling: str | None = None
    index: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def tip(self) -> CheckpointRow:
        """The newest row of the chain."""
        return self.rows[-1]

    def __contains__(self, checkpoint_id: object) -> bool:
        return checkpoint_id in self.index
