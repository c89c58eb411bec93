"""What goes of one thread, in which order, and what is changed first so that the rest stays whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Literal

from agentctl.records.copies import COPY_MARK
from agentctl.records.prunes import Key, Removed, ThreadPrune
from agentctl.records.rows import id_time
from agentctl.records.threads import ThreadStatus
from agentctl.stores.base import Reader
from agentctl.stores.deleting import Deleter, Overtaken, RowWeight, ThreadEnd, ThreadMark, ThreadOverview
from agentctl.stores.reading.ancestors import reads_sends_of_parent
from agentctl.stores.reading.due import read_bookkeeping
from agentctl.stores.reading.layout import INTERRUPT, TASKS
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.status import status_of
from agentctl.stores.reading.steps import StepReader
from agentctl.upkeep.prune.keeping import Keeping, choose
from agentctl.upkeep.prune.needed import Needs, with_needed
from agentctl.upkeep.prune.orphans import about_left, read_stray_writes
from agentctl.upkeep.prune.request import PruneRequest
from agentctl.upkeep.prune.shape import ROOT, Shape, read_shape

_NOTHING: Final = ThreadOverview((), "", Removed(), asks=False)
_BATCH_BYTES: Final = 4 * 1024 * 1024
"""About how many bytes one transaction takes away: a state of many megabytes is many pages."""


@dataclass(frozen=True, slots=True)
class Relink:
    """A checkpoint whose parent goes.

    Attributes:
        key: The checkpoint.
        parent: Its nearest ancestor that stays; None makes it a root.
        takes_snapshots: Whether the values of its delta channels are stored with it first.
    """

    key: Key
    parent: str | None
    takes_snapshots: bool = False


@dataclass(frozen=True, slots=True)
class ThreadPlan:
    """What is done with one thread.

    Attributes:
        report: What is told of it.
        mark: The thread as it was when this was planned.
        weights: Bytes of every checkpoint with its writes.
        relinks: Changes before anything is taken away.
        batches: Checkpoints that go in one transaction each, in order.
        whole: Whether nothing of the thread stays.
        strays: Whether blobs that no checkpoint names go as well: all, or only those that no run can name any more.
        orphans: Whether the batches are pending writes without a checkpoint, and nothing else goes.
    """

    report: ThreadPrune
    mark: ThreadMark = ()
    weights: Mapping[Key, RowWeight] = field(default_factory=dict)
    relinks: tuple[Relink, ...] = ()
    batches: tuple[tuple[Key, ...], ...] = ()
    whole: bool = False
    strays: Literal["", "settled", "all"] = ""
    orphans: bool = False


@dataclass(frozen=True, slots=True)
class Planning:
    """Plans threads of one store.

    Attributes:
        reader: The store.
        deleter: The same store, as one that rows can be taken from.
        request: What is asked for.
    """

    reader: Reader
    deleter: Deleter
    request: PruneRequest

    def plan(self, end: ThreadEnd, overview: ThreadOverview | None = None) -> ThreadPlan | None:
        """Returns what is done with a thread, None where nothing goes and nothing is to be told.

        Args:
            end: The thread.
            overview: It as a whole; None reads it.

        Raises:
            Overtaken: The thread was written to while it was read.
        """
        # Read first, so that whatever is written from here on makes a difference to its mark.
        overview = overview or self.deleter.overviews([end.thread]).get(end.thread, _NOTHING)
        standing = _standing(self.reader, end.thread, overview)
        if self.request.statuses and standing.status not in self.request.statuses:
            return None
        reason = _why_not(end, self.request, standing)
        report = ThreadPrune(
            end.thread,
            "skip" if reason else "delete" if self.request.delete else "thin",
            updated_at=id_time(end.newest),
            status=standing.status,
            n_checkpoints=end.n_checkpoints,
            reason=reason,
        )
        if reason:
            return ThreadPlan(report)
        if not overview.rows.n_rows:
            return None  # another program has taken the thread away since it was listed
        if self.request.delete:
            notes = tuple(_about_questions(standing.asking, ()))
            return self._whole(replace(report, goes=overview.rows, notes=notes), overview.mark)
        stored = _Stored(overview.mark, self._weights(end.thread), standing.asking)
        return self._without_orphans(report, stored) if self.request.orphans else self._thinned(report, stored)

    def _weights(self, thread: str) -> dict[Key, RowWeight]:
        return {weight.key: weight for weight in self.deleter.weights(thread)}

    def _whole(self, report: ThreadPrune, mark: ThreadMark) -> ThreadPlan:
        if report.goes.n_rows <= self.request.batch_rows and report.goes.n_bytes <= _BATCH_BYTES:
            return ThreadPlan(report, mark, batches=((),), whole=True)
        weights, shape = self._weights(report.thread), read_shape(self.reader, report.thread)
        ordered = (key for id in shape.children_first() for key in shape.unit(id))
        known = [key for key in ordered if key in weights]
        rest = sorted(weights.keys() - set(known), reverse=True)
        batches = tuple(_batches([*rest, *known], weights, self.request.batch_rows)) or ((),)
        return ThreadPlan(report, mark, weights, (), batches, whole=True)

    def _without_orphans(self, report: ThreadPrune, stored: _Stored) -> ThreadPlan | None:
        strays = read_stray_writes(self.reader, report.thread, stored.weights)
        old = tuple(key for key in strays.newer if self._is_at_rest(key))
        going, newer = sorted((*strays.settled, *old)), [key for key in strays.newer if key not in old]
        all_blobs = self.request.older_than is not None and not newer
        every = blobs = self.deleter.stray_blobs(report.thread, newer=True)
        if every.n_blobs and not all_blobs:
            blobs = self.deleter.stray_blobs(report.thread, newer=False)
        left = about_left(strays.needed, newer, every.n_blobs - blobs.n_blobs)
        notes = (*_about_questions(stored.asking, stored.asking), *left)
        report = replace(report, notes=notes)
        if not going and not blobs.n_blobs:
            return None if self.request.thread is None and not notes else ThreadPlan(report, stored.mark)
        return ThreadPlan(
            replace(report, goes=_sum(stored.weights[key] for key in going).plus(blobs)),
            stored.mark,
            stored.weights,
            batches=tuple(_batches(going, stored.weights, self.request.batch_rows)) or ((),),
            strays=("all" if all_blobs else "settled") if blobs.n_blobs else "",
            orphans=True,
        )

    def _is_at_rest(self, key: Key) -> bool:
        at, age = id_time(key[1]), self.request.older_than
        return at is not None and age is not None and self.request.now - at >= age

    def _thinned(self, report: ThreadPrune, stored: _Stored) -> ThreadPlan | None:
        shape = read_shape(self.reader, report.thread)
        if shape.rows.keys() != {key for key, weight in stored.weights.items() if weight.is_stored}:
            raise Overtaken("the thread was written to while it was read")
        keeping = choose(self.reader, shape, self.request)
        needs = with_needed(self.reader, shape, keeping.ids, snapshot=self.request.snapshot)
        going = [key for id in shape.children_first() if id not in needs.kept for key in shape.unit(id)]
        strays = read_stray_writes(self.reader, report.thread, stored.weights)
        going = [*shape.stray, *strays.settled, *going]
        kept = stored.weights.keys() - set(going)
        blobs = self.deleter.blobs_beside(report.thread, kept)
        notes = (
            *_about_questions(stored.asking, needs.kept),
            *keeping.notes,
            *_about_branches(keeping),
            *_about_delta(needs, keeping.ids),
        )
        report = replace(report, notes=notes)
        if not going and not blobs.n_blobs:
            return None if self.request.thread is None else ThreadPlan(report, stored.mark)
        return ThreadPlan(
            replace(
                report,
                goes=_sum(stored.weights[key] for key in going).plus(blobs),
                lost=tuple(keeping.lost(needs.kept)),
                n_lost_beside=len(set(shape.root.ids) - needs.kept - keeping.on_branches),
            ),
            stored.mark,
            stored.weights,
            tuple(_relinks(self.reader, shape, kept, needs.snapshots)),
            tuple(_batches(going, stored.weights, self.request.batch_rows)) or ((),),
            strays="all" if blobs.n_blobs else "",
        )


@dataclass(frozen=True, slots=True)
class _Stored:
    """A thread as it is stored when it is planned; `asking` are the ends of branches on which a question waits."""

    mark: ThreadMark
    weights: Mapping[Key, RowWeight]
    asking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a thread stands: the status of its head, and the ends of its branches on which a question waits.

    `damage` says why neither is known: the head cannot be read.
    """

    status: ThreadStatus | None
    asking: tuple[str, ...] = ()
    damage: str = ""


