"""Rows of a SQLite file exactly as its columns hold them, a few megabytes at a time; larger values in chunks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from agentctl.stores.base import RowPick
from agentctl.stores.batches import by_size, in_chunks
from agentctl.stores.copying.picking import by_namespace, by_rule, condition
from agentctl.stores.sqlite.keys import ThreadKeys
from agentctl.stores.sqlite.opening import Readable
from agentctl.stores.sqlite.parts import Cell, in_chunks_of, is_large
from agentctl.stores.sqlite.reader import TASK_PATH
from agentctl.stores.sqlite.writer import CHECKPOINT_VALUES, WRITE_VALUES

_IDS_PER_QUERY = 500
_BATCH_BYTES = 8 * 1024 * 1024


def read_checkpoints(file: Readable, thread: str, picks: Sequence[RowPick]) -> Iterator[tuple[Any, ...]]:
    """Yields the picked checkpoints as `CHECKPOINT_VALUES`, in the order of the picks."""
    columns = _columns(CHECKPOINT_VALUES, "checkpoint")
    for ns, ids in by_namespace(picks).items():
        for batch in _batches(file, "sum(length(checkpoint))", "checkpoints", thread, ns, list(ids), "", ()):
            query = (
                f"SELECT {columns} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
                f" AND checkpoint_id IN ({_marks(batch)}) ORDER BY checkpoint_id"
            )
            for *row, left_out in file.read(partial(_fetch, query=query, parameters=(thread, ns, *batch))):
                key: dict[str, object] = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": row[1]}
                yield _whole_row(file, row, CHECKPOINT_VALUES, Cell("checkpoints", "checkpoint", key), left_out)


def read_writes(
    file: Readable, thread: str, picks: Sequence[RowPick], keys: ThreadKeys | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yields the writes that the picks take as `WRITE_VALUES`; a file without task paths has empty ones.

    Args:
        file: The database.
        thread: Exact thread id.
        picks: Which writes.
        keys: The rows that are seen; None for all.
    """
    has_path = TASK_PATH in file.read(_write_columns)
    columns = _columns([column if column != TASK_PATH or has_path else "''" for column in WRITE_VALUES], "value")
    for rule, group in by_rule(picks).items():
        where, parameters = condition(rule, "?")
        for ns, ids in by_namespace(group).items():
            for batch in _batches(file, "sum(length(value))", "writes", thread, ns, list(ids), where, parameters):
                query = (
                    f"SELECT {columns} FROM writes WHERE thread_id = ? AND checkpoint_ns = ?"
                    f" AND checkpoint_id IN ({_marks(batch)}){where} ORDER BY checkpoint_id, task_id, idx"
                )
                found = file.read(partial(_fetch, query=query, parameters=(thread, ns, *batch, *parameters)))
                for *row, left_out in found:
                    if keys is None or keys.has_write(ns, row[1], row[2], row[4]):
                        key: dict[str, object] = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": row[1]}
                        key |= {"task_id": row[2], "idx": row[4]}
                        yield _whole_row(file, row, WRITE_VALUES, Cell("writes", "value", key), left_out)


def read_types(file: Readable, thread: str, picks: Sequence[RowPick]) -> Iterator[tuple[str, str, str]]:
    """Yields namespace, id and serialization type of the picked checkpoints; no value is read."""
    for ns, ids in by_namespace(picks).items():
        for chunk in in_chunks(list(ids), _IDS_PER_QUERY):
            query = (
                "SELECT checkpoint_ns, checkpoint_id, coalesce(type, '') FROM checkpoints"
                f" WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id IN ({_marks(chunk)})"
            )
            yield from file.read(partial(_fetch, query=query, parameters=(thread, ns, *chunk)))


def _columns(names: Sequence[str], value: str) -> str:
    """Returns the SQL of columns, NULL for a large value; whether it is one comes last."""
    held = f"CASE WHEN {is_large(value)} THEN NULL ELSE {value} END"
    return ", ".join([*(held if name == value else name for name in names), is_large(value)])


def _whole_row(file: Readable, row: Sequence[Any], names: Sequence[str], cell: Cell, left_out: bool) -> tuple[Any, ...]:
    """Returns a row with its large value in chunks, or whole where SQLite cannot give parts of it."""
    if not left_out:
        return tuple(row)
    value: object = in_chunks_of(file, cell)
    if value is None:
        where = " AND ".join(f"{name} = ?" for name in cell.key)
        query = f"SELECT {cell.column} FROM {cell.table} WHERE {where}"
        ((value,),) = file.read(partial(_fetch, query=query, parameters=tuple(cell.key.values())))
    return tuple(value if name == cell.column else held for name, held in zip(names, row, strict=True))


def _batches(
    file: Readable,
    size: str,
    table: str,
    thread: str,
    ns: str,
    ids: Sequence[str],
    where: str,
    parameters: Sequence[str],
) -> Iterator[list[str]]:
    """Yields ids of rows that exist, oldest first, in groups that are read at once.

    Their size is an aggregate: beside GROUP BY, SQLite would hold a value that is only asked for its length.
    """
    for chunk in in_chunks(sorted(ids), _IDS_PER_QUERY):
        query = (
            f"SELECT checkpoint_id, coalesce({size}, 0) FROM {table} WHERE thread_id = ? AND checkpoint_ns = ?"
            f" AND checkpoint_id IN ({_marks(chunk)}){where} GROUP BY checkpoint_id ORDER BY checkpoint_id"
        )
        sizes = file.read(partial(_fetch, query=query, parameters=(thread, ns, *chunk, *parameters)))
        yield from by_size(sizes, _BATCH_BYTES, _IDS_PER_QUERY)


def _fetch(connection: sqlite3.Connection, *, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(query, parameters).fetchall()


def _write_columns(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(record[1] for record in connection.execute("PRAGMA table_info(writes)"))


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
