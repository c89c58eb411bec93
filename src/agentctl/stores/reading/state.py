"""The channel values of one checkpoint, inert, without the graph.

Shown is what the stored rows know: a channel that has never been written has no row, where a loaded graph shows its
reducer's empty value. Values are those of the checkpoint itself; writes waiting on it belong to the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from agentctl.codec.delta import NO_SEED, rebuild, snapshot_value
from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.records.copies import command
from agentctl.records.rows import NULL_TASK, CheckpointRow, Large, Stored, StoredCheckpoint
from agentctl.stores.base import Reader
from agentctl.stores.batches import in_chunks
from agentctl.stores.large import values_of
from agentctl.stores.reading.layout import END, holds_state, is_state_channel
from agentctl.stores.reading.lineage import no_checkpoint, read_tree

DELTA_COUNTERS: Final = "counters_since_delta_snapshot"
"""Metadata key that names the delta channels of a checkpoint. Source: pregel/_checkpoint.py (langgraph 1.2.24)."""

_ANCESTORS_PER_READ: Final = 64


@dataclass(frozen=True, slots=True)
class Values:
    """Channel values of one checkpoint.

    Attributes:
        values: Inert value of each channel that could be read.
        unreadable: Why the others could not.
        notes: What to know about a value that is shown, such as that its reducer is unknown here.
        large: Those over the asked size as they are stored; they are in none of the others.
    """

    values: Mapping[str, object]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    large: Mapping[str, Stored | Large] = field(default_factory=dict)


def read_values(
    reader: Reader,
    thread: str,
    ns: str,
    id: str,
    *,
    channels: Collection[str] | None = None,
    value_bytes: int | None = None,
) -> Values:
    """Returns the values of a checkpoint's state channels, delta channels rebuilt along its parent chain.

    The value of a functional entrypoint, which has no state channels, is under `__end__`.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        id: Full checkpoint id.
        channels: Only these channels; None for all.
        value_bytes: Larger values stay where they are stored; None reads all. What a delta channel is rebuilt from is
            read whole.

    Raises:
        NotFound: The checkpoint does not exist.
        DecodeError: Nothing of the row can be read. A single unreadable channel is in `unreadable` instead.
    """
    wanted = None if channels is None else frozenset(channels)
    for stored in reader.stored(thread, ns, [id], channels=wanted, value_bytes=value_bytes):
        if stored.damage is not None:
            raise DecodeError(
                stored.damage, hint=f"checkpoints around it: {command('history', reader.info.target(thread))}"
            )
        return _Gathering(reader, stored, wanted).values()
    raise no_checkpoint(reader, thread, ns, id)


def shown_channels(stored: StoredCheckpoint) -> tuple[str, ...]:
    """Returns the channels whose stored values are state, as `get_state` shows them, in stored order."""
    names = (*stored.values, *stored.unread)
    state = tuple(
        name for name in names if holds_state(name, format=stored.format) and not _is_node_marker(stored, name)
    )
    return state or tuple(name for name in names if name == END)


def delta_channels(row: CheckpointRow) -> frozenset[str]:
    """Returns the delta channels that a checkpoint's metadata names."""
    counters = row.metadata.get(DELTA_COUNTERS)
    return frozenset(counters) if isinstance(counters, Mapping) else frozenset()


