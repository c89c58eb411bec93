"""A process of its own that runs the support workflow and kills itself between an effect and its checkpoint.

Run as `python -m tests.support.dying STORE DATABASE BACKOFFICE WHEN`, WHEN being `before-row` (the receiver has
answered, the outbound row is not closed yet) or `after-row` (it is closed, the checkpoint is not written).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.backoffice.support import IDENTITY
from graphs.common.effects import application_database, http_client
from graphs.common.outbound import OutboundLog
from graphs.support_refunds.graph import build_graph
from graphs.support_refunds.model import make_model
from graphs.support_refunds.tools import production_tools
from tests.support.backoffice import PRODUCTION_ENV, customer, say

MESSAGE = "Order A100 is lost, refund me."


class _DyingLog(OutboundLog):
    """Kills its process when the refund's answer has come in."""

    when = "before-row"

    def finish(self, key: str, response: Mapping[str, Any]) -> None:
        if self.when == "after-row":
            super().finish(key, response)
        os.kill(os.getpid(), signal.SIGKILL)


def main(store: str, database: str, backoffice: str, when: str) -> None:
    """Runs the customer's message on thread `t`, and does not return."""
    log = _DyingLog(application_database(database))
    log.when = when
    make = PostgresSaver if store.startswith("postgres") else SqliteSaver
    with make.from_conn_string(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        saver.setup()
        tools = production_tools(
            backoffice, identity=IDENTITY, database_url=database, env=PRODUCTION_ENV, http=http, log=log
        )
        graph = build_graph(tools, model=make_model(env={}))
        graph.checkpointer = saver
        say(graph, customer("t"), MESSAGE)


if __name__ == "__main__":
    main(*sys.argv[1:5])
