"""What a SQLite file tells of its rows, from its indexes and its schema.

Source: langgraph-checkpoint-sqlite 3.1.2, checkpoint/sqlite/__init__.py (`setup`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentctl.records.faults import LayoutFacts, OrphanRows, TypeCount
from agentctl.stores.sqlite.keys import ThreadKeys
from agentctl.stores.sqlite.opening import Readable

_KEY: Final = ("thread_id", "checkpoint_ns", "checkpoint_id")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {"checkpoints": _KEY, "writes": (*_KEY, "task_id", "idx")}
_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "checkpoints": frozenset((*_KEY, "parent_checkpoint_id", "type", "checkpoint", "metadata")),
    "writes": frozenset((*_KEY, "task_id", "idx", "channel", "type", "value", "task_path")),
}

_HEADLESS: Final = """
SELECT thread_id FROM (SELECT DISTINCT thread_id FROM checkpoints UNION SELECT DISTINCT thread_id FROM writes) AS t
WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.checkpoint_ns = '')
ORDER BY thread_id
"""
_ORPHANS: Final = """
SELECT checkpoint_ns, CAST(checkpoint_id AS TEXT), count(*) FROM writes w
WHERE thread_id = ? AND NOT EXISTS (
    SELECT 1 FROM checkpoints c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
    AND c.checkpoint_id = w.checkpoint_id)
GROUP BY checkpoint_ns, checkpoint_id ORDER BY checkpoint_ns, checkpoint_id LIMIT ?
"""
_TYPES: Final = """
SELECT '{table}', checkpoint_ns, CAST(coalesce(type, '') AS TEXT), count(*), CAST(min(checkpoint_id) AS TEXT)
FROM {table}
WHERE thread_id = ? GROUP BY checkpoint_ns, type
"""


class SqliteAudit:
    """See `agentctl.stores.audit.StoreAudit`.

    Args:
        file: The open file.
        keys: The rows that are seen of threads that are looked at as they stood at one moment.
    """

    def __init__(self, file: Readable, keys: Mapping[str, ThreadKeys]) -> None:
        self._file = file
        self._keys = keys

    def layout(self) -> LayoutFacts:
        """See `StoreAudit.layout`."""
        return self._file.read(_layout)

    def headless(self) -> Sequence[str]:
        """See `StoreAudit.headless`."""
        return [str(thread) for (thread,) in self._fetch(_HEADLESS, ())]

    def orphans(self, thread: str, *, limit: int) -> Sequence[OrphanRows]:
        """See `StoreAudit.orphans`. SQLite keeps values inside checkpoints, so there are no blobs."""
        keys = self._keys.get(thread)
        return [
            OrphanRows("writes", ns, checkpoint_id, None, n)
            for ns, checkpoint_id, n in self._fetch(_ORPHANS, (thread, limit))
            if keys is None or (ns, checkpoint_id) in keys.writes
        ]

    def types(self, thread: str) -> Sequence[TypeCount]:
        """See `StoreAudit.types`."""
        return [TypeCount(*record) for table in _KEYS for record in self._fetch(_TYPES.format(table=table), (thread,))]

    def _fetch(self, query: str, parameters: tuple[object, ...]) -> list[tuple[Any, ...]]:
        return self._file.read(lambda connection: connection.execute(query, parameters).fetchall())


def _layout(connection: sqlite3.Connection) -> LayoutFacts:
    extra: list[str] = []
    lacking: list[str] = []
    has_task_path = True
    for table, key in _KEYS.items():
        info = connection.execute(f"PRAGMA table_info({table})").fetchall()
        columns = {str(record[1]) for record in info}
        extra += [f"{table}.{name}" for name in sorted(columns - _COLUMNS[table])]
        has_task_path &= table != "writes" or "task_path" in columns
        if {str(record[1]) for record in info if record[5]} != set(key):
            lacking.append(table)
    return LayoutFacts(has_task_path=has_task_path, extra_columns=tuple(extra), lacking_keys=tuple(lacking))
