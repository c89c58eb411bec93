"""The transactional outbox: a booking and its event in one transaction, a relay that sends at least once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graphs.common.database import Database

INBOX_TABLE = """
CREATE TABLE IF NOT EXISTS inbox (
  event_id TEXT PRIMARY KEY, consumed_at TEXT NOT NULL
)"""


@dataclass(frozen=True, slots=True)
class Event:
    """What is told of a booking.

    Attributes:
        id: The same for every attempt to tell it: whoever consumes it knows it by this.
        thread: The trip.
        content: References and totals; no name, address or number of a person.
    """

    id: str
    thread: str
    content: Mapping[str, Any]


class Outbox:
    """Bookings, and the events that are still to be sent.

    Args:
        database: The application's.
        clock: Returns the present time.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    def record(self, event: Event) -> None:
        """Writes a booking and its event in one transaction; a repeat changes nothing."""
        text, now = json.dumps(event.content, sort_keys=True), self._clock().isoformat()
        with self._database.transaction() as transaction:
            for table in (
                "bookings (event_id, thread, record, booked_at)",
                "outbox (event_id, thread, event, created_at)",
            ):
                transaction.execute(
                    f"INSERT INTO {table} VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (event.id, event.thread, text, now),
                )

    def unsent(self) -> list[Event]:
        """Returns the events that no relay has marked as sent, oldest first."""
        with self._database.transaction() as transaction:
            rows = transaction.execute(
                "SELECT event_id, thread, event FROM outbox WHERE sent_at IS NULL ORDER BY created_at, event_id"
            )
        return [Event(row["event_id"], row["thread"], json.loads(row["event"])) for row in rows]

    def mark_sent(self, event_id: str) -> None:
        """Notes that an event was sent."""
        with self._database.transaction() as transaction:
            transaction.execute(
                "UPDATE outbox SET sent_at = ? WHERE event_id = ?", (self._clock().isoformat(), event_id)
            )


@dataclass(frozen=True, slots=True)
class Relayed:
    """One pass of the relay: ids of events sent, and of those that could not be, with the reason."""

    sent: tuple[str, ...]
    failed: Mapping[str, str]


def relay(outbox: Outbox, send: Callable[[Event], None]) -> Relayed:
    """Sends every event that is not marked as sent, and marks each after it was.

    One that fails stays for the next pass and holds no other up. A relay that dies between sending and marking sends
    the event again: consumers tell by its id.
    """
    sent: list[str] = []
    failed: dict[str, str] = {}
    for event in outbox.unsent():
        try:
            send(event)
        except Exception as error:
            failed[event.id] = f"{type(error).__name__}: {error}"
            continue
        outbox.mark_sent(event.id)
        sent.append(event.id)
    return Relayed(tuple(sent), failed)


class Consumer:
    """Takes each event once, however often it comes.

    Args:
        database: The consumer's own; it must hold `INBOX_TABLE`.
        notify: Tells the traveller; it is given the event's id as its idempotency key.
        clock: Returns the present time.
    """

    def __init__(
        self,
        database: Database,
        notify: Callable[[Event], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database = database
        self._notify = notify
        self._clock = clock

    def take(self, event: Event) -> bool:
        """Consumes an event and returns whether it was new.

        The note is committed with the notification done: where that fails the event is not consumed.
        """
        with self._database.transaction() as transaction:
            new = transaction.execute(
                "INSERT INTO inbox VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING event_id",
                (event.id, self._clock().isoformat()),
            )
            if new:
                self._notify(event)
        return bool(new)
