"""The application's own tables, in SQLite or Postgres: short transactions, one connection each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

_POSTGRES = ("postgresql://", "postgres://")
_SQLITE = "sqlite:///"
_BUSY_TIMEOUT_S = 30.0


class Transaction(Protocol):
    """A transaction; `?` marks a parameter, rows come as dicts."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Runs one statement and returns its rows, none where it gives none."""
        ...


class Database:
    """A database by URL: `sqlite:///file`, a path, or `postgresql://...`. Nothing is opened before it is used.

    Args:
        url: Where it is; a SQLite file is created where missing.
        tables: `CREATE TABLE IF NOT EXISTS` statements that both databases take.
    """

    def __init__(self, url: str, tables: Sequence[str]) -> None:
        self.url = url
        self._tables = tuple(tables)
        self._is_ready = False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Opens a transaction that may write; it is committed at the end, rolled back on an exception."""
        opened = _postgres(self.url) if self.url.startswith(_POSTGRES) else _sqlite(self.url)
        with opened as transaction:
            if not self._is_ready:
                self._create(transaction)
            yield transaction
        self._is_ready = True

    def _create(self, transaction: Transaction) -> None:
        if self.url.startswith(_POSTGRES):
            # Two processes that create the same table at once would collide in the catalog.
            transaction.execute("SELECT pg_advisory_xact_lock(hashtext('graphs.common.database'))")
        for statement in self._tables:
            transaction.execute(statement)


class _Sqlite:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        cursor = self._connection.execute(sql, tuple(parameters))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class _Postgres:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        cursor = self._connection.execute(sql.replace("?", "%s"), tuple(parameters))
        return list(cursor.fetchall()) if cursor.description else []


@contextmanager
def _sqlite(url: str) -> Iterator[Transaction]:
    path = Path(url.removeprefix(_SQLITE))
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield _Sqlite(connection)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    finally:
        connection.close()


@contextmanager
def _postgres(url: str) -> Iterator[Transaction]:
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(url, row_factory=dict_row) as connection:
        yield _Postgres(connection)
