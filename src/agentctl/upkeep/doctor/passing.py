"""Passing through a namespace: its rows, states and writes are read once, and one checkpoint is held at a time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from agentctl.codec.encryption import KEY_VARIABLE, is_encrypted
from agentctl.codec.inert import plain
from agentctl.codec.large import check, digest_of, whole
from agentctl.codec.parts import parts_of
from agentctl.codec.values import unpack
from agentctl.errors import DecodeError
from agentctl.records.rows import CheckpointRow, Large, Stored, StoredCheckpoint, WriteRow
from agentctl.revisions.heads import EDITS
from agentctl.stores.base import Reader
from agentctl.stores.batches import by_size
from agentctl.stores.large import LARGE_BYTES, value_of, values_of
from agentctl.stores.reading.ancestors import enclosing_ids
from agentctl.stores.reading.layout import JOIN, NO_WRITES, TASKS, is_state_channel
from agentctl.stores.reading.lineage import Tree
from agentctl.stores.reading.state import delta_channels
from agentctl.stores.reading.taskrows import NO_WRITES_STORED, CheckpointWrites, group_writes
from agentctl.upkeep.doctor.order import parents_first
from agentctl.upkeep.doctor.records import Drift, Kept, Passed, Shape, Site, Unread, Visit
from agentctl.upkeep.doctor.shapes import drifts, large_shapes, shapes_of
from agentctl.upkeep.doctor.unordered import unordered_digest

_IDS_PER_READ: Final = 100
_BATCH_BYTES: Final = 8 * 1024 * 1024
_PACKED_TRUE: Final = b"\xc3"
_LOOKED_AT_ALWAYS: Final = (JOIN, TASKS)
_BEFORE_ALL: Final = -2
"""The step before that of a thread's first checkpoint."""


@dataclass(slots=True)
class Passage:
    """One way through a namespace.

    Attributes:
        reader: The store.
        thread: Exact thread id.
        site: The namespace.
        tree: Its ids.
        passed: What is noted on the way.
    """

    reader: Reader
    thread: str
    site: Site
    tree: Tree
    passed: Passed

    def visits(self) -> Iterator[Visit]:
        """Yields every checkpoint, parents before children."""
        kept: dict[str, Kept] = {}
        n_open: dict[str, int] = {}
        ids = iter(parents_first(self.tree))
        while chunk := list(islice(ids, _IDS_PER_READ)):
            writes = _ReadWrites(self.reader, self.thread, self.site.ns, chunk)
            for state in self.reader.stored(self.thread, self.site.ns, chunk, value_bytes=LARGE_BYTES):
                visit = self._visit(state, kept.get(state.row.parent or ""), writes)
                self._note(visit)
                yield visit
                children = self.tree.children.get(state.row.id, ())
                if children:
                    kept[state.row.id], n_open[state.row.id] = visit.kept, len(children)
                self._forget(state.row.parent, kept, n_open)

    @staticmethod
    def _forget(parent: str | None, kept: dict[str, Kept], n_open: dict[str, int]) -> None:
        if parent in n_open:
            n_open[parent] -= 1
            if n_open[parent] == 0:
                del kept[parent], n_open[parent]

    def _note(self, visit: Visit) -> None:
        row = visit.row
        if row.source in EDITS:
            self.passed.edits.add(row.id)
        before = _BEFORE_ALL if visit.parent is None else visit.parent.row.step
        if visit.dangling is None and row.step is not None and before is not None and row.step > before + 1:
            self.passed.leaps.append((row.parent or "", row.id))
        for owner in enclosing_ids(row).items() if self.site.ns else ():
            self.passed.owners.setdefault(owner, row.id)

    def _visit(self, state: StoredCheckpoint, parent: Kept | None, writes: _ReadWrites) -> Visit:
        row = state.row
        found = values_of(self.reader, state)
        values = _Values(state, found, parent)
        mine = writes.of(row.id)
        locked = values.locked + mine.locked + (_is_locked(state.damage))
        kept = Kept(
            row=row,
            channel_versions=state.channel_versions,
            versions_seen=state.versions_seen,
            format=state.format,
            readable=state.damage is None,
            each_step=_each_step(row, parent),
            writes=mine.tasks,
            arrivals=values.arrivals,
            arriving=mine.arriving,
            n_sends=values.n_sends,
            digests=values.digests,
            shapes=values.shapes,
            cut_off=_cut_off(state, found, parent),
            lost=frozenset((*_lost_values(state, found, parent), *_lost_snapshots(state, parent))),
        )
        changed = values.changed if parent is not None else ()
        lost_type = {drift.channel for drift in values.drifted}
        mutated = [name for name in changed if name not in lost_type and self._is_changed(name, found, parent)]
        return Visit(
            site=self.site,
            state=state,
            parent=parent,
            dangling=self.tree.dangling(row.id),
            kept=kept,
            unread=(*values.unread, *mine.unread),
            locked=locked,
            drifted=tuple(values.drifted),
            mutated=tuple(mutated),
        )

    def _is_changed(self, channel: str, now: Mapping[str, Stored | Large], parent: Kept | None) -> bool:
        """Compares a channel with the parent's, whatever the order of what has none: sets of two processes differ."""
        if parent is None:
            return False
        ids = [parent.row.id]
        states = self.reader.stored(self.thread, self.site.ns, ids, channels=[channel], value_bytes=LARGE_BYTES)
        before = next((values_of(self.reader, state) for state in states), {})
        if channel not in before:
            return False
        try:
            return unordered_digest(before[channel]) != unordered_digest(now[channel])
        except DecodeError:
            return False


