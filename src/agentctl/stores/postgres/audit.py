"""What a Postgres database tells of its rows, counted by the server.

Source: langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py (`MIGRATIONS`, `SELECT_SQL`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentctl.records.faults import LayoutFacts, OrphanRows, TypeCount
from agentctl.stores.postgres.layout import NEWEST_KNOWN_MIGRATION, TABLES, TASK_PATH, Layout
from agentctl.stores.postgres.states import Fetch
from agentctl.stores.postgres.strays import STRAYS

_KEY: Final = ("thread_id", "checkpoint_ns", "checkpoint_id")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "checkpoints": _KEY,
    "checkpoint_blobs": ("thread_id", "checkpoint_ns", "channel", "version"),
    "checkpoint_writes": (*_KEY, "task_id", "idx"),
}
_OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {"checkpoints": ("type",), "checkpoint_writes": (TASK_PATH,)}

_HEADLESS: Final = """
SELECT t.thread_id FROM (SELECT thread_id FROM {checkpoints} UNION SELECT thread_id FROM {writes}
    UNION SELECT thread_id FROM {blobs}) AS t
WHERE NOT EXISTS (SELECT 1 FROM {checkpoints} c WHERE c.thread_id = t.thread_id AND c.checkpoint_ns = '')
ORDER BY 1
"""
_ORPHAN_WRITES: Final = """
SELECT w.checkpoint_ns, w.checkpoint_id, count(*) FROM {writes} w
WHERE w.thread_id = %s AND NOT EXISTS (
    SELECT 1 FROM {checkpoints} c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
    AND c.checkpoint_id = w.checkpoint_id)
GROUP BY 1, 2 ORDER BY 1, 2 LIMIT %s
"""
_ORPHAN_BLOBS: Final = f"""
WITH {STRAYS} SELECT checkpoint_ns, channel, count(*), count(*) FILTER (WHERE is_newer) FROM strays
GROUP BY 1, 2 ORDER BY 1, 2 LIMIT %(limit)s
"""
_TYPES: Final = """
SELECT 'blobs', checkpoint_ns, type, count(*), '' FROM {blobs} WHERE thread_id = %s GROUP BY 2, 3
UNION ALL
SELECT 'writes', checkpoint_ns, coalesce(type, ''), count(*), min(checkpoint_id) FROM {writes}
WHERE thread_id = %s GROUP BY 2, 3
"""
_MIGRATIONS: Final = """
SELECT (SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = 'checkpoint_migrations'
    AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))
"""
_TABLE_COLUMNS: Final = """
SELECT c.relname::text, a.attname::text,
    coalesce(a.attnum = ANY(i.indkey::int2[]), false)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE n.nspname = %s AND c.relname = ANY(%s) AND c.relkind IN ('r', 'p')
"""


class PostgresAudit:
    """See `agentctl.stores.audit.StoreAudit`.

    Args:
        fetch: Runs a statement; names in braces are the tables.
        layout: Where they are.
    """

    def __init__(self, fetch: Fetch, layout: Layout) -> None:
        self._fetch = fetch
        self._layout = layout

    def layout(self) -> LayoutFacts:
        """See `StoreAudit.layout`. Of views, which may stand for the tables, keys are not asked for."""
        columns: dict[str, dict[str, bool]] = {}
        for table, column, is_key in self._fetch(_TABLE_COLUMNS, (self._layout.schema, list(_KEYS))):
            columns.setdefault(table, {})[column] = is_key
        return LayoutFacts(
            migration=self._migration(),
            known_migration=NEWEST_KNOWN_MIGRATION,
            has_task_path=self._layout.has_task_path,
            extra_columns=tuple(
                f"{table}.{name}"
                for table, found in sorted(columns.items())
                for name in sorted(found.keys() - {*TABLES[table], *_OPTIONAL.get(table, ())})
            ),
            lacking_keys=tuple(
                table
                for table, found in sorted(columns.items())
                if {name for name, is_key in found.items() if is_key} != set(_KEYS[table])
            ),
        )

    def headless(self) -> Sequence[str]:
        """See `StoreAudit.headless`."""
        return [str(thread) for (thread,) in self._fetch(_HEADLESS)]

    def orphans(self, thread: str, *, limit: int) -> Sequence[OrphanRows]:
        """See `StoreAudit.orphans`."""
        writes = self._fetch(_ORPHAN_WRITES, (thread, limit))
        blobs = self._fetch(_ORPHAN_BLOBS, {"thread": thread, "limit": limit})
        return [
            *(OrphanRows("writes", ns, checkpoint_id, None, n) for ns, checkpoint_id, n in writes),
            *(OrphanRows("blobs", ns, None, channel, n, n_newer) for ns, channel, n, n_newer in blobs),
        ]

    def types(self, thread: str) -> Sequence[TypeCount]:
        """See `StoreAudit.types`."""
        return [TypeCount(*record) for record in self._fetch(_TYPES, (thread, thread))]

    def _migration(self) -> int | None:
        if not self._one(_MIGRATIONS, (self._layout.schema,)):
            return None
        newest = self._one("SELECT max(v) FROM {migrations}", ())
        return None if newest is None else int(newest)

    def _one(self, query: str, parameters: tuple[object, ...]) -> Any:
        return self._fetch(query, parameters)[0][0]