class _Gathering:
    """One checkpoint's values while they are collected."""

    def __init__(self, reader: Reader, stored: StoredCheckpoint, wanted: frozenset[str] | None) -> None:
        self._reader = reader
        self._stored = stored
        self._wanted = wanted
        self._values: dict[str, object] = {}
        self._unreadable: dict[str, str] = {}
        self._notes: dict[str, str] = {}

    def values(self) -> Values:
        shown = shown_channels(self._stored)
        for channel in shown:
            if channel in self._stored.values:
                self._take(channel, self._stored.values[channel])
        for channel in self._stored.missing_blobs:
            if is_state_channel(channel) and self._is_wanted(channel):
                self._unreadable[channel] = "the store does not hold the value that this checkpoint names"
        for channel in _updated_by_an_answer(self._reader, self._stored.row):
            if self._is_wanted(channel):
                self._notes[channel] = "a Command's update waits on this checkpoint; a loaded graph shows it applied"
        missing = sorted(name for name in delta_channels(self._stored.row) if self._is_delta_missing(name))
        if missing:
            self._rebuild(missing)
        unread = [channel for channel in shown if channel in self._stored.unread]
        large = values_of(self._reader, self._stored) if unread else {}
        return Values(
            self._values, self._unreadable, self._notes, {name: large[name] for name in unread if name in large}
        )

    def _is_wanted(self, channel: str) -> bool:
        return self._wanted is None or channel in self._wanted

    def _is_delta_missing(self, channel: str) -> bool:
        stored = self._stored
        is_held = channel in stored.values or channel in stored.unread
        return self._is_wanted(channel) and channel in stored.channel_versions and not is_held

    def _take(self, channel: str, value: Stored) -> None:
        try:
            self._values[channel] = snapshot_value(decode(value))
        except DecodeError as error:
            self._unreadable[channel] = error.message

    def _rebuild(self, channels: list[str]) -> None:
        row = self._stored.row
        ancestors = list(read_tree(self._reader, row.thread, row.ns).chain(row.id))[1:]
        walk = _walk_to_seeds(self._reader, row, ancestors, channels)
        writes = self._reader.writes(row.thread, row.ns, walk.visited, channels=channels)
        for channel in channels:
            path = walk.path_of(channel)
            by_checkpoint: dict[str, list[Stored]] = {}
            for write in writes:
                if write.channel == channel and write.value is not None:
                    by_checkpoint.setdefault(write.checkpoint_id, []).append(write.value)
            ordered = [value for id in reversed(path) for value in by_checkpoint.get(id, ())]
            self._fold(channel, walk.seeds.get(channel), ordered)

    def _fold(self, channel: str, seed: Stored | None, writes: list[Stored]) -> None:
        if seed is None and not writes:
            return
        try:
            value = NO_SEED if seed is None else decode(seed)
            rebuilt = rebuild(value, [decode(write) for write in writes], channel=channel)
        except DecodeError as error:
            self._unreadable[channel] = f"a write it is rebuilt from cannot be read: {error.message}"
            return
        self._values[channel] = rebuilt.value
        if not rebuilt.known:
            self._notes[channel] = f"a delta channel whose reducer is not known: shown as its {len(writes)} writes"


def _updated_by_an_answer(reader: Reader, row: CheckpointRow) -> frozenset[str]:
    """Returns the channels that `Command(update=...)` wrote on a checkpoint: applying them takes the reducers."""
    writes = reader.writes(row.thread, row.ns, [row.id], value_bytes=0)
    return frozenset(w.channel for w in writes if w.task_id == NULL_TASK and is_state_channel(w.channel))


@dataclass(frozen=True, slots=True)
class _Walk:
    """Ancestors read for delta channels, nearest first, and where each channel's seed was found."""

    visited: tuple[str, ...]
    seeds: Mapping[str, Stored]
    ends: Mapping[str, int]

    def path_of(self, channel: str) -> tuple[str, ...]:
        return self.visited[: self.ends.get(channel, len(self.visited))]


def _walk_to_seeds(reader: Reader, row: CheckpointRow, ancestors: list[str], channels: list[str]) -> _Walk:
    """Reads ancestors, nearest first, until every channel has a stored value to start from."""
    open_channels = set(channels)
    seeds: dict[str, Stored] = {}
    ends: dict[str, int] = {}
    visited: list[str] = []
    for chunk in in_chunks(ancestors, _ANCESTORS_PER_READ):
        for stored in reader.stored(row.thread, row.ns, chunk, channels=channels):
            visited.append(stored.row.id)
            for channel in open_channels & stored.values.keys():
                seeds[channel], ends[channel] = stored.values[channel], len(visited)
            open_channels -= seeds.keys()
            if not open_channels:
                return _Walk(tuple(visited), seeds, ends)
    return _Walk(tuple(visited), seeds, ends)


def _is_node_marker(stored: StoredCheckpoint, channel: str) -> bool:
    """Tells the channel that versions before 0.3 kept for each node (named as it, holding its name) from state."""
    value = stored.values.get(channel)
    if value is None or stored.format >= 3 or channel not in stored.versions_seen:
        return False
    if len(value.data) > len(channel.encode()) + 5:
        return False
    try:
        return decode(value) == channel
    except DecodeError:
        return False
