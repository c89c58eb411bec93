"""From a record that a database driver fetched to a row; the column orders are those of the readers' queries."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, itemgetter
from typing import Any

from agentctl.records.rows import CheckpointRow, Stored, WriteRow
from agentctl.stores.bookkeeping import decode_metadata


def checkpoint_row(
    thread: str, ns: str, checkpoint_id: str, parent: str | None, raw_metadata: object = None
) -> CheckpointRow:
    """Returns a row; an empty parent id is no parent (LangGraph.js writes '')."""
    if raw_metadata is None:
        return CheckpointRow(thread, ns, checkpoint_id, parent or None, {})
    metadata, error = decode_metadata(raw_metadata)
    return CheckpointRow(thread, ns, checkpoint_id, parent or None, metadata, error)


def write_rows(ns: str, records: Iterable[tuple[Any, ...]]) -> list[WriteRow]:
    """Returns writes in the order of `Reader.writes`.

    Args:
        ns: Their namespace.
        records: (checkpoint id, task path, task id, idx, channel, type, value, bytes).
    """
    return [
        _new(
            WriteRow,
            (ns, id_, task, path, idx, channel, None if value is None else stored_value(type_, value), n_bytes or 0),
        )
        for id_, path, task, idx, channel, type_, value, n_bytes in sorted(records, key=_first_four)
    ]


def stored_value(type_: str | None, data: str | bytes | memoryview | None) -> Stored:
    """Returns a value with its type tag. LangGraph.js has stored text where Python stores bytes."""
    if type(data) is bytes:
        return _new(Stored, (type_ or "", data))
    return Stored(type_ or "", data.encode() if isinstance(data, str) else bytes(data or b""))


_new = tuple.__new__
"""What a named tuple calls in the end; the call before it takes longer than this one."""
_first_four = itemgetter(0, 1, 2, 3)
write_order = attrgetter("checkpoint_id", "task_path", "task_id", "idx")
"""The sort key of `Reader.writes`; a store has task paths for all writes or for none.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py (`writes_sort_key`).
"""
