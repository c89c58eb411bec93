"""Taking away a file of SQLite that was made for rows which never came."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

_TABLES = {"checkpoints", "writes"}


def remove_unused(path: Path) -> None:
    """Removes a file in WAL mode that holds only empty tables of checkpoints; one that anybody has open stays.

    A connection can leave WAL mode only where no other has the file open. Who opens it from then on finds a file in
    rollback mode, and SQLite writes no such file once it is unlinked (SQLITE_READONLY_DBMOVED): no row is lost.
    """
    with (
        suppress(sqlite3.Error, OSError),
        closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)) as connection,
    ):
        if not _is_unused(connection):
            return
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        if _is_unused(connection):
            path.unlink()
            return
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA journal_mode=WAL")


def _is_unused(connection: sqlite3.Connection) -> bool:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names <= _TABLES:
        return False
    return not any(connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in names)
