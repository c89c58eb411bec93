"""Researches until its process dies between a publication and its checkpoint: for `tests.support.killed`."""

from __future__ import annotations

from fixtures.backoffice.publishing import IDENTITY
from fixtures.incidents.production import tool_options
from graphs.common.effects import application_database, http_client
from graphs.research_report.graph import build_graph
from graphs.research_report.models import make_models
from graphs.research_report.tools import production_tools
from tests.support.dying_log import DyingLog
from tests.support.research import APPROVE, PRICE, MemoryWeb, analyst, brief, norhaven, research, resume, reviewer
from tests.support.stores import saver_at


def main(store: str, database: str, backoffice: str, when: str) -> None:
    """Researches on thread `t`, has the report approved, and does not return.

    Args:
        store: Where checkpoints go.
        database: The application's database.
        backoffice: Its address.
        when: See `DyingLog`.
    """
    log = DyingLog(application_database(database), when, is_last=lambda key: ":publish_report:" in key)
    web = MemoryWeb()
    web.hold(*norhaven())
    with saver_at(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        saver.setup()
        usual = tool_options(http, identity=IDENTITY, database_url=database)
        tools = production_tools(web=web, backoffice_url=backoffice, **usual, log=log)
        graph = build_graph(tools, model=make_models(env={}))
        graph.checkpointer = saver
        research(graph, analyst(), brief(PRICE))
        resume(graph, reviewer(), APPROVE)
