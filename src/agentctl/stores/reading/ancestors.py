"""What a checkpoint depends on: the rows around it, and what it reads from ancestors when it is loaded.

The latter are delta channels, and the Sends of old formats.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py (`get_delta_channel_history`);
langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py (`_migrate_pending_sends`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from agentctl.errors import DecodeError
from agentctl.records.rows import CheckpointRow
from agentctl.stores.base import Reader
from agentctl.stores.bookkeeping import SENDS_MOVED_IN_FORMAT
from agentctl.stores.reading.state import delta_channels

_WALK_BATCH = 32


def enclosing_ids(row: CheckpointRow) -> Mapping[str, str]:
    """Returns the enclosing checkpoints recorded on a row of a subgraph, by namespace.

    Source: `metadata["parents"]` (langgraph 1.2.24, pregel/_loop.py `_put_checkpoint`).
    """
    parents = row.metadata.get("parents")
    return {str(ns): str(id) for ns, id in parents.items()} if isinstance(parents, Mapping) else {}


def delta_ancestors(
    reader: Reader, row: CheckpointRow, ancestors: Iterable[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yields the ancestors that hold the seed and the writes of delta channels which a checkpoint does not store.

    Each comes with the channels still sought there, down to and including the first that stores a value of all; where
    none does, down to the last.

    Args:
        reader: Where the thread lives.
        row: The checkpoint, with its metadata.
        ancestors: Ids from its parent on, nearest first; no more are taken than are needed.
    """
    channels = delta_channels(row)
    if not channels:
        return
    sought = channels - stored_channels(reader, row, [row.id], channels)[row.id]
    rest = iter(ancestors)
    while sought and (batch := list(islice(rest, _WALK_BATCH))):
        stored = stored_channels(reader, row, batch, sought)
        for id in batch:
            if not sought:
                return
            yield id, sought
            sought -= stored[id]


def stored_channels(
    reader: Reader, row: CheckpointRow, ids: Sequence[str], channels: Collection[str]
) -> dict[str, frozenset[str]]:
    """Returns which channels each checkpoint of a row's namespace stores; none of one that cannot be read."""
    stored: dict[str, frozenset[str]] = {id: frozenset() for id in ids}
    try:
        for checkpoint in reader.stored(row.thread, row.ns, ids, channels=channels):
            stored[checkpoint.row.id] = frozenset(
                channel for channel, value in checkpoint.values.items() if value.type != "empty"
            )
    except DecodeError:
        return {id: frozenset() for id in ids}
    return stored


def reads_sends_of_parent(reader: Reader, row: CheckpointRow) -> bool:
    """Says whether a checkpoint is of a format whose pending Sends are among its parent's writes."""
    try:
        checkpoint = next(iter(reader.stored(row.thread, row.ns, [row.id], channels=())), None)
    except DecodeError:
        return False
    return checkpoint is not None and checkpoint.damage is None and checkpoint.format < SENDS_MOVED_IN_FORMAT
