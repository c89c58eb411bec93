"""Pending writes of a thread that no stored checkpoint refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctl.records.prunes import Key
from agentctl.stores.base import Reader
from agentctl.stores.deleting import RowWeight
from agentctl.stores.reading.ancestors import reads_sends_of_parent
from agentctl.stores.reading.layout import TASKS
from agentctl.stores.reading.lineage import Tree, read_tree
from agentctl.upkeep.settled import REST, is_settled, newest_of


@dataclass(frozen=True, slots=True)
class StrayWrites:
    """Checkpoints that are not stored and have pending writes, in order.

    Attributes:
        settled: Those whose writes nobody waits for.
        newer: Those that a run may be about to store.
        needed: Those whose Sends belong to a child that is stored, by its format.
    """

    settled: tuple[Key, ...]
    newer: tuple[Key, ...]
    needed: tuple[Key, ...]


def read_stray_writes(reader: Reader, thread: str, weights: Mapping[Key, RowWeight]) -> StrayWrites:
    """Returns the writes of a thread whose checkpoint is not stored, given all that it has."""
    stray = sorted(key for key, weight in weights.items() if not weight.is_stored)
    needed = frozenset(needed_by_children(reader, thread, stray))
    newest = newest_of(key for key, weight in weights.items() if weight.is_stored)
    free = [key for key in stray if key not in needed]
    return StrayWrites(
        tuple(key for key in free if is_settled(key, newest)),
        tuple(key for key in free if not is_settled(key, newest)),
        tuple(key for key in stray if key in needed),
    )


def needed_by_children(reader: Reader, thread: str, stray: Iterable[Key]) -> Iterator[Key]:
    """Yields the keys whose Sends a stored child reads as its own, although its parent itself is gone.

    Source: langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py (`SELECT_PENDING_SENDS_SQL` reads them by
    the parent's id alone).
    """
    trees: dict[str, Tree] = {}
    for ns, id in stray:
        tree = trees[ns] if ns in trees else trees.setdefault(ns, read_tree(reader, thread, ns))
        children = tree.children.get(id, ())
        if not children or not reader.writes(thread, ns, [id], value_bytes=0, channels=[TASKS]):
            continue
        if any(reads_sends_of_parent(reader, row) for row in reader.rows(thread, ns, ids=children)):
            yield (ns, id)


def about_left(needed: Sequence[Key], newer: Sequence[Key], n_blobs: int) -> Iterator[str]:
    """Yields what stays of the rows that no checkpoint refers to, and why."""
    for _, id in needed:
        yield f"the writes of {id} stay: a checkpoint of an old format has its pending Sends among them"
    what = [f"the writes of {len(newer):,}" if len(newer) > 1 else f"the writes of {newer[0][1]}"] if newer else []
    what += [f"{n_blobs:,} blobs" if n_blobs > 1 else "1 blob"] if n_blobs else []
    if what:
        yield (
            f"{' and '.join(what)} stay: they are newer than every checkpoint, so a run may be about to store what they"
            f" belong to; --older-than {REST} takes them as well where they are older than that"
        )
