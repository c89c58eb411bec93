"""Telling travellers of their bookings: what consumes the events that the relay sends."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from graphs.common.database import Database
from graphs.travel_booking.operations.outbox import INBOX_TABLE, Consumer, Event


def notification_consumer(database_url: str, notify: Callable[[Event], None]) -> Consumer:
    """Returns the consumer of booking events, over its own table.

    Args:
        database_url: The consumer's database.
        notify: Tells the traveller.
    """
    return Consumer(Database(database_url, (INBOX_TABLE,)), notify)


def backoffice_notifier(http: httpx.Client) -> Callable[[Event], None]:
    """Returns what has the back office write to the traveller, whose address it keeps.

    Args:
        http: Client with base address, timeout and identity header.
    """

    def notify(event: Event) -> None:
        body = {"event_id": event.id, **event.content}
        http.post("/notifications", json=body, headers={"Idempotency-Key": event.id}).raise_for_status()

    return notify
