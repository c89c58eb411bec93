"""Heads of many threads from one SQLite file; see `agentctl.stores.heads`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agentctl.stores import bookkeeping
from agentctl.stores.fetched import checkpoint_row, stored_value
from agentctl.stores.heads import HeadState

_QUERY = (
    "SELECT parent_checkpoint_id, metadata, type, checkpoint, EXISTS (SELECT 1 FROM writes AS w WHERE w.thread_id = ?1"
    " AND w.checkpoint_ns = '' AND w.checkpoint_id = ?2) FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ''"
    " AND checkpoint_id = ?2 AND coalesce(length(checkpoint), 0) <= ?3"
)


def read_head_states(
    connection: sqlite3.Connection,
    heads: Sequence[tuple[str, str]],
    is_asked: Callable[[str], bool],
    *,
    whole_bytes: int,
) -> Mapping[str, HeadState]:
    """Returns heads whose states have at most `whole_bytes`, by thread; one state is held at a time."""
    found: dict[str, HeadState] = {}
    for thread, checkpoint_id in heads:
        record = connection.execute(_QUERY, (thread, checkpoint_id, whole_bytes)).fetchone()
        if record is None:
            continue
        parent, metadata, type_, data, has_writes = record
        row = checkpoint_row(thread, "", checkpoint_id, parent, metadata)
        stored = bookkeeping.read_state(row, stored_value(type_, data), None)
        values = {channel: value for channel, value in stored.values.items() if is_asked(channel)}
        found[thread] = HeadState(replace(stored, values=values), bool(has_writes))
    return found
