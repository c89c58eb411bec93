"""A process of its own that books a trip and kills itself between an effect and its checkpoint.

Run as `python -m tests.support.dying_travel STORE DATABASE BACKOFFICE OPERATION WHEN`. It approves the quote that
thread `t` waits with, and dies as OPERATION's answer has come in: WHEN is `before-row` (the outbound row is not closed
yet) or `after-row` (it is closed, the checkpoint is not written). With OPERATION `relay` it relays the outbox instead,
and dies between sending and marking.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.backoffice.travel import IDENTITY
from graphs.common.effects import http_client
from graphs.common.outbound import OutboundLog
from graphs.travel_booking.application import application_database
from graphs.travel_booking.graph import build_graph
from graphs.travel_booking.model import make_model
from graphs.travel_booking.operations.notifications import backoffice_notifier, notification_consumer
from graphs.travel_booking.operations.outbox import Event, Outbox, relay
from graphs.travel_booking.tools import production_tools
from tests.support.travel import PRODUCTION_ENV, approve, traveller


class _DyingLog(OutboundLog):
    """Kills its process when the operation's answer has come in."""

    operation = ""
    when = "before-row"

    def finish(self, key: str, response: Mapping[str, Any]) -> None:
        is_it = f":{self.operation}:" in key
        if not is_it or self.when == "after-row":
            super().finish(key, response)
        if is_it:
            os.kill(os.getpid(), signal.SIGKILL)


def main(store: str, database: str, backoffice: str, operation: str, when: str) -> None:
    """Approves, and does not return."""
    log = _DyingLog(application_database(database))
    log.operation, log.when = operation, when
    make = PostgresSaver if store.startswith("postgres") else SqliteSaver
    with make.from_conn_string(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        tools = production_tools(
            backoffice, identity=IDENTITY, database_url=database, env=PRODUCTION_ENV, http=http, log=log
        )
        graph = build_graph(tools, model=make_model(env={}))
        graph.checkpointer = saver
        approve(graph, traveller("t"))


def _relay(database: str, backoffice: str) -> None:
    with http_client(backoffice, identity=IDENTITY) as http:
        consumer = notification_consumer(database, backoffice_notifier(http))

        def send(event: Event) -> None:
            consumer.take(event)
            os.kill(os.getpid(), signal.SIGKILL)

        relay(Outbox(application_database(database)), send)


if __name__ == "__main__":
    if sys.argv[4] == "relay":
        _relay(*sys.argv[2:4])
    else:
        main(*sys.argv[1:6])
