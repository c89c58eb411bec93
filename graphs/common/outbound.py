"""Outbound requests: a row is written before an effect is asked for, so that a crash never leaves one unknown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graphs.common.database import Database

OUTBOUND_TABLE = """
CREATE TABLE IF NOT EXISTS outbound_requests (
  request_key TEXT PRIMARY KEY, thread TEXT NOT NULL, operation TEXT NOT NULL, request TEXT NOT NULL,
  status TEXT NOT NULL, response TEXT, started_at TEXT NOT NULL, finished_at TEXT
)"""


class KeyReused(RuntimeError):
    """A key was used for another request before: two effects would be taken for one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A request as it was found or begun.

    Attributes:
        is_new: No earlier attempt was made under this key.
        response: What the receiver answered, None while that is unknown.
    """

    is_new: bool
    response: Mapping[str, Any] | None


class OutboundLog:
    """The table of requests, by idempotency key.

    Args:
        database: The application's database; it must hold `OUTBOUND_TABLE`.
        clock: Returns the present time.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    def begin(self, key: str, *, thread: str, operation: str, request: Mapping[str, Any]) -> Entry:
        """Writes the row of a request that is about to be made, or returns the earlier one.

        Raises:
            KeyReused: the key stands for a different request.
        """
        text = json.dumps(request, sort_keys=True)
        with self._database.transaction() as transaction:
            begun = transaction.execute(
                "INSERT INTO outbound_requests (request_key, thread, operation, request, status, started_at)"
                " VALUES (?, ?, ?, ?, 'started', ?) ON CONFLICT DO NOTHING RETURNING request_key",
                (key, thread, operation, text, self._clock().isoformat()),
            )
            if begun:
                return Entry(is_new=True, response=None)
            found = transaction.execute("SELECT request, response FROM outbound_requests WHERE request_key = ?", (key,))
        if found[0]["request"] != text:
            raise KeyReused(f"{key} was used for another {operation}")
        response = found[0]["response"]
        return Entry(is_new=False, response=None if response is None else json.loads(response))

    def finish(self, key: str, response: Mapping[str, Any]) -> None:
        """Keeps the receiver's answer."""
        self._close(key, "done", json.dumps(response, sort_keys=True))

    def refuse(self, key: str) -> None:
        """Notes that the receiver refused: there was no effect."""
        self._close(key, "refused", None)

    def rows(self, thread: str) -> list[dict[str, Any]]:
        """Returns a thread's requests, oldest first."""
        with self._database.transaction() as transaction:
            return transaction.execute(
                "SELECT * FROM outbound_requests WHERE thread = ? ORDER BY started_at, request_key", (thread,)
            )

    def threads(self, operation: str) -> list[str]:
        """Returns the threads that ever made a request of a kind, by their first one."""
        sql = (
            "SELECT thread FROM outbound_requests WHERE operation = ? GROUP BY thread ORDER BY MIN(started_at), thread"
        )
        with self._database.transaction() as transaction:
            return [str(row["thread"]) for row in transaction.execute(sql, (operation,))]

    def _close(self, key: str, status: str, response: str | None) -> None:
        with self._database.transaction() as transaction:
            transaction.execute(
                "UPDATE outbound_requests SET status = ?, response = ?, finished_at = ? WHERE request_key = ?",
                (status, response, self._clock().isoformat(), key),
            )
