"""How rows get from one store into a transaction of another: one route for each pair of kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentctl.stores.base import Reader, RowPick
from agentctl.stores.copying import sqlite_rows, verify
from agentctl.stores.copying.converted_rows import PostgresRows, converted_writes, for_postgres, for_sqlite
from agentctl.stores.copying.marks import Mark, marked
from agentctl.stores.copying.origin import Origin, is_same_file
from agentctl.stores.sqlite.keys import ThreadKeys
from agentctl.stores.sqlite.opening import Readable
from agentctl.stores.sqlite.writer import SqliteTransaction

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    from agentctl.stores.copying.postgres_rows import Selection
    from agentctl.stores.postgres.layout import Layout
    from agentctl.stores.postgres.snapshots import Snapshot
    from agentctl.stores.postgres.writer import PostgresTransaction

OnWritten = Callable[[int], None]
"""Told how many more checkpoints are written."""

_BATCH_BYTES = 8 * 1024 * 1024


class Route(Protocol):
    """A way from one source into one open transaction."""

    def load(self, thread: str, as_thread: str, picks: Sequence[RowPick], on_written: OnWritten) -> None:
        """Writes the picked rows of a thread under another thread id."""
        ...

    def verify(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """Reads back what `load` wrote and raises StoreError at the first difference."""
        ...

    def clone(self, thread: str, as_thread: str) -> None:
        """Writes every row of a thread of the transaction again under another thread id."""
        ...

    def verify_clone(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """Compares two threads of the transaction and raises StoreError at the first difference."""
        ...


@contextmanager
def open_route(
    origin: Origin, transaction: SqliteTransaction | PostgresTransaction, marks: Mapping[str, Mark]
) -> Iterator[Route]:
    """Yields the shortest way: columns as they are within one kind, values in another form between kinds.

    Args:
        origin: The source.
        transaction: The target.
        marks: What copies into SQLite say of themselves, by thread.
    """
    if isinstance(transaction, SqliteTransaction):
        if origin.file is None:
            yield IntoSqlite(origin.reader, transaction, marks)
        elif is_same_file(origin.file, transaction):
            yield SqliteToSqlite(transaction, transaction, origin.keys, marks)
        else:
            yield SqliteToSqlite(origin.file, transaction, origin.keys, marks)
    elif origin.snapshot is None or origin.layout is None:
        yield IntoPostgres(origin.reader, transaction)
    else:
        with origin.snapshot.errors_told():
            yield _postgres_route(origin.snapshot, origin.layout, transaction)


@dataclass(frozen=True, slots=True)
class SqliteToSqlite:
    """Every column as it is; encrypted and damaged rows too."""

    file: Readable
    transaction: SqliteTransaction
    keys: Mapping[str, ThreadKeys]
    marks: Mapping[str, Mark]

    def load(self, thread: str, as_thread: str, picks: Sequence[RowPick], on_written: OnWritten) -> None:
        """See `Route.load`."""
        rows = marked(sqlite_rows.read_checkpoints(self.file, thread, picks), self.marks.get(as_thread))
        self.transaction.insert_checkpoints(as_thread, _told(rows, on_written))
        writes = sqlite_rows.read_writes(self.file, thread, picks, self.keys.get(thread))
        self.transaction.insert_writes(as_thread, writes)

    def verify(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify`."""
        mark, keys = self.marks.get(as_thread), self.keys.get(thread)
        verify.same_columns(self.file, self.transaction, thread, as_thread, picks, mark, keys)

    def clone(self, thread: str, as_thread: str) -> None:
        """See `Route.clone`."""
        mark = self.marks.get(as_thread)
        self.transaction.clone(thread, as_thread, None if mark is None else (mark.id, mark.text))

    def verify_clone(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify_clone`."""
        verify.same_columns(self.transaction, self.transaction, thread, as_thread, picks, self.marks.get(as_thread))


@dataclass(frozen=True, slots=True)
class PostgresToPostgres:
    """`INSERT ... SELECT` inside one database, binary COPY between two; no value passes through this process decoded.

    `source` is None where the target's own connection may read the source's tables.
    """

    source: psycopg.Connection[TupleRow] | None
    layout: Layout
    transaction: PostgresTransaction

    def load(self, thread: str, as_thread: str, picks: Sequence[RowPick], on_written: OnWritten) -> None:
        """See `Route.load`."""
        from agentctl.stores.copying import postgres_rows

        if self.source is None:
            postgres_rows.insert_selected(self.transaction, self.layout, thread, as_thread, picks)
        else:
            postgres_rows.stream_selected(self.source, self.layout, self.transaction, thread, as_thread, picks)
        on_written(len(picks))

    def verify(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify`."""
        from agentctl.stores.copying.postgres_rows import of_picks, of_thread
        from agentctl.stores.copying.postgres_same import digests

        if self.source is None:
            _verify_in_postgres(self.transaction, self.layout, of_picks(thread, picks), as_thread)
            return
        verify.same_digests(
            digests(self.source, self.layout, of_picks(thread, picks)),
            digests(self.transaction.connection, self.transaction.layout, of_thread(as_thread)),
            as_thread,
        )

    def clone(self, thread: str, as_thread: str) -> None:
        """See `Route.clone`."""
        self.transaction.clone(thread, as_thread)

    def verify_clone(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify_clone`."""
        _verify_postgres_clone(self.transaction, thread, as_thread)


@dataclass(frozen=True, slots=True)
class IntoSqlite:
    """From Postgres or any saver: a checkpoint's values are joined into one msgpack map."""

    reader: Reader
    transaction: SqliteTransaction
    marks: Mapping[str, Mark]

    def load(self, thread: str, as_thread: str, picks: Sequence[RowPick], on_written: OnWritten) -> None:
        """See `Route.load`."""
        rows = marked(for_sqlite(self.reader, thread, picks), self.marks.get(as_thread))
        self.transaction.insert_checkpoints(as_thread, _told(rows, on_written))
        writes = converted_writes(self.reader, thread, picks, target="SQLite")
        self.transaction.insert_writes(as_thread, writes)

    def verify(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify`."""
        copy, mark = self.transaction.reader(), self.marks.get(as_thread)
        verify.same_values(self.reader, copy, thread, as_thread, picks, mark)

    def clone(self, thread: str, as_thread: str) -> None:
        """See `Route.clone`."""
        mark = self.marks.get(as_thread)
        self.transaction.clone(thread, as_thread, None if mark is None else (mark.id, mark.text))

    def verify_clone(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify_clone`."""
        verify.same_columns(self.transaction, self.transaction, thread, as_thread, picks, self.marks.get(as_thread))


@dataclass(frozen=True, slots=True)
class IntoPostgres:
    """From SQLite or any saver: inline scalars into the document, every other value into a blob row a version."""

    reader: Reader
    transaction: PostgresTransaction

    def load(self, thread: str, as_thread: str, picks: Sequence[RowPick], on_written: OnWritten) -> None:
        """See `Route.load`."""
        for batch in _batches(for_postgres(self.reader, thread, picks)):
            self.transaction.insert_checkpoints(as_thread, (rows.checkpoint for rows in batch))
            self.transaction.insert_blobs(as_thread, (blob for rows in batch for blob in rows.blobs))
            on_written(len(batch))
        writes = converted_writes(self.reader, thread, picks, target="Postgres")
        self.transaction.insert_writes(as_thread, writes)

    def verify(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify`."""
        verify.same_values(self.reader, self.transaction.reader(), thread, as_thread, picks)

    def clone(self, thread: str, as_thread: str) -> None:
        """See `Route.clone`."""
        self.transaction.clone(thread, as_thread)

    def verify_clone(self, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
        """See `Route.verify_clone`."""
        _verify_postgres_clone(self.transaction, thread, as_thread)


def _postgres_route(source: Snapshot, layout: Layout, transaction: PostgresTransaction) -> PostgresToPostgres:
    from agentctl.stores.copying import postgres_rows

    if transaction.snapshot is source and postgres_rows.may_read(transaction.connection, layout):
        return PostgresToPostgres(None, layout, transaction)
    return PostgresToPostgres(source.connection, layout, transaction)


def _verify_postgres_clone(transaction: PostgresTransaction, thread: str, as_thread: str) -> None:
    from agentctl.stores.copying.postgres_rows import of_thread

    _verify_in_postgres(transaction, transaction.layout, of_thread(thread), as_thread)


def _verify_in_postgres(
    transaction: PostgresTransaction, layout: Layout, expected: Iterator[Selection], as_thread: str
) -> None:
    from agentctl.stores.copying.postgres_same import first_different

    found = first_different(transaction.connection, (layout, expected), (transaction.layout, as_thread))
    verify.none_different(found, as_thread)


def _told(rows: Iterator[tuple[object, ...]], on_written: OnWritten) -> Iterator[tuple[object, ...]]:
    for row in rows:
        yield row
        on_written(1)


def _batches(rows: Iterator[PostgresRows]) -> Iterator[list[PostgresRows]]:
    """Yields rows in groups of a few megabytes: COPY fills one table at a time."""
    batch: list[PostgresRows] = []
    n_bytes = 0
    for row in rows:
        batch.append(row)
        n_bytes += row.n_bytes
        if n_bytes >= _BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch
