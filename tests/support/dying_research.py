"""A process of its own that researches, is told to publish, and kills itself between the effect and its checkpoint.

Run as `python -m tests.support.dying_research STORE DATABASE BACKOFFICE WHEN`, WHEN being `before-row` (the receiver
has answered, the outbound row is not closed yet) or `after-row` (it is closed, the checkpoint is not written).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.backoffice.publishing import IDENTITY
from graphs.common.effects import EffectClient, application_database, http_client
from graphs.common.outbound import OutboundLog
from graphs.common.services import Retries
from graphs.research_report.graph import build_graph
from graphs.research_report.models import make_models
from graphs.research_report.policy import CURRENT_POLICY, load_policies
from graphs.research_report.tools import ProductionTools
from graphs.research_report.traffic import Traffic
from tests.support.research import (
    APPROVE,
    PRICE,
    PRODUCTION_ENV,
    MemoryWeb,
    analyst,
    brief,
    norhaven,
    research,
    resume,
    reviewer,
)


class _DyingLog(OutboundLog):
    """Kills its process when the publication's answer has come in."""

    when = "before-row"

    def finish(self, key: str, response: Mapping[str, Any]) -> None:
        if self.when == "after-row":
            super().finish(key, response)
        os.kill(os.getpid(), signal.SIGKILL)


def main(store: str, database: str, backoffice: str, when: str) -> None:
    """Researches on thread `t`, approves, and does not return."""
    log = _DyingLog(application_database(database))
    log.when = when
    web = MemoryWeb()
    web.hold(*norhaven())
    make = PostgresSaver if store.startswith("postgres") else SqliteSaver
    with make.from_conn_string(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        saver.setup()
        client = EffectClient(("publications",), http, log, PRODUCTION_ENV, Retries())
        tools = ProductionTools(web, Traffic(load_policies()[CURRENT_POLICY]), client).registry()
        graph = build_graph(tools, model=make_models(env={}))
        graph.checkpointer = saver
        research(graph, analyst(), brief(PRICE))
        resume(graph, reviewer(), APPROVE)


if __name__ == "__main__":
    main(*sys.argv[1:5])
