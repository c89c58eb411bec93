"""Reading parts of one large checkpoint through SQLite's incremental blobs: the rest of it is never held."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import cast

from agentctl.codec.windows import Sliceable
from agentctl.records.rows import StoredCheckpoint
from agentctl.stores import bookkeeping
from agentctl.stores.fetched import checkpoint_row


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
