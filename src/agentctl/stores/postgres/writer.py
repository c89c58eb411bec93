"""The `Writer` on Postgres: a debug store, or the target of a copy. Rows are written in one transaction or not at all.

Source: table layouts of langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import ClassVar, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from agentctl.errors import AgentctlError, Refused, StoreError, ThreadExists
from agentctl.records.rows import Stored
from agentctl.stores.base import Reader, StoreInfo, StoreKind, WriteKey
from agentctl.stores.delegation import NoThreads, ReadsThrough
from agentctl.stores.large import Chunks
from agentctl.stores.postgres.layout import Layout, find_layout
from agentctl.stores.postgres.opening import PostgresDatabase, ReadCursor, connected, store_error
from agentctl.stores.postgres.reader import PostgresReader
from agentctl.stores.postgres.schema import are_tables_missing, create_missing_tables, create_tables, has_table
from agentctl.stores.postgres.snapshots import Snapshot, same_database, statement_that_takes
from agentctl.stores.urls import hide_password

T = TypeVar("T")

CHECKPOINT_VALUES = ("checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata")
BLOB_VALUES = ("checkpoint_ns", "channel", "version", "type", "blob")
WRITE_VALUES = ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "blob")
"""Columns of a row but its thread id, in the order in which raw rows are given and taken."""

TABLES = {
    "checkpoints": CHECKPOINT_VALUES,
    "checkpoint_blobs": BLOB_VALUES,
    "checkpoint_writes": WRITE_VALUES,
}
_SQL_TYPES = {"checkpoint": "jsonb", "metadata": "jsonb", "blob": "bytea", "idx": "int4"}
_MAKE_PARTS = "CREATE TEMPORARY TABLE agentctl_parts (number int4, part bytea) ON COMMIT DROP"
_PARTS = "(SELECT string_agg(part, ''::bytea ORDER BY number) FROM pg_temp.agentctl_parts)"
_JOINED = {"bytea": _PARTS, "jsonb": f"convert_from({_PARTS}, 'UTF8')::jsonb"}
"""SQL of a value that was sent in parts, by its type."""


class PostgresWriter(ReadsThrough):
    """A Postgres database open for writing; see `agentctl.stores.base.Writer`.

    Args:
        url: `postgresql://...`.
        schema: Schema of the tables; None takes the search path.
        profile: The name the store was reached by, or ''.
    """

    def __init__(self, url: str, *, schema: str | None = None, profile: str = "") -> None:
        self.url = url
        self.info = StoreInfo(kind="postgres", url=hide_password(url), profile=profile)
        self.schema = schema
        self._reader: PostgresReader | None = None
        self._is_set_up = False

    def setup(self) -> None:
        """See `Writer.setup`. Tables that are there are left as they are; older and newer ones are refused."""
        if self._is_set_up:
            return
        with _connected(self.url) as connection:
            create_missing_tables(connection, self.schema)
        self._is_set_up = True

    def found_schema(self) -> str | None:
        """Returns the schema that the tables are in, or None where there are none yet and none was asked for."""
        reading = self._reading()
        return reading.layout.schema if isinstance(reading, PostgresReader) else self.schema

    def delete_thread(self, thread: str) -> int:
        """See `Writer.delete_thread`."""
        if isinstance(self._reading(), NoThreads):
            return 0
        with self.transaction() as transaction:
            return transaction.delete_thread(thread)

    @contextmanager
    def transaction(self, snapshot: Snapshot | None = None) -> Iterator[PostgresTransaction]:
        """Yields one transaction with one snapshot, that ends with this block: committed where it ends well.

        Tables that are missing are made in it, so that nothing is left of them where it does not.

        Args:
            snapshot: What to see of the database, where the snapshot is of the same one; None sees it as it is now.

        Raises:
            StoreError: The server cannot be reached, refuses, or ended the transaction.
        """
        with _connected(self.url) as connection, ExitStack() as stack:
            takes, shared = None, None
            if snapshot is not None:
                with snapshot.errors_told():
                    if same_database(snapshot.connection, connection):
                        takes, shared = statement_that_takes(snapshot), snapshot
            is_new = not self._is_set_up and are_tables_missing(connection.cursor(), self.schema)
            stack.enter_context(connection.transaction())
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                if takes is not None:
                    cursor.execute(takes)
                if is_new:
                    create_tables(cursor, self.schema)
                layout = self._reader.layout if self._reader else find_layout(cursor, self.schema)
            yield PostgresTransaction(connection, layout, self.url, self.info, shared)

    def close(self) -> None:
        """See `Reader.close`."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _reading(self) -> Reader:
        if self._reader is None:
            database = PostgresDatabase(self.url)
            try:
                if database.read(lambda cursor: has_table(cursor, self.schema, "checkpoints")):
                    self._reader = PostgresReader(
                        self.url, schema=self.schema, profile=self.info.profile, database=database
                    )
            finally:
                if self._reader is None:
                    database.close()
        return self._reader or NoThreads(self.info)