def _standing(reader: Reader, thread: str, overview: ThreadOverview) -> _Standing:
    if not overview.head:
        return _Standing("empty")
    book = read_bookkeeping(reader, thread, ROOT, [overview.head]).get(overview.head)
    if book is None or not book.channel_versions:
        damage = next((stored.damage for stored in reader.stored(thread, ROOT, [overview.head], channels=())), None)
        if damage is not None:
            return _Standing(None, damage=damage)
    elif not overview.asks and not book.due.names:
        return _Standing("done")  # most threads, told by the head itself, which is read faster than its tasks
    tree = read_tree(reader, thread)
    if tree.head is None:
        return _Standing("empty")
    asked = {write.checkpoint_id for write in reader.writes(thread, ROOT, value_bytes=0, channels=[INTERRUPT])}
    looked_at = [tree.head, *(tip for tip in tree.tips if tip in asked and tip != tree.head)]
    tasks = StepReader(reader, thread, ROOT, tree=tree, value_bytes=0).tasks(looked_at)
    asking = (id for id, found in tasks.items() if any(task.interrupts and not task.finished for task in found))
    return _Standing(status_of(tasks.get(tree.head, ())), tuple(asking))


def _why_not(end: ThreadEnd, request: PruneRequest, standing: _Standing) -> str:
    """Returns why a thread stays as it is, '' where nothing speaks for that."""
    if request.protects(end.thread):
        return "its profile protects it"
    if request.delete and end.thread in request.kept:
        return "--keep names it"
    if standing.status == "empty" and not request.delete:
        return "no checkpoint of its root graph is stored"
    if request.thread is not None:
        return ""
    if standing.damage:
        return f"whether a question waits on it is not known, so the command must name it: {standing.damage}"
    if standing.asking:
        return "a question waits on it; such a thread is touched where the command names it"
    if request.delete and standing.status == "pending" and "pending" not in request.statuses:
        return "a step of it is due: it stopped before a node, or its run died; name it, or say --status pending"
    return ""


