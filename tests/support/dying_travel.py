"""Books a trip until its process dies between an effect and its checkpoint: for `tests.support.killed`."""

from __future__ import annotations

from fixtures.backoffice.travel import IDENTITY
from fixtures.incidents.production import tool_options
from graphs.common.effects import http_client
from graphs.travel_booking.application import application_database
from graphs.travel_booking.graph import build_graph
from graphs.travel_booking.model import make_model
from graphs.travel_booking.tools import production_tools
from tests.support.dying_log import DyingLog
from tests.support.stores import saver_at
from tests.support.travel import approve, traveller


def main(store: str, database: str, backoffice: str, operation: str, when: str) -> None:
    """Approves the quote that thread `t` waits with, and does not return.

    Args:
        store: Where checkpoints are.
        database: The application's database.
        backoffice: Its address.
        operation: The one to die at, as its calls are named.
        when: See `DyingLog`.
    """
    log = DyingLog(application_database(database), when, is_last=lambda key: f":{operation}:" in key)
    with saver_at(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        usual = tool_options(http, identity=IDENTITY, database_url=database)
        tools = production_tools(backoffice, **usual, log=log)
        graph = build_graph(tools, model=make_model(env={}))
        graph.checkpointer = saver
        approve(graph, traveller("t"))