class _Values:
    """The values of one checkpoint, looked at: those that are the parent's own bytes were looked at there."""

    def __init__(self, state: StoredCheckpoint, values: Mapping[str, Stored | Large], parent: Kept | None) -> None:
        self.unread: list[Unread] = []
        self.locked = 0
        self.digests: dict[str, bytes] = {}
        self.shapes: dict[str, frozenset[Shape]] = {}
        self.arrivals: dict[str, frozenset[str]] = {}
        self.drifted: list[Drift] = []
        self.changed: list[str] = []
        self.n_sends = 0
        self._state = state
        for channel, value in values.items():
            self._look_at(channel, value, parent)

    def _look_at(self, channel: str, value: Stored | Large, parent: Kept | None) -> None:
        digest = digest_of(value.data)
        self.digests[channel] = digest
        if parent is not None and parent.digests.get(channel) == digest and not channel.startswith(_LOOKED_AT_ALWAYS):
            if channel in parent.shapes:
                self.shapes[channel] = parent.shapes[channel]
            return
        try:
            shapes, arrivals = _looked_through(channel, value)
        except DecodeError as error:
            if is_encrypted(value) and not _has_key():
                self.locked += 1
            else:
                self.unread.append(Unread(channel, error.message, False, self._state.channel_versions.get(channel)))
            return
        if channel.startswith(JOIN):
            self.arrivals[channel] = arrivals
        if channel == TASKS:
            parts = parts_of(value)
            self.n_sends = sum(1 for _ in parts.items) if parts.is_list else 0
        if not is_state_channel(channel):
            return
        self.shapes[channel] = shapes
        if parent is None:
            return
        self.drifted += drifts(channel, parent.shapes.get(channel, frozenset()), self.shapes[channel])
        version = self._state.channel_versions.get(channel)
        if channel in parent.digests and version is not None and parent.channel_versions.get(channel) == version:
            self.changed.append(channel)


def _looked_through(channel: str, value: Stored | Large) -> tuple[frozenset[Shape], frozenset[str]]:
    """Returns what a value looks like, and the names in it where it is a join.

    Raises:
        DecodeError: It cannot be read.
    """
    if channel.startswith(JOIN):
        return frozenset(), _names(unpack(whole(value)))
    if isinstance(value, Large) and value.type == "msgpack":
        check(value)
        return large_shapes(value.data), frozenset()
    return shapes_of(unpack(whole(value))), frozenset()


@dataclass(frozen=True, slots=True)
class _Writes:
    """The writes on one checkpoint, looked at; no value is kept but the names that arrive at joins."""

    tasks: CheckpointWrites = NO_WRITES_STORED
    arriving: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    locked: int = 0


_NO_WRITES: Final = _Writes()


