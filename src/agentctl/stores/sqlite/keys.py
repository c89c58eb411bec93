"""The keys of threads at one moment, by which rows that were added later are told.

Holding a transaction would do the same, and would keep an application from committing to a file in rollback mode. The
keys lie in the indexes of the primary keys, so reading them takes no page that holds values.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agentctl.stores.fetched import require_texts

_CHECKPOINTS = "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?"
_WRITES = "SELECT checkpoint_ns, checkpoint_id, task_id, idx FROM writes WHERE thread_id = ?"

_NONE: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class ThreadKeys:
    """The rows of one thread.

    Attributes:
        checkpoints: Ids by namespace.
        writes: Task and position of the writes by namespace and checkpoint.
    """

    checkpoints: Mapping[str, frozenset[str]]
    writes: Mapping[tuple[str, str], frozenset[tuple[str, int]]]

    def has_write(self, ns: str, checkpoint_id: str, task_id: str, idx: int) -> bool:
        """Tells whether the write was there."""
        return (task_id, idx) in self.writes.get((ns, checkpoint_id), _NONE)


def read_keys(connection: sqlite3.Connection, threads: Collection[str]) -> dict[str, ThreadKeys]:
    """Returns the keys of threads by thread, all of one moment where the connection is in a transaction."""
    return {thread: _keys(connection, thread) for thread in threads}


def _keys(connection: sqlite3.Connection, thread: str) -> ThreadKeys:
    checkpoints: dict[str, set[str]] = defaultdict(set)
    for ns, checkpoint_id in connection.execute(_CHECKPOINTS, (thread,)):
        if not type(ns) is type(checkpoint_id) is str:
            require_texts(checkpoint_ns=ns, checkpoint_id=checkpoint_id)
        checkpoints[ns].add(checkpoint_id)
    writes: dict[tuple[str, str], set[tuple[str, int]]] = defaultdict(set)
    for ns, checkpoint_id, task_id, idx in connection.execute(_WRITES, (thread,)):
        if not type(ns) is type(checkpoint_id) is type(task_id) is str:
            require_texts(checkpoint_ns=ns, checkpoint_id=checkpoint_id, task_id=task_id)
        writes[ns, checkpoint_id].add((task_id, idx))
    return ThreadKeys(
        {ns: frozenset(ids) for ns, ids in checkpoints.items()},
        {key: frozenset(found) for key, found in writes.items()},
    )
