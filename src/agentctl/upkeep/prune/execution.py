"""Carrying a plan out: short transactions, each of which looks first whether the thread is still as it was.

Wherever a process is killed, what is left is whole: parents are changed before anything goes, checkpoints go before
the parents that they had, subgraphs' before the root graph's, each with its pending writes and with the blobs that
nothing else names, all in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from agentctl.errors import StoreError
from agentctl.records.copies import command
from agentctl.records.faults import OrphanRows
from agentctl.records.prunes import Removed, ThreadPrune
from agentctl.records.rows import CheckpointRow
from agentctl.stores.audit import Auditable
from agentctl.stores.base import Reader
from agentctl.stores.deleting import Deleter, Deletion, Overtaken, ThreadMark
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.state import delta_channels, read_values
from agentctl.upkeep.prune.orphans import needed_by_children
from agentctl.upkeep.prune.plan import Relink, ThreadPlan
from agentctl.upkeep.prune.snapshots import read_snapshots
from agentctl.upkeep.settled import is_settled, newest_of

Pause = Callable[[], None]
"""Called between two transactions, when no lock is held."""

_RELINKS_PER_TRANSACTION: Final = 50
_MAX_ORPHANS: Final = 1000


@dataclass(slots=True)
class Execution:
    """Carries plans out on one store.

    Attributes:
        reader: The store.
        deleter: The same store, as one that rows can be taken from.
        pause: Called between two transactions.
    """

    reader: Reader
    deleter: Deleter
    pause: Pause

    def run(self, plan: ThreadPlan) -> ThreadPrune:
        """Returns what was done: all that was planned, or as much as went before the thread was written to.

        Raises:
            StoreError: The store is locked or refuses, or a value would have read back otherwise; the transaction it
                was found in was rolled back.
        """
        if not plan.batches:
            return replace(plan.report, outcome="done") if plan.report.action != "skip" else plan.report
        done = _Done(plan.mark)
        try:
            self._relink(plan, done)
            self._delete(plan, done)
        except Overtaken:
            notes = (*plan.report.notes, _overtaken(done.removed))
            return replace(plan.report, goes=done.removed, outcome="overtaken", notes=notes)
        return replace(plan.report, goes=done.removed, outcome="done", faults=self._faults(plan))

    def _relink(self, plan: ThreadPlan, done: _Done) -> None:
        thread, relinks = plan.report.thread, iter(plan.relinks)
        while group := list(islice(relinks, _RELINKS_PER_TRANSACTION)):
            with self._transaction(thread, done) as deletion:
                for relink in group:
                    _apply(deletion, thread, relink)

    def _delete(self, plan: ThreadPlan, done: _Done) -> None:
        thread = plan.report.thread
        for place, keys in enumerate(plan.batches, 1):
            is_last = place == len(plan.batches)
            removed = Removed(n_bytes=sum(plan.weights[key].n_bytes for key in keys))
            with self._transaction(thread, done) as deletion:
                if plan.whole and is_last:
                    # Also what no checkpoint leads to. A thread of one batch is not listed in it.
                    removed = removed.plus(deletion.delete_thread(thread))
                    removed = replace(removed, n_bytes=plan.report.goes.n_bytes - done.removed.n_bytes)
                elif plan.orphans:
                    removed = removed.plus(deletion.delete_stray_writes(thread, keys))
                else:
                    removed = removed.plus(deletion.delete(thread, keys))
                if plan.strays and is_last:
                    removed = removed.plus(deletion.delete_stray_blobs(thread, newer=plan.strays == "all"))
            done.removed = done.removed.plus(removed)

    def _transaction(self, thread: str, done: _Done) -> AbstractContextManager[Deletion]:
        if done.is_begun:
            self.pause()
        done.is_begun = True
        return _checked(self.deleter, thread, done)

    def _faults(self, plan: ThreadPlan) -> tuple[str, ...]:
        """Returns what is wrong with the thread afterwards."""
        thread = plan.report.thread
        if plan.whole:
            n_left = self.deleter.n_rows(thread)
            return (f"{n_left:,} rows of it were written meanwhile: run the command again",) if n_left else ()
        gone = {key for keys in plan.batches for key in keys}
        faults: list[str] = []
        for ns in self.reader.namespaces(thread):
            tree = read_tree(self.reader, thread, ns)
            faults += [f"{id} has a parent that is gone" for id in tree.ids if (ns, tree.parents[id]) in gone]
            faults += [f"{id} is still there" for id in tree.ids if (ns, id) in gone]
        if isinstance(self.reader, Auditable):
            faults += _orphans(self.reader, self.reader.audit().orphans(thread, limit=_MAX_ORPHANS), thread)
        return tuple(faults)


@dataclass(slots=True)
class _Done:
    """How far one thread's plan was carried out.

    Attributes:
        mark: The thread as the last transaction left it.
        removed: What is gone.
        is_begun: Whether there was a transaction.
    """

    mark: ThreadMark
    removed: Removed = field(default_factory=Removed)
    is_begun: bool = False


@contextmanager
def _checked(deleter: Deleter, thread: str, done: _Done) -> Iterator[Deletion]:
    """Yields a transaction in which the thread is as the last one left it.

    Raises:
        Overtaken: It is not; nothing was done.
    """
    with deleter.transaction() as deletion:
        if deletion.mark(thread) != done.mark:
            raise Overtaken("the thread was written to")
        yield deletion
        mark = deletion.mark(thread)
    done.mark = mark


def _apply(deletion: Deletion, thread: str, relink: Relink) -> None:
    """Gives a checkpoint its new parent, and snapshots where it takes them; its values must be what they were.

    Raises:
        StoreError: They would not be.
    """
    reader, (ns, id) = deletion.reader(), relink.key
    (row,) = reader.rows(thread, ns, ids=[id])
    before = _delta_values(reader, row)
    if relink.takes_snapshots:
        ancestors = list(read_tree(reader, thread, ns).chain(id))[1:]
        made, _ = read_snapshots(reader, row, ancestors)
        for channel, snapshot in made.items():
            deletion.set_snapshot(thread, relink.key, channel, snapshot)
    deletion.set_parent(thread, relink.key, relink.parent)
    if _delta_values(reader, row) != before:
        raise StoreError(
            f"checkpoint {id} would not load as before without its ancestors; nothing was taken away",
            hint="its delta channels: " + command("show", reader.info.target(f"{thread}@{id}")),
        )


def _delta_values(reader: Reader, row: CheckpointRow) -> tuple[object, ...]:
    """Returns the values of a checkpoint's delta channels, which are all that is read from its ancestors."""
    channels = delta_channels(row)
    if not channels:
        return ()
    read = read_values(reader, row.thread, row.ns, row.id, channels=channels)
    return dict(read.values), dict(read.unreadable)


def _orphans(reader: Reader, found: Sequence[OrphanRows], thread: str) -> Iterator[str]:
    """Yields the rows that belong to nothing, but for those that a run or a checkpoint of an old format may read."""
    heads = ((ns, read_tree(reader, thread, ns).head) for ns in reader.namespaces(thread))
    newest = newest_of((ns, head) for ns, head in heads if head is not None)
    for orphans in found:
        key = (orphans.ns, orphans.checkpoint or "")
        if orphans.checkpoint is None:
            is_fault = orphans.n_newer < orphans.n_rows
        else:
            is_fault = is_settled(key, newest) and not any(needed_by_children(reader, thread, [key]))
        if is_fault:
            yield f"{orphans.n_rows:,} {orphans.table} in namespace {orphans.ns!r} belong to no checkpoint"


def _overtaken(removed: Removed) -> str:
    left = "it is left as it was" if not removed.n_rows else f"{removed.n_rows:,} rows were gone by then"
    return f"it was written to meanwhile: {left}; run the command again"
