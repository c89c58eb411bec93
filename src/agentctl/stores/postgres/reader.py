"""The `Reader` on Postgres: own SQL on the stock tables, one short read-only transaction a call.

Source: langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py (`SELECT_SQL`, `_load_blobs`,
`_migrate_pending_sends`) and checkpoint/postgres/__init__.py (`put`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from psycopg import sql

from agentctl.errors import StoreError
from agentctl.records.rows import CheckpointRow, Large, MemoryItem, Stored, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores.base import StoreInfo
from agentctl.stores.batches import by_size, in_chunks
from agentctl.stores.fetched import checkpoint_row, write_rows
from agentctl.stores.heads import HeadState
from agentctl.stores.memory_items import memory_item
from agentctl.stores.postgres.heads import read_head_states
from agentctl.stores.postgres.large import large_value, large_write
from agentctl.stores.postgres.layout import STORE_COLUMNS, TASK_PATH, Layout, find_layout
from agentctl.stores.postgres.opening import PostgresDatabase, Readable, ReadCursor
from agentctl.stores.postgres.snapshots import Snapshot, open_snapshot
from agentctl.stores.postgres.states import Parameters, StateQueries

if TYPE_CHECKING:
    from agentctl.stores.postgres.audit import PostgresAudit
    from agentctl.stores.postgres.sizes import PostgresSizes

_ROWS_PER_READ = 500
_CHECKPOINTS_PER_READ = 50
_BATCH_BYTES = 2 * 1024 * 1024
"""Of documents as the server keeps them: compressed, they may be several times as long."""
_SMALL_DOCUMENT_BYTES = 2000
_FEW_BYTES = 64 * 1024
"""So many times this is held of inline values, where larger ones are not asked for."""


class PostgresReader:
    """A Postgres database open for looking; see `agentctl.stores.base.Reader`. A role that may only SELECT will do.

    Args:
        url: `postgresql://...`.
        schema: Schema of the tables; None takes the search path.
        profile: The name the store was reached by, or ''.
        database: The database already open, such as a transaction that sees its own rows; None connects to it.
        layout: Where its tables are, as far as that is known; None looks for them.

    Attributes:
        url: As given, password included.
        layout: Where the tables are.

    Raises:
        StoreError: No connection, no LangGraph tables, or tables without history.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        profile: str = "",
        database: Readable | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.url = url
        self._database: Readable = PostgresDatabase(url) if database is None else database
        try:
            self.layout = layout or self._database.read(partial(find_layout, schema=schema))
        except StoreError:
            if database is None:
                self._database.close()
            raise
        self.info = StoreInfo("postgres", self._database.shown, profile, self.layout.warnings)

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """See `Reader.heads`."""
        counted = self._fetch(
            "SELECT thread_id, count(*), min(checkpoint_id), max(checkpoint_id) FROM {checkpoints}"
            " WHERE checkpoint_ns = '' GROUP BY thread_id"
        )
        counted.sort(key=lambda found: (found[3], found[0]), reverse=True)
        heads: list[ThreadHead] = []
        for chunk in in_chunks(counted, _ROWS_PER_READ):
            rows = self._head_rows([found[0] for found in chunk], [found[3] for found in chunk], metadata)
            heads += [ThreadHead(thread, n, first, rows[thread]) for thread, n, first, _ in chunk if thread in rows]
        return heads

    def head_states(self, heads: Sequence[tuple[str, str]], is_asked: Callable[[str], bool]) -> Mapping[str, HeadState]:
        """See `agentctl.stores.heads.ReadsHeads`."""

        def work(cursor: ReadCursor) -> Mapping[str, HeadState]:
            def fetch(query: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
                return _fetched(cursor, self._named(query), parameters)

            return read_head_states(fetch, heads, is_asked)

        return self._database.read(work)

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`."""
        found = self._fetch("SELECT DISTINCT checkpoint_ns FROM {checkpoints} WHERE thread_id = %s", (thread,))
        return sorted(ns for (ns,) in found)

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`."""
        columns = "checkpoint_id, parent_checkpoint_id" + (", metadata" if metadata else "")
        query = f"SELECT {columns} FROM {{checkpoints}} WHERE thread_id = %s AND checkpoint_ns = %s"
        parameters: tuple[object, ...] = (thread, ns)
        if ids is not None:
            query += " AND checkpoint_id = ANY(%s)"
            parameters += (list(ids),)
        found = self._fetch(f"{query} ORDER BY checkpoint_id DESC", parameters)
        return [checkpoint_row(thread, ns, *record) for record in found]

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """See `Reader.stored`. A few megabytes of values are held at a time, however long the list."""
        wanted = None if channels is None else frozenset(channels)
        queries = StateQueries(
            self._fetch, thread, ns, wanted, value_bytes=value_bytes, has_task_path=self.layout.has_task_path
        )
        document, source, parameters = _with_values_of(wanted, value_bytes)
        for chunk in self._batches(thread, ns, list(dict.fromkeys(ids)), value_bytes):
            records = self._fetch(
                f"SELECT checkpoint_id, parent_checkpoint_id, metadata, {document} FROM {{checkpoints}}{source}"
                " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)",
                (*parameters, thread, ns, list(chunk)),
            )
            documents = {record[0]: (checkpoint_row(thread, ns, *record[:3]), *record[3:]) for record in records}
            yield from queries.states([documents[id_] for id_ in chunk if id_ in documents])

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """See `Reader.writes`."""
        task_path = TASK_PATH if self.layout.has_task_path else "NULL"
        value, parameters = _value_up_to(value_bytes)
        query = (
            f"SELECT checkpoint_id, {task_path}, task_id, idx, channel, type, {value}, octet_length(blob)"
            " FROM {writes} WHERE thread_id = %s AND checkpoint_ns = %s"
        )
        parameters += (thread, ns)
        if channels is not None:
            query += " AND channel = ANY(%s)"
            parameters += (list(channels),)
        if ids is not None:
            query += " AND checkpoint_id = ANY(%s)"
            parameters += (list(ids),)
        return write_rows(ns, self._fetch(query, parameters))

    def large_values(self, thread: str, ns: str, id: str, channels: Collection[str]) -> Mapping[str, Stored | Large]:
        """See `agentctl.stores.large.ReadsInParts`."""
        found = {name: large_value(self._fetch, thread, ns, id, name) for name in channels}
        whole = [name for name, value in found.items() if value is None]
        stored = next(self.stored(thread, ns, [id], channels=whole), None) if whole else None
        held = {} if stored is None else stored.values
        return {**{name: value for name, value in found.items() if value is not None}, **held}

    def large_write(self, thread: str, write: WriteRow) -> Stored | Large:
        """See `agentctl.stores.large.ReadsInParts`."""
        return large_write(self._fetch, thread, write)

    def row_keys(self, thread: str) -> Collection[tuple[str, str]]:
        """See `agentctl.stores.keyed.Keyed.row_keys`."""
        keys = "SELECT checkpoint_ns, checkpoint_id FROM {} WHERE thread_id = %s"
        query = f"{keys.format('{checkpoints}')} UNION {keys.format('{writes}')}"
        return [(ns, id) for ns, id in self._fetch(query, (thread, thread))]

    def find_run(self, run_id: str) -> Sequence[str]:
        """See `Reader.find_run`. Reads every row's metadata."""
        found = self._fetch(
            "SELECT DISTINCT thread_id FROM {checkpoints} WHERE EXISTS (SELECT 1 FROM jsonb_each_text(metadata) AS m"
            " WHERE m.value = %s AND (right(m.key, 6) = 'run_id' OR right(m.key, 8) = 'trace_id'))",
            (run_id,),
        )
        return sorted(thread for (thread,) in found)

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """See `Reader.memory`."""
        if not self.layout.has_store:
            return []
        query, text = f"SELECT {', '.join(STORE_COLUMNS)} FROM {{store}}", ".".join(prefix)
        if prefix:
            query += " WHERE prefix = %s OR starts_with(prefix, %s)"
        found = self._fetch(query, (text, f"{text}.") if prefix else ())
        return sorted((memory_item(*record) for record in found), key=lambda item: (item.namespace, item.key))

    @contextmanager
    def still(self, threads: Collection[str]) -> Iterator[PostgresReader]:
        """See `agentctl.stores.moments.Stillable.still`. One transaction is held, in which all is still."""
        if self.snapshot is not None:
            yield self
            return
        with open_snapshot(self.url) as snapshot:
            yield PostgresReader(self.url, profile=self.info.profile, database=snapshot, layout=self.layout)

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read, where the reader is of one moment."""
        return self._database if isinstance(self._database, Snapshot) else None

    def sizes(self) -> PostgresSizes:
        """See `agentctl.stores.sizes.Measurable.sizes`."""
        from agentctl.stores.postgres.sizes import PostgresSizes

        return PostgresSizes(self._fetch, schema=self.layout.schema)

    def audit(self) -> PostgresAudit:
        """See `agentctl.stores.audit.Auditable.audit`."""
        from agentctl.stores.postgres.audit import PostgresAudit

        return PostgresAudit(self._fetch, self.layout)

    def close(self) -> None:
        """See `Reader.close`."""
        self._database.close()

    def _fetch(self, query: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        return self._database.read(partial(_fetched, query=self._named(query), parameters=parameters))

    def _batches(self, thread: str, ns: str, ids: Sequence[str], value_bytes: int | None) -> Iterator[Sequence[str]]:
        """Yields ids of checkpoints that are read at once: of few, where their inline values may be long."""
        for chunk in in_chunks(ids, _CHECKPOINTS_PER_READ):
            if value_bytes is not None and value_bytes <= _FEW_BYTES:
                yield chunk
                continue
            sizes = dict(
                self._fetch(
                    "SELECT checkpoint_id, pg_column_size(checkpoint) FROM {checkpoints}"
                    " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)",
                    (thread, ns, list(chunk)),
                )
            )
            yield from by_size([(id_, sizes.get(id_, 0)) for id_ in chunk], _BATCH_BYTES, _CHECKPOINTS_PER_READ)

    def _named(self, query: str) -> sql.Composed:
        """Returns a statement with the tables' names filled in. `query` is ours; values are always parameters."""
        return sql.SQL(query).format(
            checkpoints=self.layout.table("checkpoints"),
            blobs=self.layout.table("checkpoint_blobs"),
            writes=self.layout.table("checkpoint_writes"),
            migrations=self.layout.table("checkpoint_migrations"),
            store=self.layout.table("store"),
            store_vectors=self.layout.table("store_vectors"),
        )

    def _head_rows(self, threads: list[str], ids: list[str], metadata: bool) -> dict[str, CheckpointRow]:
        found = self._fetch(
            "SELECT c.thread_id, c.checkpoint_id, c.parent_checkpoint_id"
            + (", c.metadata" if metadata else "")
            + " FROM unnest(%s::text[], %s::text[]) AS head(thread_id, checkpoint_id) JOIN {checkpoints} c"
            " ON c.thread_id = head.thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = head.checkpoint_id",
            (threads, ids),
        )
        return {record[0]: checkpoint_row(record[0], "", *record[1:]) for record in found}


def _fetched(cursor: ReadCursor, query: sql.Composed, parameters: Parameters) -> list[tuple[Any, ...]]:
    return cursor.execute(query, parameters).fetchall()


def _with_values_of(channels: Collection[str] | None, value_bytes: int | None) -> tuple[str, str, tuple[object, ...]]:
    """Returns the SQL of a checkpoint in which inline values that are not asked for are null.

    Text is kept inline, however long. Documents that take no more room than their bookkeeping are taken as they are.
    Each time a document is named the server takes all of it out; OFFSET keeps a value's length from being taken twice.

    Returns:
        Two columns: the document, and what the asked values are long, by channel, that are null for their size (NULL
        for none); what they are taken from besides the table; and the parameters of that.
    """
    if channels is None and value_bytes is None:
        return "checkpoint, NULL", "", ()
    if channels is not None and not channels:
        return "checkpoint - 'channel_values', NULL", "", ()
    asked, parameters = ("TRUE", ()) if channels is None else ("key = ANY(%s)", (list(channels),))
    is_small = (
        f"pg_column_size(checkpoint) <= {_SMALL_DOCUMENT_BYTES}"
        " OR jsonb_typeof(checkpoint -> 'channel_values') IS DISTINCT FROM 'object'"
    )
    source = (
        " CROSS JOIN LATERAL (SELECT jsonb_object_agg(key, CASE WHEN is_asked AND NOT is_large THEN value"
        " ELSE 'null' END) AS given, jsonb_object_agg(key, n_bytes) FILTER (WHERE is_asked AND is_large) AS"
        " too_large FROM (SELECT key, value, is_asked, n_bytes, coalesce(n_bytes > %s, FALSE) AS is_large FROM"
        " (SELECT key, value, "
        + asked
        + " AS is_asked, CASE WHEN jsonb_typeof(value) = 'string' THEN octet_length(value #>> '{{}}') END AS n_bytes"
        f" FROM jsonb_each(CASE WHEN {is_small} THEN NULL ELSE checkpoint -> 'channel_values' END) OFFSET 0)"
        " AS one) AS each) AS inlined"
    )
    document = (
        "CASE WHEN given IS NULL THEN checkpoint ELSE jsonb_set(checkpoint, '{{channel_values}}', given) END, too_large"
    )
    return document, source, (value_bytes, *parameters)


def _value_up_to(n_bytes: int | None) -> tuple[str, tuple[object, ...]]:
    """Returns the SQL of a write's value, NULL where it is larger, with its parameters."""
    if n_bytes is None:
        return "blob", ()
    if n_bytes == 0:
        return "NULL::bytea", ()
    return "CASE WHEN octet_length(blob) <= %s THEN blob END", (n_bytes,)
