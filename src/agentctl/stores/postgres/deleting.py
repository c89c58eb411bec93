"""Taking rows of a Postgres database away, in short transactions that see one snapshot each.

A blob is shared by every checkpoint of its namespace that names its version, so it goes with the last of them.

Source: langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py (`MIGRATIONS`, `SELECT_SQL`) and
checkpoint/postgres/__init__.py (`put`: a delta snapshot is an inline `true` with a blob; `prune`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.rows import TupleRow

from agentctl.errors import Refused, StoreError
from agentctl.records.prunes import Compaction, Key, Removed
from agentctl.stores.audit import Auditable
from agentctl.stores.base import Reader, StoreInfo
from agentctl.stores.deleting import Deletion, Overtaken, RowWeight, ThreadEnd, ThreadMark, ThreadOverview
from agentctl.stores.postgres.layout import Layout, find_layout
from agentctl.stores.postgres.opening import PostgresDatabase, ReadCursor, connected, store_error
from agentctl.stores.postgres.reader import PostgresReader
from agentctl.stores.postgres.strays import STRAYS, VERSIONS
from agentctl.stores.reading.layout import INTERRUPT

T = TypeVar("T")

_TABLES: Final = ("checkpoint_writes", "checkpoint_blobs", "checkpoints")
_LOCK_TIMEOUT: Final = "5s"
"""How long a row that another transaction has changed is waited for."""

_GIVEN: Final = "unnest(%(namespaces)s::text[], %(ids)s::text[]) AS given(ns, id)"
_IS_GIVEN: Final = f"EXISTS (SELECT 1 FROM {_GIVEN} WHERE given.ns = c.checkpoint_ns AND given.id = c.checkpoint_id)"

_THREADS: Final = """
SELECT thread_id, coalesce(max(newest), ''), sum(n)::bigint FROM (
    (SELECT thread_id, max(checkpoint_id) AS newest, count(*) AS n FROM {checkpoints} {after}
     GROUP BY thread_id ORDER BY thread_id LIMIT %(n)s)
    UNION ALL
    (SELECT thread_id, max(checkpoint_id), 0 FROM {writes} {after} GROUP BY thread_id ORDER BY thread_id LIMIT %(n)s)
    UNION ALL
    (SELECT thread_id, NULL, 0 FROM {blobs} {after} GROUP BY thread_id ORDER BY thread_id LIMIT %(n)s)
) AS found GROUP BY thread_id ORDER BY thread_id LIMIT %(n)s
"""
_NAMESPACES: Final = """
SELECT checkpoint_ns, count(*), max(checkpoint_id) FROM {checkpoints} WHERE thread_id = %(thread)s
GROUP BY checkpoint_ns ORDER BY checkpoint_ns
"""
_WRITES: Final = "SELECT count(*), max(checkpoint_id) FROM {writes} WHERE thread_id = %(thread)s"
_NO_WRITES: Final = (0, None)
_CHECKPOINTS_OF_EACH: Final = """
SELECT thread_id, checkpoint_ns, count(*), max(checkpoint_id),
    sum(pg_column_size(checkpoint) + pg_column_size(metadata))::bigint
FROM {checkpoints} WHERE thread_id = ANY(%(threads)s)
GROUP BY thread_id, checkpoint_ns ORDER BY thread_id, checkpoint_ns
"""
_WRITES_OF_EACH: Final = """
SELECT thread_id, count(*), max(checkpoint_id), coalesce(sum(octet_length(blob)), 0)::bigint,
    bool_or(channel = %(asked_on)s AND checkpoint_ns = '')
