"""One snapshot of a Postgres database, held while a copy or an examination reads it, and given to other transactions.

Source: www.postgresql.org/docs/18/functions-admin.html (`pg_export_snapshot`) and sql-set-transaction.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from agentctl.stores.postgres.opening import BEGIN, ReadCursor, connected, store_error
from agentctl.stores.urls import hide_password

T = TypeVar("T")


class Snapshot:
    """A connection in one read-only transaction; see `agentctl.stores.postgres.opening.Readable`.

    Attributes:
        connection: It.
        shown: URL of the database without its password.
    """

    def __init__(self, connection: psycopg.Connection[TupleRow], shown: str) -> None:
        self.connection = connection
        self.shown = shown

    def read(self, work: Callable[[ReadCursor], T]) -> T:
        """Returns `work(cursor)`. A lost connection is not made again: the snapshot went with it.

        Raises:
            StoreError: The server stopped the read, or the connection was lost.
        """
        with self.errors_told(), self.connection.cursor(binary=True) as cursor:
            return work(cursor)

    def close(self) -> None:
        """Does nothing: the block that opened the snapshot ends it."""

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """Makes errors of this connection, and of no other, those of the store.

        Raises:
            StoreError: The connection was lost, or the server stopped the read.
        """
        try:
            yield
        except psycopg.Error as error:
            if self.connection.closed or self.connection.info.transaction_status == TransactionStatus.INERROR:
                raise store_error(self.shown, error) from error
            raise


@contextmanager
def open_snapshot(url: str) -> Iterator[Snapshot]:
    """Gives a snapshot of a database on a connection of its own, which ends with the block.

    Raises:
        StoreError: The server cannot be reached.
    """
    shown = hide_password(url)
    try:
        connection = connected(url)
    except psycopg.Error as error:
        raise store_error(shown, error) from error
    with connection:
        snapshot = Snapshot(connection, shown)
        with snapshot.errors_told():
            connection.execute(BEGIN)
        try:
            yield snapshot
        finally:
            if not connection.closed:
                connection.rollback()


def same_database(first: psycopg.Connection[TupleRow], second: psycopg.Connection[TupleRow]) -> bool:
    """Tells whether two connections lead to the same database of the same running server."""
    query = (
        "SELECT pg_catalog.pg_postmaster_start_time(), oid FROM pg_catalog.pg_database"
        " WHERE datname = pg_catalog.current_database()"
    )
    return first.execute(query).fetchone() == second.execute(query).fetchone()


def statement_that_takes(snapshot: Snapshot) -> sql.Composed:
    """Returns what a transaction of the same database begins with, to see what the snapshot sees."""
    found = snapshot.connection.execute("SELECT pg_catalog.pg_export_snapshot()").fetchone()
    return sql.SQL("SET TRANSACTION SNAPSHOT {}").format(None if found is None else found[0])
