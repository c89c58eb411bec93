"""Reading a Postgres database in short `READ ONLY` transactions, through poolers too.

Nothing is asked for at start-up and nothing is prepared on the server: poolers in transaction mode refuse the one and
lose the other. What keeps a read from writing is the transaction itself.

Source: www.postgresql.org/docs/18/sql-begin.html, errcodes-appendix.html and hot-standby.html; psycopg 3.3.9.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Lock
from typing import Protocol, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_loads

from agentctl.errors import StoreError
from agentctl.stores.urls import hide_password

T = TypeVar("T")

ReadCursor = psycopg.Cursor[TupleRow]

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_CONNECT_TIMEOUT_S = 10
_N_ATTEMPTS = 2


class Readable(Protocol):
    """What reads a database: work done on a cursor inside a transaction. `shown` is its URL without the password."""

    shown: str

    def read(self, work: Callable[[ReadCursor], T]) -> T:
        """Returns `work(cursor)`; it may run more than once."""
        ...

    def close(self) -> None:
        """Ends the reading. Safe to call twice."""
        ...


class PostgresDatabase:
    """One database, connected to when it is first read and again after a lost connection.

    Args:
        url: `postgresql://...`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown = hide_password(url)
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._lock = Lock()

    def read(self, work: Callable[[ReadCursor], T]) -> T:
        """Returns `work(cursor)`, run inside one read-only transaction with one snapshot.

        Args:
            work: Fetches all it needs before it returns; it runs again after a lost connection.

        Raises:
            StoreError: The server cannot be reached, refuses, or stopped the read; the hint says what to try.
        """
        with self._lock:
            for attempt in range(1, _N_ATTEMPTS + 1):
                try:
                    return self._transaction(self._connected(), work)
                except psycopg.Error as error:
                    if not self._is_worth_repeating(error) or attempt == _N_ATTEMPTS:
                        raise store_error(self.shown, error) from error
                except UnicodeEncodeError as error:
                    raise StoreError(f"not a text that a database can hold: {error.object!r}") from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> psycopg.Connection[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._connection = connected(self.url)
        return self._connection

    def _transaction(self, connection: psycopg.Connection[TupleRow], work: Callable[[ReadCursor], T]) -> T:
        with connection.cursor(binary=True) as cursor:
            cursor.execute(BEGIN)
            try:
                return work(cursor)
            finally:
                if not connection.closed:
                    cursor.execute("ROLLBACK")

    def _is_worth_repeating(self, error: psycopg.Error) -> bool:
        """Says whether the same read may work now: the connection was lost, or a standby had to move on."""
        lost = self._connection is not None and self._connection.closed
        return lost or isinstance(error, errors.SerializationFailure)


def connected(url: str) -> psycopg.Connection[TupleRow]:
    """Returns a connection that commits each statement and prepares none.

    JSON that is nested deeper than Python goes comes as its text; the server takes it several thousand levels deep.

    Raises:
        StoreError: The URL cannot be parsed.
        psycopg.Error: No connection could be made.
    """
    connection = psycopg.connect(connection_text(url), autocommit=True, prepare_threshold=None)
    set_json_loads(_json_or_text, connection)
    return connection


def _json_or_text(data: str | bytes) -> object:
    try:
        return json.loads(data)
    except RecursionError:
        return data


def connection_text(url: str) -> str:
    """Returns libpq's form of a URL, with a limit on the time to connect where it names none.

    Raises:
        StoreError: The URL cannot be parsed.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreError(
            f"not a Postgres URL: {hide_password(str(error).strip())}",
            hint="the form is postgresql://USER:PASSWORD@HOST:5432/DATABASE, special characters percent-encoded",
        ) from error
    limit = {} if "connect_timeout" in given else {"connect_timeout": _CONNECT_TIMEOUT_S}
    return make_conninfo(url, **limit)


def store_error(shown: str, error: psycopg.Error) -> StoreError:
    """Returns the error to show for one of Postgres's. `shown` is the URL without its password."""
    text = hide_password(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
    match error:
        case errors.QueryCanceled():
            return StoreError(
                f"the server stopped the read: {text}",
                hint="ask for less (--limit, one --ns), or use a role with a longer statement_timeout",
            )
        case errors.SerializationFailure():
            return StoreError(
                f"the standby stopped the read twice: {text}",
                hint="run the command again, read from the primary, or set hot_standby_feedback on the standby",
            )
        case errors.InsufficientPrivilege():
            return StoreError(
                f"this role may not read it: {text}",
                hint="GRANT USAGE ON SCHEMA ...; GRANT SELECT ON ALL TABLES IN SCHEMA ... TO the role",
            )
        case psycopg.OperationalError() if error.sqlstate is None or error.sqlstate.startswith(
            ("08", "28", "3D", "57P")
        ):
            return StoreError(
                f"no connection to {shown}: {text}", hint=f"check that it answers: psql '{shown}' -c 'SELECT 1'"
            )
        case _:
            return StoreError(f"cannot read {shown}: {text}", hint="check the tables: psql ... -c '\\d checkpoints'")
