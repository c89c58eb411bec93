"""From a record that a database driver fetched to a row; the column orders are those of the readers' queries."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from agentctl.records.rows import CheckpointRow, Stored, WriteRow
from agentctl.stores.bookkeeping import decode_metadata


def checkpoint_row(
    thread: str, ns: str, checkpoint_id: str, parent: str | None, raw_metadata: object = None
) -> CheckpointRow:
    """Returns a row; an empty parent id is no parent (LangGraph.js writes '')."""
    metadata, error = decode_metadata(raw_metadata)
    return CheckpointRow(thread, ns, checkpoint_id, parent or None, metadata, metadata_error=error)


def write_row(ns: str, record: tuple[Any, ...]) -> WriteRow:
    """Returns a write from (checkpoint id, task id, task path, idx, channel, type, value, bytes)."""
    checkpoint_id, task_id, task_path, idx, channel, type_, value, n_bytes = record
    stored = None if value is None else stored_value(type_, value)
    return WriteRow(ns, checkpoint_id, task_id, task_path, idx, channel, stored, n_bytes or 0)


def stored_value(type_: str | None, data: str | bytes | memoryview | None) -> Stored:
    """Returns a value with its type tag. LangGraph.js has stored text where Python stores bytes."""
    if type(data) is bytes:
        return Stored(type_ or "", data)
    return Stored(type_ or "", data.encode() if isinstance(data, str) else bytes(data or b""))


write_order = attrgetter("checkpoint_id", "task_path", "task_id", "idx")
"""The sort key of `Reader.writes`; a store has task paths for all writes or for none.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py (`writes_sort_key`).
"""
