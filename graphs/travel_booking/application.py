"""The tables that the workflow's application keeps beside the checkpoints: quotes, bookings, and events to be sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from graphs.common.answers import CLAIMS_TABLE, claims_in
from graphs.common.database import Database, Transaction
from graphs.common.outbound import OUTBOUND_TABLE

TABLES = ("quotes", "bookings", "outbox")
_QUOTES = """
CREATE TABLE IF NOT EXISTS quotes (
  thread TEXT NOT NULL, quote_version INTEGER NOT NULL, digest TEXT NOT NULL, content TEXT NOT NULL,
  made_at TEXT NOT NULL, PRIMARY KEY (thread, quote_version), UNIQUE (thread, digest)
)"""
_BOOKINGS = """
CREATE TABLE IF NOT EXISTS bookings (
  event_id TEXT PRIMARY KEY, thread TEXT NOT NULL, record TEXT NOT NULL, booked_at TEXT NOT NULL
)"""
_OUTBOX = """
CREATE TABLE IF NOT EXISTS outbox (
  event_id TEXT PRIMARY KEY, thread TEXT NOT NULL, event TEXT NOT NULL, created_at TEXT NOT NULL, sent_at TEXT
)"""


def application_database(url: str) -> Database:
    """Returns the application's database, by URL; nothing is opened yet."""
    return Database(url, (OUTBOUND_TABLE, CLAIMS_TABLE, _QUOTES, _BOOKINGS, _OUTBOX))


claim_answer = claims_in("TRAVEL_DATABASE_URL", application_database)


class QuoteBook:
    """Every quote of every thread: the same content has one version for good, other content never gets it.

    A branch of a thread may quote anew from an older state. Its quote gets a version of its own here, so that no
    approval and no idempotency key of another branch fits it.

    Args:
        database: The application's.
        clock: Returns the present time.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    def register(self, thread: str, content: Mapping[str, Any]) -> int:
        """Returns the version of a quote, a new one where this content is new."""
        text = json.dumps(content, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        while True:
            with self._database.transaction() as transaction:
                if (known := _version(transaction, thread, digest)) is not None:
                    return known
                highest = transaction.execute(
                    "SELECT COALESCE(MAX(quote_version), 0) AS highest FROM quotes WHERE thread = ?", (thread,)
                )
                row = (thread, highest[0]["highest"] + 1, digest, text, self._clock().isoformat())
                made = transaction.execute(
                    "INSERT INTO quotes VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING quote_version", row
                )
            # Somebody else may have taken the number in between: then it is looked up again.
            if made:
                return int(made[0]["quote_version"])


def _version(transaction: Transaction, thread: str, digest: str) -> int | None:
    found = transaction.execute("SELECT quote_version FROM quotes WHERE thread = ? AND digest = ?", (thread, digest))
    return int(found[0]["quote_version"]) if found else None
