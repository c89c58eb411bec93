"""Runs a loan case until its process dies between an effect and its checkpoint: for `tests.support.killed`."""

from __future__ import annotations

import json

from fixtures.backoffice.lending import IDENTITY
from fixtures.incidents.production import tool_options
from graphs.common.effects import application_database, http_client
from graphs.loan_underwriting.graph import build_graph
from graphs.loan_underwriting.model import make_model
from graphs.loan_underwriting.tools import production_tools
from tests.support.dying_log import DyingLog
from tests.support.loan import applicant
from tests.support.stores import saver_at

_CALLS = {"pull_bureau": "bureau_pull:1", "write_decision_record": "decision_record", "book_loan": "loan_booking"}


def main(store: str, database: str, backoffice: str, operation: str, when: str, case: str) -> None:
    """Runs the case on thread `t`, and does not return.

    Args:
        store: Where checkpoints go.
        database: The application's database.
        backoffice: Its address.
        operation: The one to die at.
        when: See `DyingLog`.
        case: The case's input as JSON.
    """
    log = DyingLog(application_database(database), when, is_last=lambda key: key.endswith(f":{_CALLS[operation]}"))
    with saver_at(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        saver.setup()
        usual = tool_options(http, identity=IDENTITY, database_url=database)
        tools = production_tools(backoffice, **usual, log=log)
        graph = build_graph(tools, model=make_model(env={}))
        graph.checkpointer = saver
        graph.invoke(json.loads(case), applicant(), durability="sync")
