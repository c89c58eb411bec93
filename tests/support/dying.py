"""Runs the support workflow until its process dies between a refund and its checkpoint: for `tests.support.killed`."""

from __future__ import annotations

from fixtures.backoffice.support import IDENTITY
from fixtures.incidents.production import tool_options
from graphs.common.effects import application_database, http_client
from graphs.support_refunds.graph import build_graph
from graphs.support_refunds.model import make_model
from graphs.support_refunds.tools import production_tools
from tests.support.backoffice import customer, say
from tests.support.dying_log import DyingLog
from tests.support.stores import saver_at

MESSAGE = "Order A100 is lost, refund me."


def main(store: str, database: str, backoffice: str, when: str) -> None:
    """Runs the customer's message on thread `t`, and does not return.

    Args:
        store: Where checkpoints go.
        database: The application's database.
        backoffice: Its address.
        when: See `DyingLog`.
    """
    log = DyingLog(application_database(database), when, is_last=lambda key: ":issue_refund:" in key)
    with saver_at(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        saver.setup()
        usual = tool_options(http, identity=IDENTITY, database_url=database)
        tools = production_tools(backoffice, **usual, log=log)
        graph = build_graph(tools, model=make_model(env={}))
        graph.checkpointer = saver
        say(graph, customer("t"), MESSAGE)
