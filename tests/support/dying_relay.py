"""Relays the travel outbox until its process dies between sending and marking: for `tests.support.killed`."""

from __future__ import annotations

import os
import signal

from fixtures.backoffice.travel import IDENTITY
from graphs.common.effects import http_client
from graphs.travel_booking.application import application_database
from graphs.travel_booking.operations.notifications import backoffice_notifier, notification_consumer
from graphs.travel_booking.operations.outbox import Event, Outbox, relay


def main(database: str, backoffice: str) -> None:
    """Sends the first event that is not sent yet, and does not return.

    Args:
        database: The application's database.
        backoffice: Its address.
    """
    with http_client(backoffice, identity=IDENTITY) as http:
        consumer = notification_consumer(database, backoffice_notifier(http))

        def send(event: Event) -> None:
            consumer.take(event)
            os.kill(os.getpid(), signal.SIGKILL)

        relay(Outbox(application_database(database)), send)
