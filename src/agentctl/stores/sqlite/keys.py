"""The keys of threads at one moment, by which rows that were added later are told, and that rows were replaced.

Holding a transaction would do the same, and would keep an application from committing to a file in rollback mode. The
keys lie in the indexes of the primary keys, so reading them takes no page that holds values. A row that is replaced
gets a number beyond all that there were.

Source: www.sqlite.org/lang_conflict.html (REPLACE) and autoinc.html.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agentctl.stores.fetched import require_texts

_CHECKPOINTS = "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?"
_WRITES = "SELECT checkpoint_ns, checkpoint_id, task_id, idx FROM writes WHERE thread_id = ?"
_LAST = "SELECT (SELECT max(rowid) FROM checkpoints), (SELECT max(rowid) FROM writes)"
_N_LEFT = """
SELECT (SELECT count(*) FROM checkpoints WHERE thread_id = :thread AND rowid <= :checkpoint)
    + (SELECT count(*) FROM writes WHERE thread_id = :thread AND rowid <= :write)
"""

_NONE: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class ThreadKeys:
    """The rows of one thread.

    Attributes:
        checkpoints: Ids by namespace.
        writes: Task and position of the writes by namespace and checkpoint.
        last: The highest numbers that rows of both tables had; None in a file whose tables number no rows.
    """

    checkpoints: Mapping[str, frozenset[str]]
    writes: Mapping[tuple[str, str], frozenset[tuple[str, int]]]
    last: tuple[int, int] | None

    @property
    def n_rows(self) -> int:
        """How many rows there were."""
        return sum(map(len, self.checkpoints.values())) + sum(map(len, self.writes.values()))

    def has_write(self, ns: str, checkpoint_id: str, task_id: str, idx: int) -> bool:
        """Tells whether the write was there."""
        return (task_id, idx) in self.writes.get((ns, checkpoint_id), _NONE)


def read_keys(connection: sqlite3.Connection, threads: Collection[str]) -> dict[str, ThreadKeys]:
    """Returns the keys of threads by thread, all of one moment where the connection is in a transaction."""
    last = _last(connection)
    return {thread: _keys(connection, thread, last) for thread in threads}


def is_as_it_was(connection: sqlite3.Connection, thread: str, keys: ThreadKeys) -> bool:
    """Tells whether every row of a thread is still there that was, and none was replaced."""
    if keys.last is None:
        return True
    checkpoint, write = keys.last
    found = connection.execute(_N_LEFT, {"thread": thread, "checkpoint": checkpoint, "write": write}).fetchone()
    return bool(found[0] == keys.n_rows)


def _last(connection: sqlite3.Connection) -> tuple[int, int] | None:
    try:
        checkpoint, write = connection.execute(_LAST).fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        return None  # no such column: tables WITHOUT ROWID, which the stock saver reads too
    return checkpoint or 0, write or 0


def _keys(connection: sqlite3.Connection, thread: str, last: tuple[int, int] | None) -> ThreadKeys:
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
        last,
    )
