"""What must stay besides, or the checkpoints that are kept would load other values than before.

- A delta channel is rebuilt from ancestors, down to one that stores a value.
- A checkpoint of a format before 4 has its pending Sends among its parent's writes.
- A subgraph that keeps its state from call to call goes on from its newest row on the branch, however old that is.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py (`prune`, `get_delta_channel_history`); langgraph
1.2.24, pregel/_loop.py (`_first`) and _internal/_replay.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from agentctl.records.prunes import Key
from agentctl.revisions.heads import EDITS
from agentctl.stores.base import Reader
from agentctl.stores.reading.ancestors import delta_ancestors, reads_sends_of_parent, stored_channels
from agentctl.stores.reading.layout import TASKS
from agentctl.upkeep.prune.shape import ROOT, Shape
from agentctl.upkeep.prune.snapshots import read_snapshots


@dataclass(slots=True)
class Needs:
    """Root checkpoints that stay, closed under what they need.

    Attributes:
        kept: Ids of root checkpoints that stay.
        delta: Those of them that stay for a delta channel alone.
        channels: The delta channels that these are rebuilt for.
        snapshots: Checkpoints that get snapshots, in place of ancestors.
        unsnapped: Delta channels of which a snapshot was wanted and could not be made.
    """

    kept: set[str]
    delta: set[str] = field(default_factory=set)
    channels: set[str] = field(default_factory=set)
    snapshots: set[Key] = field(default_factory=set)
    unsnapped: set[str] = field(default_factory=set)


def with_needed(reader: Reader, shape: Shape, kept: set[str], *, snapshot: bool) -> Needs:
    """Returns the root checkpoints that stay: those that are to be kept, and those that these need.

    Args:
        reader: Where the thread lives.
        shape: The thread.
        kept: Ids that are to be kept.
        snapshot: Whether the values of delta channels can be stored instead, where they can be made.
    """
    needs = Needs(set(kept))
    looked_at: set[Key] = set()
    while True:
        edge = [key for key in _edge(shape, needs.kept) if key not in looked_at]
        if not edge:
            return needs
        looked_at.update(edge)
        for key in edge:
            _add_ancestors(reader, shape, key, needs, snapshot=snapshot)
            if key[0] == ROOT and shape.carried:
                needs.kept.update(_carried(shape, key[1]))


def _edge(shape: Shape, kept: set[str]) -> Iterator[Key]:
    """Yields the rows that stay while their parents go."""
    for id in kept:
        for key in shape.unit(id):
            parent = shape.rows[key].parent
            if parent is None or parent not in shape.trees[key[0]].parents:
                continue
            if shape.owner((key[0], parent)) not in kept:
                yield key


def _add_ancestors(reader: Reader, shape: Shape, key: Key, needs: Needs, *, snapshot: bool) -> None:
    row, tree = shape.rows[key], shape.trees[key[0]]
    ancestors = list(islice(tree.chain(key[1]), 1, None))
    made, without = read_snapshots(reader, row, ancestors) if snapshot else ({}, frozenset[str]())
    needs.unsnapped |= without
    if made and not without:
        needs.snapshots.add(key)
    elif path := _delta_path(reader, shape, key, ancestors):
        owners = {owner for id in path.ids if (owner := shape.owner((key[0], id))) is not None}
        needs.delta |= owners - needs.kept
        needs.kept |= owners
        needs.channels |= path.channels
    parent = ancestors[0] if ancestors else None
    if parent is not None and _has_sends(reader, shape, (key[0], parent)) and reads_sends_of_parent(reader, row):
        owner = shape.owner((key[0], parent))
        needs.kept.update({owner} if owner is not None else ())


@dataclass(frozen=True, slots=True)
class _Path:
    """What delta channels of a checkpoint are rebuilt from: ancestors, nearest first; and which channels these are."""

    ids: tuple[str, ...]
    channels: frozenset[str]


def _delta_path(reader: Reader, shape: Shape, key: Key, ancestors: Sequence[str]) -> _Path | None:
    """Returns the ancestors down to the last that anything is read of, None where there are none."""
    path = list(delta_ancestors(reader, shape.rows[key], ancestors))
    if not path:
        return None
    ids = [id for id, _ in path]
    writes = reader.writes(shape.thread, key[0], ids, value_bytes=0, channels=path[0][1])
    written = {(write.checkpoint_id, write.channel) for write in writes}
    below = [*(sought for _, sought in path[1:]), _sought_after(reader, shape, key, path[-1])]
    n_used, channels = 0, set[str]()
    for place, ((id, sought), still) in enumerate(zip(path, below, strict=True), 1):
        # A channel that is not sought any more has its value; what was written to it before is not read.
        used = (sought - still) | {channel for channel in sought if (id, channel) in written}
        n_used = place if used else n_used
        channels |= used
    return _Path(tuple(ids[:n_used]), frozenset(channels)) if n_used else None


def _sought_after(reader: Reader, shape: Shape, key: Key, last: tuple[str, frozenset[str]]) -> frozenset[str]:
    """Returns the channels that even the last ancestor stores no value of."""
    id, sought = last
    return sought - stored_channels(reader, shape.rows[key], [id], sought)[id]


def _has_sends(reader: Reader, shape: Shape, key: Key) -> bool:
    return bool(reader.writes(shape.thread, key[0], [key[1]], value_bytes=0, channels=[TASKS]))


def _carried(shape: Shape, root_id: str) -> Iterator[str]:
    """Yields the root checkpoints whose rows in carried namespaces a run from `root_id` goes on from.

    A resume reads the newest row on its branch; a run with the checkpoint's id one that is older than the checkpoint,
    or than its parent where the checkpoint is an update or a fork.
    """
    chain = list(shape.root.chain(root_id))
    n_skipped = 3 if shape.rows[ROOT, root_id].source in EDITS else 2
    branches = [frozenset(chain[n:]) for n in range(n_skipped)]
    for ns in shape.carried:
        owners = [shape.owner((ns, id)) for id in shape.trees[ns].ids]
        for branch in branches:
            yield from islice((owner for owner in owners if owner in branch), 1)
