"""What a Postgres database holds, counted by the server, which knows a value's length without reading it.

Blobs and writes are counted by their length. The JSONB columns `checkpoint` and `metadata` are counted as the server
keeps them (`pg_column_size`), compressed where it compresses them: their length as text would take reading them.

Source: www.postgresql.org/docs/18/functions-admin.html (database object size functions, which need no grant) and
monitoring-stats.html; langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/__init__.py (`put`) and
store/postgres/base.py (`MIGRATIONS`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from agentctl.records.rows import Stored
from agentctl.records.sizes import (
    ChannelPart,
    ChannelWrites,
    DatabaseSize,
    Role,
    RowSize,
    SizePart,
    StateValues,
    TableSize,
)
from agentctl.revisions.namespaces import node_path
from agentctl.stores.batches import by_size
from agentctl.stores.large import LARGE_BYTES
from agentctl.stores.postgres.large import large_blob, large_text
from agentctl.stores.postgres.states import Fetch, inline_value
from agentctl.stores.sizes import Tick

_BATCH_BYTES: Final = 8 * 1024 * 1024
_ROWS_PER_READ: Final = 500
_TABLES: Final[tuple[tuple[str, Role], ...]] = (
    ("checkpoints", "checkpoints"),
    ("checkpoint_blobs", "blobs"),
    ("checkpoint_writes", "writes"),
    ("store", "memory"),
    ("store_vectors", "memory"),
)
_PATH: Final = "regexp_replace(checkpoint_ns, ':[^|]*', '', 'g')"
"""The SQL of `node_path`."""


def _object(column: str) -> str:
    """Returns the SQL of a JSON value where it is an object, else NULL, which functions over objects take."""
    return f"CASE WHEN jsonb_typeof({column}) = 'object' THEN {column} END"


_VERSIONS: Final = "jsonb_each_text(" + _object("checkpoint -> 'channel_versions'") + ") AS v(channel, version)"
_INLINE: Final = "jsonb_each(" + _object("checkpoint -> 'channel_values'") + ") AS v(channel, value)"
_BLOB_OF_VERSION: Final = (
    "b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = v.channel"
    " AND b.version = v.version AND b.type <> 'empty'"
)
_HAS_BLOB: Final = (
    "EXISTS (SELECT 1 FROM {blobs} b WHERE b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns"
    " AND b.channel = v.channel AND b.version = c.checkpoint -> 'channel_versions' ->> v.channel"
    " AND b.type <> 'empty')"
)
_ON_DISK: Final = """
SELECT t.name, pg_catalog.pg_table_size(t.oid), pg_catalog.pg_indexes_size(t.oid), s.n_dead_tup,
       pg_catalog.has_table_privilege(t.oid, 'SELECT')
FROM (SELECT c.relname::text AS name, c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n
      ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = ANY(%s)) AS t