FROM {writes} WHERE thread_id = ANY(%(threads)s) GROUP BY thread_id
"""
_BLOBS_OF_EACH: Final = """
SELECT thread_id, count(*), coalesce(sum(octet_length(blob)), 0)::bigint
FROM {blobs} WHERE thread_id = ANY(%(threads)s) GROUP BY thread_id
"""
_WEIGHTS: Final = """
SELECT checkpoint_ns, checkpoint_id, sum(is_row)::bigint, sum(n)::bigint, coalesce(sum(n_bytes), 0)::bigint FROM (
    SELECT checkpoint_ns, checkpoint_id, 1 AS is_row, 0 AS n,
        pg_column_size(checkpoint) + pg_column_size(metadata) AS n_bytes
    FROM {checkpoints} WHERE thread_id = %(thread)s
    UNION ALL
    SELECT checkpoint_ns, checkpoint_id, 0, count(*), sum(octet_length(blob)) FROM {writes}
    WHERE thread_id = %(thread)s GROUP BY 1, 2
) AS found GROUP BY 1, 2
"""
_BLOBS_BESIDE: Final = f"""
SELECT count(*), coalesce(sum(octet_length(b.blob)), 0)::bigint FROM {{blobs}} b
WHERE b.thread_id = %(thread)s AND (b.checkpoint_ns, b.channel, b.version) NOT IN (
    SELECT c.checkpoint_ns, v.channel, v.version FROM {{checkpoints}} c CROSS JOIN LATERAL {VERSIONS}
    WHERE c.thread_id = %(thread)s AND {_IS_GIVEN})
"""
_DELETE_BLOBS: Final = f"""
WITH gone AS (
    SELECT c.checkpoint_ns, v.channel, v.version FROM {{checkpoints}} c CROSS JOIN LATERAL {VERSIONS}
    WHERE c.thread_id = %(thread)s AND {_IS_GIVEN}
    EXCEPT
    SELECT c.checkpoint_ns, v.channel, v.version FROM {{checkpoints}} c CROSS JOIN LATERAL {VERSIONS}
    WHERE c.thread_id = %(thread)s AND c.checkpoint_ns = ANY(%(namespaces)s) AND NOT {_IS_GIVEN}
), deleted AS (
    DELETE FROM {{blobs}} b USING gone WHERE b.thread_id = %(thread)s AND b.checkpoint_ns = gone.checkpoint_ns
    AND b.channel = gone.channel AND b.version = gone.version RETURNING octet_length(b.blob) AS n_bytes
)
SELECT count(*), coalesce(sum(n_bytes), 0)::bigint FROM deleted
"""
_STRAY_BLOBS: Final = f"""
WITH {STRAYS} SELECT count(*), coalesce(sum(octet_length(b.blob)), 0)::bigint
FROM {{blobs}} b JOIN strays USING (checkpoint_ns, channel, version)
WHERE b.thread_id = %(thread)s AND (%(newer)s OR NOT is_newer)
"""
_DELETE_STRAY_BLOBS: Final = f"""
WITH {STRAYS}, deleted AS (
    DELETE FROM {{blobs}} b USING strays s
    WHERE b.thread_id = %(thread)s AND b.checkpoint_ns = s.checkpoint_ns AND b.channel = s.channel
    AND b.version = s.version AND (%(newer)s OR NOT s.is_newer)
    RETURNING octet_length(b.blob) AS n_bytes
)
SELECT count(*), coalesce(sum(n_bytes), 0)::bigint FROM deleted
"""
_DELETE_STRAY_WRITES: Final = f"""
DELETE FROM {{writes}} t USING {_GIVEN}
WHERE t.thread_id = %(thread)s AND t.checkpoint_ns = given.ns AND t.checkpoint_id = given.id
AND NOT EXISTS (SELECT 1 FROM {{checkpoints}} c WHERE c.thread_id = t.thread_id
    AND c.checkpoint_ns = t.checkpoint_ns AND c.checkpoint_id = t.checkpoint_id)