class _ReadWrites:
    """The writes of a chunk of checkpoints, their values read a few megabytes at a time and let go."""

    def __init__(self, reader: Reader, thread: str, ns: str, ids: Sequence[str]) -> None:
        self._found: dict[str, _Writes] = {}
        sizes: dict[str, int] = defaultdict(int)
        for write in reader.writes(thread, ns, ids, value_bytes=0):
            sizes[write.checkpoint_id] += write.n_bytes
        for batch in by_size(list(sizes.items()), _BATCH_BYTES, _IDS_PER_READ):
            self._read(reader.writes(thread, ns, batch, value_bytes=LARGE_BYTES), partial(value_of, reader, thread))

    def of(self, checkpoint_id: str) -> _Writes:
        return self._found.get(checkpoint_id, _NO_WRITES)

    def _read(self, writes: Sequence[WriteRow], value_of_write: Callable[[WriteRow], Stored | Large | None]) -> None:
        unread: dict[str, list[Unread]] = defaultdict(list)
        locked: dict[str, int] = defaultdict(int)
        arriving: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for write in writes:
            value = value_of_write(write) if write.value is None and write.n_bytes else write.value
            if value is None:
                continue
            try:
                if write.channel.startswith(JOIN):
                    arriving[write.checkpoint_id][write.channel] |= _names(unpack(whole(value)))
                else:
                    check(value)
            except DecodeError as error:
                if is_encrypted(value) and not _has_key():
                    locked[write.checkpoint_id] += 1
                elif write.channel != NO_WRITES:
                    unread[write.checkpoint_id].append(Unread(write.channel, error.message, True))
        grouped = group_writes(write._replace(value=None) for write in writes)
        for checkpoint_id, tasks in grouped.items():
            names = {channel: frozenset(found) for channel, found in arriving[checkpoint_id].items()}
            self._found[checkpoint_id] = _Writes(tasks, names, tuple(unread[checkpoint_id]), locked[checkpoint_id])


def _names(tree: object) -> frozenset[str]:
    """Returns the names of a stored join, which is a set, with a flag where the node is deferred; or of one write."""
    if isinstance(tree, str):
        return frozenset((tree,))
    shown = plain(tree)
    if isinstance(shown, list) and len(shown) == 2 and isinstance(shown[1], bool):
        shown = shown[0]
    if isinstance(shown, Mapping):
        shown = shown.get("$value")
    return frozenset(item for item in shown if isinstance(item, str)) if isinstance(shown, list) else frozenset()


def _cut_off(state: StoredCheckpoint, values: Collection[str], parent: Kept | None) -> frozenset[str]:
    """Returns the delta channels that have no value from here up to a checkpoint without a stored parent.

    The row that durability "exit" puts before a delta channel's writes has no versions, so it lacks none.
    """
    missing = {name for name in delta_channels(state.row) if name in state.channel_versions}
    missing -= set(values)
    return frozenset(missing if parent is None else missing & parent.cut_off)


def _lost_snapshots(state: StoredCheckpoint, parent: Kept | None) -> Iterator[str]:
    """Yields delta channels with a mark in place of the snapshot that should be among the blobs.

    Source: `put` leaves an inline `true` (langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/__init__.py).
    """
    for channel in delta_channels(parent.row) if parent is not None else ():
        if channel in state.values and state.values[channel].data == _PACKED_TRUE:
            yield channel


def _lost_values(state: StoredCheckpoint, values: Collection[str], parent: Kept | None) -> Iterator[str]:
    """Yields channels that have no value although they were written to, here or where their version came from.

    A new version that nothing was written for is that of a channel which emptied itself. To untracked channels, the
    only ones that keep no value, LangGraph stores no writes.
    """
    if parent is None or not parent.readable:
        yield from state.missing_blobs
        return
    written = _written(parent.writes)
    for channel in state.channel_versions.keys() - set(values) - delta_channels(state.row):
        is_new = state.channel_versions[channel] != parent.channel_versions.get(channel)
        if channel in (written if is_new else parent.lost) and state.damage is None:
            yield channel


def _written(writes: CheckpointWrites) -> frozenset[str]:
    """Returns the state channels that a step, or an update, wrote to."""
    return frozenset(name for task in (*writes.finished, *writes.updates) for name in task.outline.state)


def _each_step(row: CheckpointRow, parent: Kept | None) -> bool:
    if row.source == "input":
        return True
    before = parent.row.step if parent is not None else None
    return before is not None and row.step == before + 1


def _has_key() -> bool:
    return bool(os.environ.get(KEY_VARIABLE))


def _is_locked(damage: str | None) -> bool:
    return damage is not None and KEY_VARIABLE in damage and not _has_key()