def _about_questions(asking: Collection[str], staying: Collection[str]) -> Iterator[str]:
    """Yields what becomes of the questions of a thread that the command names."""
    if any(id not in staying for id in asking):
        yield "a question waits on it and goes with it: the command names the thread"
    elif asking:
        yield "a question waits on it and stays: the command names the thread"


def _about_branches(keeping: Keeping) -> Iterator[str]:
    beside = len(keeping.ids - keeping.on_branches)
    if beside:
        what = "1 checkpoint stays" if beside == 1 else f"{beside:,} checkpoints stay"
        yield f"{what} on other branches, which leave the kept one within its turns that stay, or which --keep names"


def _about_delta(needs: Needs, asked: Collection[str]) -> Iterator[str]:
    staying, channels = needs.delta - set(asked), ", ".join(sorted(needs.channels))
    if staying:
        what = "1 older checkpoint stays" if len(staying) == 1 else f"{len(staying):,} older checkpoints stay"
        hint = "see --snapshot"
        if needs.unsnapped:
            hint = f"no snapshot can be made of {', '.join(sorted(needs.unsnapped))}"
        yield f"{what}: the delta channels of newer ones are rebuilt from there ({channels}); {hint}"
    if needs.snapshots:
        what = "1 checkpoint gets" if len(needs.snapshots) == 1 else f"{len(needs.snapshots):,} checkpoints get"
        yield f"{what} a snapshot of its delta channels, in place of what they were rebuilt from"


def _relinks(reader: Reader, shape: Shape, kept: Collection[Key], snapshots: Collection[Key]) -> Iterator[Relink]:
    """Yields the rows that stay whose parents go, or were gone before, oldest first.

    A copy is left with the parent that it was copied without: that tells where it comes from.
    """
    is_copy = any(COPY_MARK in row.metadata for row in shape.rows.values())
    for key in sorted(kept, key=lambda key: (key[1], key[0])):
        row = shape.rows.get(key)
        if row is None or row.parent is None or (key[0], row.parent) in kept:
            continue
        tree = shape.trees[key[0]]
        if row.parent not in tree.parents:
            if not is_copy:
                yield Relink(key, None)
            continue
        nearest = next((id for id in islice(tree.chain(key[1]), 1, None) if (key[0], id) in kept), None)
        if nearest is not None and _would_read_sends(reader, shape, key, nearest):
            nearest = None
        yield Relink(key, nearest, key in snapshots)


def _would_read_sends(reader: Reader, shape: Shape, key: Key, parent: str) -> bool:
    """Says whether a row of an old format would take pending Sends of a new parent for its own."""
    sends = reader.writes(shape.thread, key[0], [parent], value_bytes=0, channels=[TASKS])
    return bool(sends) and reads_sends_of_parent(reader, shape.rows[key])


def _batches(keys: Sequence[Key], weights: Mapping[Key, RowWeight], max_rows: int) -> Iterator[tuple[Key, ...]]:
    """Yields keys in order, in groups of about so many rows; a checkpoint and its writes are never parted."""
    group: list[Key] = []
    n_rows = n_bytes = 0
    for key in keys:
        weight = weights[key]
        rows = weight.n_writes + weight.is_stored
        if group and (n_rows + rows > max_rows or n_bytes + weight.n_bytes > _BATCH_BYTES):
            yield tuple(group)
            group, n_rows, n_bytes = [], 0, 0
        group.append(key)
        n_rows += rows
        n_bytes += weight.n_bytes
    if group:
        yield tuple(group)


def _sum(weights: Iterable[RowWeight]) -> Removed:
    n_checkpoints = n_writes = n_bytes = 0
    for weight in weights:
        n_checkpoints += weight.is_stored
        n_writes += weight.n_writes
        n_bytes += weight.n_bytes
    return Removed(n_checkpoints, n_writes, 0, n_bytes)