"""
_DELETE_ROWS: Final = f"""
DELETE FROM {{table}} t USING {_GIVEN}
WHERE t.thread_id = %(thread)s AND t.checkpoint_ns = given.ns AND t.checkpoint_id = given.id
"""
_SET_PARENT: Final = """
UPDATE {checkpoints} SET parent_checkpoint_id = %(parent)s
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(id)s
"""
_MARK_SNAPSHOT: Final = """
UPDATE {checkpoints} SET checkpoint = jsonb_set(checkpoint, ARRAY['channel_values', %(channel)s::text], 'true')
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(id)s
"""
_PUT_SNAPSHOT: Final = """
INSERT INTO {blobs} (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT thread_id, checkpoint_ns, %(channel)s::text, checkpoint -> 'channel_versions' ->> %(channel)s::text, 'msgpack',
    %(snapshot)s::bytea
FROM {checkpoints} WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(id)s
ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO UPDATE SET type = EXCLUDED.type, blob = EXCLUDED.blob
"""
_MAY_DELETE: Final = "SELECT has_table_privilege(%(table)s::regclass, %(privilege)s)"


class PostgresDeleter:
    """See `agentctl.stores.deleting.Deleter`.

    Args:
        url: `postgresql://...`.
        reader: The same database open for reading.
        schema: Schema of the tables; None takes the search path.

    Raises:
        Refused: The tables are newer than this version knows.
    """

    def __init__(self, url: str, reader: Reader, *, schema: str | None = None) -> None:
        if isinstance(reader, Auditable):
            _require_known(reader)
        self._info = reader.info
        self._url = url
        self._database = PostgresDatabase(url)
        self._layout = self._database.read(lambda cursor: find_layout(cursor, schema))
        self._connection: psycopg.Connection[TupleRow] | None = None

    def threads(self, *, after: str | None, limit: int) -> Sequence[ThreadEnd]:
        """See `Deleter.threads`."""
        query = _THREADS.replace("{after}", "" if after is None else "WHERE thread_id > %(after)s")
        found = self._read(lambda rows: rows.all(query, n=limit, after=after))
        return [ThreadEnd(thread, newest, n) for thread, newest, n in found]

    def mark(self, thread: str) -> ThreadMark:
        """See `Weighing.mark`."""
        return self._read(lambda rows: rows.mark(thread))

    def weights(self, thread: str) -> Sequence[RowWeight]:
        """See `Weighing.weights`."""
        return self._read(lambda rows: rows.weights(thread))

    def blobs_beside(self, thread: str, kept: Collection[Key]) -> Removed:
        """See `Weighing.blobs_beside`."""
        return self._read(lambda rows: rows.blobs_beside(thread, kept))

    def stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """See `Weighing.stray_blobs`."""
        return self._read(lambda rows: rows.stray_blobs(thread, newer=newer))

    def overviews(self, threads: Sequence[str]) -> Mapping[str, ThreadOverview]:
        """See `Deleter.overviews`."""
        return self._read(lambda rows: rows.overviews(threads))

    def n_rows(self, thread: str) -> int:
        """See `Deleter.n_rows`."""
        return self._read(lambda rows: rows.n_rows(thread))

    def check_allowed(self, *, compact: bool) -> None:
        """See `Deleter.check_allowed`."""
        if compact:
            self.compact()
        wanted = [*((table, "DELETE") for table in _TABLES), ("checkpoints", "UPDATE")]
        for table, privilege in wanted:
            if not self._read(partial(_may, table=self._layout.table(table).as_string(None), privilege=privilege)):
                raise StoreError(
                    f"this role may not {privilege.lower()} in {table}",
                    hint="GRANT DELETE ON checkpoints, checkpoint_blobs, checkpoint_writes, and UPDATE ON checkpoints",
                )

    @contextmanager
    def transaction(self) -> Iterator[Deletion]:
        """See `Deleter.transaction`."""
        try:
            connection = self._connected()
            with connection.transaction(), connection.cursor(binary=True) as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_TIMEOUT,))
                yield PostgresDeletion(cursor, self._layout, self._url, self._info)
        except (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable) as error:
            raise Overtaken(str(error)) from error
        except psycopg.Error as error:
            raise store_error(self._info.url, error) from error

    def compact(self) -> Compaction:
        """Raises Refused: Postgres gives room back by itself."""
        raise Refused(
            f"{self._info} gives room back by itself: autovacuum makes deleted rows room for new ones",
            hint="leave --vacuum out; VACUUM FULL of a table gives it back to the system and locks the table meanwhile",
        )

    def close(self) -> None:
        """See `Deleter.close`."""
        self._database.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> psycopg.Connection[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._connection = connected(self._url)
        return self._connection

    def _read(self, work: Callable[[_Rows], T]) -> T:
        return self._database.read(lambda cursor: work(_Rows(cursor, self._layout)))


class _Rows:
    """Statements on the tables of one layout, inside a transaction."""

    def __init__(self, cursor: ReadCursor, layout: Layout) -> None:
        self.cursor = cursor
        self._names = {
            "checkpoints": layout.table("checkpoints"),
            "blobs": layout.table("checkpoint_blobs"),
            "writes": layout.table("checkpoint_writes"),
        }

    def all(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Returns all rows of a statement. `query` is ours; values are always parameters."""
        return self.run(query, **parameters).fetchall()

    def run(self, query: str, **parameters: object) -> ReadCursor:
        return self.cursor.execute(sql.SQL(query).format(**self._names), parameters)

    def mark(self, thread: str) -> ThreadMark:
        return (*self.all(_NAMESPACES, thread=thread), *self.all(_WRITES, thread=thread))

    def n_rows(self, thread: str) -> int:
        tables = ("{checkpoints}", "{writes}", "{blobs}")
        return sum(
            int(self.all(f"SELECT count(*) FROM {table} WHERE thread_id = %(thread)s", thread=thread)[0][0])
            for table in tables
        )

    def overviews(self, threads: Sequence[str]) -> dict[str, ThreadOverview]:
        """Returns what each thread is as a whole."""
        given = {"threads": list(threads)}
        namespaces: dict[str, list[tuple[Any, ...]]] = {}
        for thread, *found in self.all(_CHECKPOINTS_OF_EACH, **given):
            namespaces.setdefault(thread, []).append(tuple(found))
        writes = {thread: found for thread, *found in self.all(_WRITES_OF_EACH, asked_on=INTERRUPT, **given)}
        blobs = {thread: found for thread, *found in self.all(_BLOBS_OF_EACH, **given)}
        return {
            thread: _overview(
                namespaces.get(thread, ()), writes.get(thread, (*_NO_WRITES, 0, False)), blobs.get(thread, (0, 0))
            )
            for thread in threads
            if thread in namespaces or thread in writes or thread in blobs
        }

    def weights(self, thread: str) -> list[RowWeight]:
        found = self.all(_WEIGHTS, thread=thread)
        return [RowWeight((ns, id), n_rows > 0, n, n_bytes) for ns, id, n_rows, n, n_bytes in found]

    def blobs_beside(self, thread: str, kept: Collection[Key]) -> Removed:
        ((n, n_bytes),) = self.all(_BLOBS_BESIDE, thread=thread, **_given(kept))
        return Removed(n_blobs=n, n_bytes=n_bytes)

    def stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        ((n, n_bytes),) = self.all(_STRAY_BLOBS, thread=thread, newer=newer)
        return Removed(n_blobs=n, n_bytes=n_bytes)


class PostgresDeletion:
    """See `agentctl.stores.deleting.Deletion`. A `Readable` of the transaction's own rows, for `reader`."""

    def __init__(self, cursor: ReadCursor, layout: Layout, url: str, info: StoreInfo) -> None:
        self.shown = info.url
        self._rows = _Rows(cursor, layout)
        self._layout = layout
        self._url = url
        self._info = info

    def read(self, work: Callable[[ReadCursor], T]) -> T:
        """Returns `work(cursor)`."""
        return work(self._rows.cursor)

    def close(self) -> None:
        """Does nothing: the block that opened the transaction ends it."""

    def reader(self) -> Reader:
        """See `Deletion.reader`."""
        return PostgresReader(self._url, schema=self._layout.schema, profile=self._info.profile, database=self)

    def mark(self, thread: str) -> ThreadMark:
        """See `Weighing.mark`."""
        return self._rows.mark(thread)

    def weights(self, thread: str) -> Sequence[RowWeight]:
        """See `Weighing.weights`."""
        return self._rows.weights(thread)

    def blobs_beside(self, thread: str, kept: Collection[Key]) -> Removed:
        """See `Weighing.blobs_beside`."""
        return self._rows.blobs_beside(thread, kept)

    def stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """See `Weighing.stray_blobs`."""
        return self._rows.stray_blobs(thread, newer=newer)

    def set_parent(self, thread: str, key: Key, parent: str | None) -> None:
        """See `Deletion.set_parent`."""
        self._rows.run(_SET_PARENT, thread=thread, ns=key[0], id=key[1], parent=parent)

    def set_snapshot(self, thread: str, key: Key, channel: str, snapshot: bytes) -> None:
        """See `Deletion.set_snapshot`."""
        place = {"thread": thread, "ns": key[0], "id": key[1], "channel": channel}
        self._rows.run(_MARK_SNAPSHOT, **place)
        self._rows.run(_PUT_SNAPSHOT, snapshot=snapshot, **place)

    def delete(self, thread: str, keys: Sequence[Key]) -> Removed:
        """See `Deletion.delete`."""
        given = _given(keys)
        ((n_blobs, n_bytes),) = self._rows.all(_DELETE_BLOBS, thread=thread, **given)
        n_writes, n_checkpoints = (
            self._rows.run(_DELETE_ROWS.replace("{table}", name), thread=thread, **given).rowcount
            for name in ("{writes}", "{checkpoints}")
        )
        return Removed(n_checkpoints, n_writes, n_blobs, n_bytes)

    def delete_stray_writes(self, thread: str, keys: Sequence[Key]) -> Removed:
        """See `Deletion.delete_stray_writes`."""
        return Removed(n_writes=self._rows.run(_DELETE_STRAY_WRITES, thread=thread, **_given(keys)).rowcount)

    def delete_stray_blobs(self, thread: str, *, newer: bool) -> Removed:
        """See `Deletion.delete_stray_blobs`."""
        ((n, n_bytes),) = self._rows.all(_DELETE_STRAY_BLOBS, thread=thread, newer=newer)
        return Removed(n_blobs=n, n_bytes=n_bytes)

    def delete_thread(self, thread: str) -> Removed:
        """See `Deletion.delete_thread`."""
        n_writes, n_blobs, n_checkpoints = (
            self._rows.run(f"DELETE FROM {name} WHERE thread_id = %(thread)s", thread=thread).rowcount
            for name in ("{writes}", "{blobs}", "{checkpoints}")
        )
        return Removed(n_checkpoints, n_writes, n_blobs)


def _overview(namespaces: Sequence[tuple[Any, ...]], writes: Sequence[Any], blobs: Sequence[int]) -> ThreadOverview:
    *written, write_bytes, asks = writes
    n_blobs, blob_bytes = blobs
    n_bytes = sum(found[-1] for found in namespaces) + write_bytes + blob_bytes
    return ThreadOverview(
        mark=(*(found[:-1] for found in namespaces), tuple(written)),
        head=next((newest for ns, _, newest, _ in namespaces if ns == ""), ""),
        rows=Removed(sum(n for _, n, *_ in namespaces), written[0], n_blobs, n_bytes),
        asks=bool(asks),
    )


def _may(rows: _Rows, table: str, privilege: str) -> bool:
    return bool(rows.all(_MAY_DELETE, table=table, privilege=privilege)[0][0])


def _given(keys: Collection[Key]) -> dict[str, object]:
    return {"namespaces": [ns for ns, _ in keys], "ids": [id for _, id in keys]}


def _require_known(reader: Auditable) -> None:
    facts = reader.audit().layout()
    if facts.migration is not None and facts.known_migration is not None and facts.migration > facts.known_migration:
        raise Refused(
            f"the tables of {reader.info} are at migration {facts.migration}, this version knows up to"
            f" {facts.known_migration} and only reads: a newer table could refer to rows that would go",
            hint="prune with a version of agentctl that knows them",
        )