class PostgresTransaction:
    """What can be done inside one transaction. It reads its own rows through `reader()`.

    Attributes:
        snapshot: That of another connection to the same database, which it sees besides its own rows; None for none.
    """

    kind: ClassVar[StoreKind] = "postgres"

    def __init__(
        self,
        connection: psycopg.Connection[TupleRow],
        layout: Layout,
        url: str,
        info: StoreInfo,
        snapshot: Snapshot | None,
    ) -> None:
        self.connection = connection
        self.snapshot = snapshot
        self.layout = layout
        self.url = url
        self.shown = info.url
        self._info = info

    def read(self, work: Callable[[ReadCursor], T]) -> T:
        """Returns `work(cursor)`."""
        with self.connection.cursor(binary=True) as cursor:
            return work(cursor)

    def close(self) -> None:
        """Does nothing: the block that opened the transaction ends it."""

    def reader(self) -> Reader:
        """Returns a reader that sees what this transaction wrote."""
        return PostgresReader(self.url, profile=self._info.profile, database=self, layout=self.layout)

    def has_thread(self, thread: str) -> bool:
        """Tells whether any table has a row of the thread."""
        looks = sql.SQL(" OR ").join(
            sql.SQL("EXISTS (SELECT 1 FROM {} WHERE thread_id = %s)").format(self.layout.table(table))
            for table in TABLES
        )
        found = self.connection.execute(sql.SQL("SELECT ") + looks, [thread] * len(TABLES)).fetchone()
        return found is not None and bool(found[0])

    def insert_checkpoints(self, thread: str, rows: Iterable[Sequence[object]]) -> None:
        """Inserts checkpoints given as `CHECKPOINT_VALUES`, the JSON columns as text."""
        self._copy_in("checkpoints", thread, rows)

    def insert_rows(self, table: str, thread: str, rows: Iterable[Sequence[object]]) -> None:
        """Inserts rows given as the columns of `TABLES`, large values in chunks: of bytes, or of JSON's text."""
        self._copy_in(table, thread, rows)

    def insert_blobs(self, thread: str, rows: Iterable[Sequence[object]]) -> None:
        """Inserts blobs given as `BLOB_VALUES`."""
        self._copy_in("checkpoint_blobs", thread, rows)

    def insert_writes(self, thread: str, rows: Iterable[Sequence[object]]) -> None:
        """Inserts writes given as `WRITE_VALUES`."""
        self._copy_in("checkpoint_writes", thread, rows)

    def clone(self, thread: str, as_thread: str) -> None:
        """Inserts every row of one thread again under another thread id."""
        for table, columns in TABLES.items():
            names = ", ".join(columns)
            self._execute(
                f"INSERT INTO {{0}} (thread_id, {names}) SELECT %s, {names} FROM {{0}} WHERE thread_id = %s",
                table,
                (as_thread, thread),
            )

    def add_write(self, thread: str, key: WriteKey, task_path: str, channel: str, value: Stored) -> None:
        """Inserts one write.

        Raises:
            Refused: There is a write with that key.
        """
        ns, checkpoint_id, task_id, idx = key
        row = (ns, checkpoint_id, task_id, task_path, idx, channel, value.type, value.data)
        try:
            self.insert_writes(thread, [row])
        except errors.UniqueViolation as error:
            raise Refused(f"checkpoint {checkpoint_id} already has write {idx} of task {task_id}") from error

    def set_write(self, thread: str, key: WriteKey, value: Stored) -> bool:
        """Replaces the value of one write; False where there is none with that key."""
        done = self._execute(
            "UPDATE {} SET type = %s, blob = %s WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
            " AND task_id = %s AND idx = %s",
            "checkpoint_writes",
            (value.type, value.data, thread, *key),
        )
        return done.rowcount == 1

    def merge_metadata(self, thread: str, ns: str, checkpoint_id: str, entries: Mapping[str, str]) -> None:
        """Adds entries to a checkpoint's metadata, replacing those of the same name."""
        self._execute(
            "UPDATE {} SET metadata = metadata || %s::jsonb"
            " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s",
            "checkpoints",
            (json.dumps(dict(entries)), thread, ns, checkpoint_id),
        )

    def delete_thread(self, thread: str) -> int:
        """Deletes every row of a thread; returns how many there were."""
        return sum(self._execute("DELETE FROM {} WHERE thread_id = %s", table, (thread,)).rowcount for table in TABLES)

    def keys(self, thread: str) -> set[tuple[str, str]]:
        """Returns namespace and id of every checkpoint of the thread that is there, if only with writes."""
        union = sql.SQL(" UNION ").join(
            sql.SQL("SELECT checkpoint_ns, checkpoint_id FROM {} WHERE thread_id = %s").format(self.layout.table(table))
            for table in ("checkpoints", "checkpoint_writes")
        )
        with self.connection.cursor(binary=True) as cursor:
            return {(ns, id) for ns, id in cursor.execute(union, (thread, thread))}

    def count(self, thread: str) -> tuple[int, int, int, int]:
        """Returns how many checkpoints, writes and blobs the thread has, and the bytes of their values."""
        checkpoints = self._total("sum(pg_column_size(checkpoint))", "checkpoints", thread)
        blobs = self._total("sum(octet_length(blob))", "checkpoint_blobs", thread)
        writes = self._total("sum(octet_length(blob))", "checkpoint_writes", thread)
        return checkpoints[0], writes[0], blobs[0], checkpoints[1] + writes[1] + blobs[1]

    def _total(self, size: str, table: str, thread: str) -> tuple[int, int]:
        found = self._execute(f"SELECT count(*), {size} FROM {{}} WHERE thread_id = %s", table, (thread,)).fetchone()
        return (0, 0) if found is None else (int(found[0]), int(found[1] or 0))

    def _copy_in(self, table: str, thread: str, rows: Iterable[Sequence[object]]) -> None:
        columns = TABLES[table]
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            self.layout.table(table), sql.SQL(", ").join(map(sql.Identifier, ("thread_id", *columns)))
        )
        with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(["text", *(_SQL_TYPES.get(column, "text") for column in columns)])
            json_at = [at for at, column in enumerate(columns, start=1) if _SQL_TYPES.get(column) == "jsonb"]
            large: list[Sequence[object]] = []
            for row in rows:
                if any(isinstance(value, Chunks) for value in row):
                    large.append(row)
                    continue
                values = [thread, *row]
                for at in json_at:
                    values[at] = Jsonb(values[at], dumps=str)
                copy.write_row(values)
        for row in large:
            self._insert_in_parts(table, thread, row)

    def _insert_in_parts(self, table: str, thread: str, row: Sequence[object]) -> None:
        """Inserts a row whose large value the server puts together: a message to it is held whole on its way.

        A role that may make no temporary tables sends the value at once.
        """
        columns = ("thread_id", *TABLES[table])
        large_at, value = next((at, value) for at, value in enumerate(row, start=1) if isinstance(value, Chunks))
        marks: list[sql.Composable] = [
            sql.SQL("%s::{}").format(sql.SQL(_SQL_TYPES.get(column, "text"))) for column in columns
        ]
        values: list[object] = [thread, *row]
        is_sent_in_parts = self._may_make_temporary()
        if is_sent_in_parts:
            self.connection.execute(_MAKE_PARTS)
            for number, window in enumerate(value.windows()):
                self.connection.execute("INSERT INTO pg_temp.agentctl_parts VALUES (%s, %b)", (number, window))
            marks[large_at] = sql.SQL(_JOINED[_SQL_TYPES[columns[large_at]]])
            del values[large_at]
        else:
            values[large_at] = value[:] if _SQL_TYPES[columns[large_at]] == "bytea" else value[:].decode()
        self.connection.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {}").format(
                self.layout.table(table),
                sql.SQL(", ").join(map(sql.Identifier, columns)),
                sql.SQL(", ").join(marks),
            ),
            values,
        )
        if is_sent_in_parts:
            self.connection.execute("DROP TABLE pg_temp.agentctl_parts")

    def _may_make_temporary(self) -> bool:
        found = self.connection.execute(
            "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP')"
        ).fetchone()
        return found is not None and bool(found[0])

    def _execute(self, query: str, table: str, parameters: Sequence[object]) -> psycopg.Cursor[TupleRow]:
        statement = sql.SQL(query).format(self.layout.table(table))
        return self.connection.execute(statement, parameters)


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Yields a connection in autocommit mode; what Postgres refuses becomes one of our errors."""
    try:
        with connected(url) as connection:
            yield connection
    except psycopg.Error as error:
        raise _write_error(hide_password(url), error) from error


def _write_error(shown: str, error: psycopg.Error) -> AgentctlError:
    """Returns the error to show for one of Postgres's while writing; connections fail as they do for a reader."""
    match error:
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return StoreError(
                f"this role may not write to {shown}: {_first_line(error)}",
                hint="give another target: --to PROFILE or --to FILE.sqlite",
            )
        case errors.UniqueViolation():
            return ThreadExists(
                f"another program wrote the same rows to {shown} meanwhile: {_first_line(error)}",
                hint="run the command again with another thread id: --as THREAD",
            )
        case psycopg.OperationalError():
            return store_error(shown, error)
        case _:
            return StoreError(f"cannot write to {shown}: {_first_line(error)}", hint="nothing was written; try again")


def _first_line(error: psycopg.Error) -> str:
    return hide_password((str(error).strip().splitlines() or [type(error).__name__])[0])
