"""From a record that a database driver fetched to a row; the column orders are those of the readers' queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from agentctl.errors import StrangeRow
from agentctl.records.rows import CheckpointRow, Stored, WriteRow
from agentctl.stores.bookkeeping import decode_metadata


def checkpoint_row(
    thread: str, ns: str, checkpoint_id: str, parent: str | None, raw_metadata: object = None
) -> CheckpointRow:
    """Returns a row; an empty parent id is no parent (LangGraph.js writes '').

    Raises:
        StrangeRow: An id is no text.
    """
    if type(checkpoint_id) is not str or (parent is not None and type(parent) is not str):
        require_texts(checkpoint_id=checkpoint_id, parent_checkpoint_id=parent or "")
    if raw_metadata is None:
        return CheckpointRow(thread, ns, checkpoint_id, parent or None, {})
    metadata, error = decode_metadata(raw_metadata)
    return CheckpointRow(thread, ns, checkpoint_id, parent or None, metadata, error)


def write_rows(ns: str, records: Sequence[tuple[Any, ...]]) -> list[WriteRow]:
    """Returns writes in the order of `Reader.writes`.

    Args:
        ns: Their namespace.
        records: (checkpoint id, task path, task id, idx, channel, type, value, bytes).

    Raises:
        StrangeRow: An id, a channel or a path is no text, or an idx no number.
    """
    for id_, path, task, idx, channel, *_ in records:
        if not (type(id_) is type(task) is type(channel) is str and type(idx) is int and type(path) in _PATH_TYPES):
            require_texts(checkpoint_id=id_, task_path=path or "", task_id=task, channel=channel)
            raise _odd("idx", idx, "a number")
    return [
        _new(
            WriteRow,
            (ns, id_, task, path, idx, channel, None if value is None else stored_value(type_, value), n_bytes or 0),
        )
        for id_, path, task, idx, channel, type_, value, n_bytes in sorted(records, key=_first_four)
    ]


def require_texts(**columns: object) -> None:
    """Refuses columns of keys that are no text, named by their columns: SQLite keeps a blob in them as it is.

    Raises:
        StrangeRow: There is one.
    """
    for column, value in columns.items():
        if type(value) is not str:
            raise _odd(column, value, "text")


def stored_value(type_: object, data: object) -> Stored:
    """Returns a value with its type tag. LangGraph.js has stored text where Python stores bytes."""
    if type(data) is bytes and type(type_) is str:
        return _new(Stored, (type_, data))
    tag = type_.decode("utf-8", "replace") if isinstance(type_, bytes) else str(type_ or "")
    match data:
        case None:
            return Stored(tag, b"")
        case bytes() | memoryview():
            return Stored(tag, bytes(data))
        case _:
            return Stored(tag, str(data).encode())


def _odd(column: str, value: object, expected: str) -> StrangeRow:
    return StrangeRow(
        f"a row has the {column} {value!r}, where LangGraph writes {expected}: it cannot be looked at",
        hint=f"SQL that finds it: ... WHERE typeof({column}) = '{_STORAGE_CLASSES.get(type(value), 'null')}'",
    )


_PATH_TYPES = (str, type(None))
_STORAGE_CLASSES: Mapping[type, str] = {bytes: "blob", str: "text", float: "real", int: "integer"}


_new = tuple.__new__
"""What a named tuple calls in the end; the call before it takes longer than this one."""
_first_four = itemgetter(0, 1, 2, 3)
write_order = attrgetter("checkpoint_id", "task_path", "task_id", "idx")
"""The sort key of `Reader.writes`; a store has task paths for all writes or for none.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py (`writes_sort_key`).
"""