LEFT JOIN pg_catalog.pg_stat_all_tables s ON s.relid = t.oid
"""

_COMPRESSED: Final = 4
"""How many times as long documents may be as the server keeps them."""

_INLINE_VALUES: Final = (
    "SELECT checkpoint_id, held.small, held.large FROM {checkpoints} c CROSS JOIN LATERAL"
    " (SELECT jsonb_object_agg(v.channel, v.value) FILTER (WHERE NOT is_large) AS small,"
    " array_agg(v.channel) FILTER (WHERE is_large) AS large FROM (SELECT v.channel, v.value,"
    " jsonb_typeof(v.value) = 'string' AND octet_length(v.value #>> '{{}}') > %s AS is_large"
    f" FROM {_INLINE} WHERE NOT {_HAS_BLOB}) AS v) AS held"
    " WHERE c.thread_id = %s AND c.checkpoint_ns = %s AND c.checkpoint_id = ANY(%s) ORDER BY c.checkpoint_id"
)
"""Values of checkpoints in their own rows, and the channels whose text there is longer than so many bytes."""


class PostgresSizes:
    """See `agentctl.stores.sizes.SizeReader`.

    Args:
        fetch: Runs a statement in a transaction of its own; `{checkpoints}` and the like in it are the tables.
        schema: Schema of the tables.
    """

    def __init__(self, fetch: Fetch, *, schema: str) -> None:
        self._fetch = fetch
        self._schema = schema

    def parts(self, thread: str | None = None) -> Iterator[SizePart]:
        """See `SizeReader.parts`."""
        mine, parameters = _of(thread)
        for found in self._fetch(
            "SELECT thread_id, path, sum(n)::bigint, sum(state)::bigint, sum(metadata)::bigint, sum(newest)::bigint,"
            f" count(*) FROM (SELECT thread_id, {_PATH} AS path, count(*) AS n, sum(pg_column_size(checkpoint)) AS"
            " state, sum(pg_column_size(metadata)) AS metadata, (array_agg(pg_column_size(checkpoint) ORDER BY"
            f" checkpoint_id DESC))[1] AS newest FROM {{checkpoints}} WHERE {mine} GROUP BY thread_id, checkpoint_ns)"
            " AS one GROUP BY thread_id, path",
            parameters,
        ):
            yield SizePart("checkpoints", *found)
        blobs = f"count(*), coalesce(sum(octet_length(blob)), 0)::bigint FROM {{blobs}} WHERE {mine}"
        for found in self._fetch(f"SELECT thread_id, {_PATH}, {blobs} GROUP BY 1, 2", parameters):
            yield SizePart("blobs", *found)
        for owner, path, n_bytes in self._newest_blobs(thread):
            yield SizePart("blobs", owner, path, n_rows=0, n_bytes=0, newest_bytes=n_bytes)
        writes = f"count(*), coalesce(sum(octet_length(blob)), 0)::bigint FROM {{writes}} WHERE {mine}"
        for found in self._fetch(f"SELECT thread_id, {_PATH}, {writes} GROUP BY 1, 2", parameters):
            yield SizePart("writes", *found)

    def written(self, thread: str | None = None) -> Iterator[ChannelWrites]:
        """See `SizeReader.written`."""
        mine, parameters = _of(thread)
        query = (
            f"SELECT {_PATH}, channel, count(*), coalesce(sum(octet_length(blob)), 0)::bigint FROM {{writes}}"
            f" WHERE {mine} GROUP BY 1, 2"
        )
        yield from (ChannelWrites(*found) for found in self._fetch(query, parameters))

    def channels(self, thread: str | None = None, *, tick: Tick) -> Iterator[ChannelPart]:
        """See `SizeReader.channels`. All of it is counted by the server."""
        mine, parameters = _of(thread)
        delta = self._fetch(
            f"SELECT DISTINCT {_PATH}, jsonb_object_keys("
            + _object("metadata -> 'counters_since_delta_snapshot'")
            + f") FROM {{checkpoints}} WHERE {mine}",
            parameters,
        )
        for path, channel in delta:
            yield ChannelPart(path, channel, is_delta=True)
        yield from (ChannelPart(*found) for found in self._fetch(_blob_channels(mine), parameters * 2))
        inline_bytes: defaultdict[str, int] = defaultdict(int)
        for path, channel, n_values, n_distinct, n_bytes, newest in self._fetch(_inline_channels(mine), parameters):
            inline_bytes[path] += n_bytes
            yield ChannelPart(path, channel, n_values, n_distinct, n_bytes, newest)
        whole = f"SELECT {_PATH}, sum(pg_column_size(checkpoint))::bigint FROM {{checkpoints}} WHERE {mine} GROUP BY 1"
        for path, n_bytes in self._fetch(whole, parameters):
            # A large row is compressed as a whole, and may then be smaller than the values in it.
            yield ChannelPart(path, "", n_bytes=max(n_bytes - inline_bytes[path], 0), rest="bookkeeping")

    def values(self, thread: str | None = None, *, tick: Tick) -> Iterator[StateValues]:
        """See `SizeReader.values`."""
        mine, parameters = _of(thread)
        query = (
            f"SELECT DISTINCT thread_id, checkpoint_ns FROM {{checkpoints}} WHERE {mine} UNION"
            f" SELECT DISTINCT thread_id, checkpoint_ns FROM {{blobs}} WHERE {mine} ORDER BY 1, 2"
        )
        for owner, ns in self._fetch(query, parameters * 2):
            yield from self._blobs_of(owner, ns, tick)
            yield from self._inline_of(owner, ns)

    def largest(self, thread: str | None = None, *, limit: int | None) -> Sequence[RowSize]:
        """See `SizeReader.largest`."""
        mine, parameters = _of(thread)
        at_most = "" if limit is None else f" ORDER BY n DESC LIMIT {limit:d}"
        found: list[RowSize] = []
        for query in (
            "SELECT 'checkpoints', thread_id, checkpoint_ns, checkpoint_id, '',"
            " pg_column_size(checkpoint) + pg_column_size(metadata) AS n FROM {checkpoints}",
            "SELECT 'checkpoint_blobs', thread_id, checkpoint_ns, version, channel,"
            " coalesce(octet_length(blob), 0) AS n FROM {blobs}",
            "SELECT 'checkpoint_writes', thread_id, checkpoint_ns, concat_ws(' ', checkpoint_id, task_id, idx),"
            " channel, coalesce(octet_length(blob), 0) AS n FROM {writes}",
        ):
            found += (RowSize(*row) for row in self._fetch(f"{query} WHERE {mine}{at_most}", parameters))
        ordered = sorted(found, key=lambda row: (-row.n_bytes, row.table, row.thread, row.key))
        return ordered if limit is None else ordered[:limit]

    def database(self) -> DatabaseSize:
        """See `SizeReader.database`. A table that this role may not read is counted by what it takes on disk alone."""
        roles = dict(_TABLES)
        on_disk = {row[0]: row[1:] for row in self._fetch(_ON_DISK, (self._schema, list(roles)))}
        tables = []
        for name, role in _TABLES:
            if name in on_disk:
                disk_bytes, index_bytes, n_dead, is_readable = on_disk[name]
                n_rows, n_bytes = self._memory(name) if role == "memory" and is_readable else (None, None)
                tables.append(TableSize(name, role, n_rows, n_bytes, disk_bytes, index_bytes, n_dead))
        whole = sum((table.disk_bytes or 0) + (table.index_bytes or 0) for table in tables)
        return DatabaseSize(tuple(tables), whole)

    def _memory(self, table: str) -> tuple[int, int]:
        column, name = {"store": ("value", "{store}"), "store_vectors": ("embedding", "{store_vectors}")}[table]
        ((n_rows, n_bytes),) = self._fetch(
            f"SELECT count(*), coalesce(sum(pg_column_size({column})), 0)::bigint FROM {name}"
        )
        return n_rows, n_bytes

    def _newest_blobs(self, thread: str | None) -> list[tuple[Any, ...]]:
        mine, parameters = _of(thread)
        return self._fetch(
            "WITH heads AS (SELECT thread_id, checkpoint_ns, max(checkpoint_id) AS checkpoint_id FROM {checkpoints}"
            f" WHERE {mine} GROUP BY 1, 2)"
            f" SELECT thread_id, {_PATH}, sum(n)::bigint FROM (SELECT c.thread_id, c.checkpoint_ns,"
            " octet_length(b.blob) AS n FROM heads JOIN {checkpoints} c USING (thread_id, checkpoint_ns, checkpoint_id)"
            f" CROSS JOIN LATERAL {_VERSIONS} JOIN {{blobs}} b ON {_BLOB_OF_VERSION}) AS held GROUP BY 1, 2",
            parameters,
        )

    def _blobs_of(self, thread: str, ns: str, tick: Tick) -> Iterator[StateValues]:
        mine = "thread_id = %s AND checkpoint_ns = %s AND type <> 'empty'"
        keys = self._fetch(
            f"SELECT channel, version, coalesce(octet_length(blob), 0) FROM {{blobs}} WHERE {mine} ORDER BY 1, 2",
            (thread, ns),
        )
        by_channel: dict[str, list[tuple[str, int]]] = {}
        path = node_path(ns)
        for channel, version, n_bytes in keys:
            if n_bytes <= LARGE_BYTES:
                by_channel.setdefault(channel, []).append((version, n_bytes))
            else:
                tick(1)
                yield StateValues(thread, path, {channel: large_blob(self._fetch, thread, ns, channel, version)})
        for channel, versions in by_channel.items():
            for batch in by_size(versions, _BATCH_BYTES, _ROWS_PER_READ):
                for type_, blob in self._fetch(
                    f"SELECT type, blob FROM {{blobs}} WHERE {mine} AND channel = %s AND version = ANY(%s)",
                    (thread, ns, channel, batch),
                ):
                    tick(1)
                    yield StateValues(thread, path, {channel: Stored(type_, bytes(blob or b""))})

    def _inline_of(self, thread: str, ns: str) -> Iterator[StateValues]:
        """Yields what checkpoints hold in their own rows; a `true` beside a blob is a mark, not a value."""
        held = (
            "SELECT checkpoint_id, pg_column_size(checkpoint) FROM {checkpoints} c"
            " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id > %s ORDER BY checkpoint_id LIMIT %s"
        )
        last, path = "", node_path(ns)
        while page := self._fetch(held, (thread, ns, last, _ROWS_PER_READ)):
            for batch in by_size(page, _BATCH_BYTES // _COMPRESSED, _ROWS_PER_READ):
                for id_, values, large in self._fetch(_INLINE_VALUES, (LARGE_BYTES, thread, ns, batch)):
                    inline = {name: inline_value(value) for name, value in (values or {}).items()}
                    parts = {name: large_text(self._fetch, thread, ns, id_, name) for name in large or ()}
                    if inline or parts:
                        yield StateValues(thread, path, {**inline, **parts})
            last = page[-1][0]


def _blob_channels(mine: str) -> str:
    """Returns the query of channels whose values are blobs: each stored once a version, held by many checkpoints."""
    stored = (
        "SELECT thread_id, checkpoint_ns, channel, count(*) AS n, coalesce(sum(octet_length(blob)), 0) AS n_bytes"
        f" FROM {{blobs}} WHERE {mine} AND type <> 'empty' GROUP BY 1, 2, 3"
    )
    held = (
        "SELECT c.thread_id, c.checkpoint_ns, v.channel, count(*) AS n,"
        " (array_agg(coalesce(octet_length(b.blob), 0) ORDER BY c.checkpoint_id DESC))[1] AS newest"
        f" FROM (SELECT thread_id, checkpoint_ns, checkpoint_id, checkpoint FROM {{checkpoints}} WHERE {mine}) AS c"
        f" CROSS JOIN LATERAL {_VERSIONS} JOIN {{blobs}} b ON {_BLOB_OF_VERSION} GROUP BY 1, 2, 3"
    )
    return (
        f"SELECT {_PATH}, channel, coalesce(sum(held.n), 0)::bigint, sum(stored.n)::bigint, sum(n_bytes)::bigint,"
        f" coalesce(sum(newest), 0)::bigint FROM ({stored}) AS stored"
        f" LEFT JOIN ({held}) AS held USING (thread_id, checkpoint_ns, channel) GROUP BY 1, 2"
    )


def _inline_channels(mine: str) -> str:
    """Returns the query of channels whose values lie in the rows of checkpoints themselves: text, numbers, truth."""
    one = (
        "SELECT c.thread_id, c.checkpoint_ns, v.channel, count(*) AS n,"
        " count(DISTINCT c.checkpoint -> 'channel_versions' ->> v.channel) AS n_distinct,"
        " sum(pg_column_size(v.value)) AS n_bytes,"
        " (array_agg(pg_column_size(v.value) ORDER BY c.checkpoint_id DESC))[1] AS newest"
        f" FROM (SELECT thread_id, checkpoint_ns, checkpoint_id, checkpoint FROM {{checkpoints}} WHERE {mine}) AS c"
        f" CROSS JOIN LATERAL {_INLINE}"
        f" WHERE NOT {_HAS_BLOB} GROUP BY 1, 2, 3"
    )
    return (
        f"SELECT {_PATH}, channel, sum(n)::bigint, sum(n_distinct)::bigint, sum(n_bytes)::bigint, sum(newest)::bigint"
        f" FROM ({one}) AS one GROUP BY 1, 2"
    )


def _of(thread: str | None) -> tuple[str, tuple[object, ...]]:
    """Returns the condition on rows and its parameters."""
    return ("TRUE", ()) if thread is None else ("thread_id = %s", (thread,))
