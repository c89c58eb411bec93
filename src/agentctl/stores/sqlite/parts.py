"""Reading parts of one large checkpoint through SQLite's incremental blobs: the rest of it is never held."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from functools import partial
from typing import Literal, NamedTuple, cast

from agentctl.codec.windows import Span
from agentctl.records.rows import Large, Sliceable, StoredCheckpoint
from agentctl.stores import bookkeeping
from agentctl.stores.fetched import checkpoint_row
from agentctl.stores.large import LARGE_BYTES, Chunks, changed
from agentctl.stores.sqlite.opening import Readable


class Cell(NamedTuple):
    """One value of a table, by the key of its row."""

    table: Literal["checkpoints", "writes"]
    column: Literal["checkpoint", "value"]
    key: Mapping[str, object]


def is_large(value: str) -> str:
    """Returns SQL that is true of a value, given by its column, that is read and written in parts."""
    return f"typeof({value}) = 'blob' AND length({value}) > {LARGE_BYTES}"


def read_parts(
    connection: sqlite3.Connection,
    thread: str,
    ns: str,
    checkpoint_id: str,
    *,
    channels: Collection[str] | None,
    value_bytes: int | None,
) -> StoredCheckpoint | None:
    """Returns a checkpoint with the asked values; None where only the whole state tells them.

    That is a state that is not plain msgpack (JSON, encrypted), a table that was made without rowids, and a checkpoint
    that is gone.

    Args:
        connection: Inside a transaction.
        thread: Exact thread id.
        ns: Namespace.
        checkpoint_id: The checkpoint.
        channels: Values of only these channels; None for all.
        value_bytes: Values up to this many bytes; None for all.
    """
    try:
        found = connection.execute(
            "SELECT rowid, parent_checkpoint_id, metadata FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND type = 'msgpack'",
            (thread, ns, checkpoint_id),
        ).fetchone()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
            raise
        return None
    if found is None:
        return None
    rowid, parent, metadata = found
    row = checkpoint_row(thread, ns, checkpoint_id, parent, metadata)
    with connection.blobopen("checkpoints", "checkpoint", rowid, readonly=True) as blob:
        return bookkeeping.read_parts(row, cast(Sliceable, blob), channels, value_bytes)


def large_values(
    file: Readable, thread: str, ns: str, checkpoint_id: str, channels: Collection[str]
) -> Mapping[str, Large] | None:
    """Returns values of a checkpoint as they lie in its state; None where only the whole state tells them.

    Args:
        file: The database.
        thread: Exact thread id.
        ns: Namespace.
        checkpoint_id: The checkpoint.
        channels: Which values.
    """
    cell = Cell(
        "checkpoints",
        "checkpoint",
        {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id, "type": "msgpack"},
    )
    state = in_chunks_of(file, cell)
    if state is None:
        return None
    spans = bookkeeping.value_places(state)
    return {
        name: Large("msgpack", Span(state, span.start, span.stop)) for name, span in spans.items() if name in channels
    }


def in_chunks_of(file: Readable, cell: Cell) -> Chunks | None:
    """Returns a value of a table, read as it is sliced; None where SQLite cannot give parts of it, or it is gone."""
    found = file.read(partial(_bytes_of, cell=cell, start=0, n_bytes=0))
    if found is None:
        return None
    n_all = found[0]

    def read(start: int, n_bytes: int) -> bytes:
        part = file.read(partial(_bytes_of, cell=cell, start=start, n_bytes=n_bytes))
        if part is None or part[0] != n_all:
            raise changed()
        return part[1]

    return Chunks(n_all, read)


def _bytes_of(connection: sqlite3.Connection, cell: Cell, start: int, n_bytes: int) -> tuple[int, bytes] | None:
    """Returns how long a value is, and some of its bytes. The row is looked for each time: VACUUM gives new numbers."""
    where = " AND ".join(f"{name} = ?" for name in cell.key)
    try:
        found = connection.execute(f"SELECT rowid FROM {cell.table} WHERE {where}", tuple(cell.key.values())).fetchone()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
            raise
        return None
    if found is None:
        return None
    with connection.blobopen(cell.table, cell.column, found[0], readonly=True) as blob:
        return len(blob), cast(Sliceable, blob)[start : start + n_bytes]
