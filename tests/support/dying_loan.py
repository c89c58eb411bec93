"""A process of its own that runs a loan case and kills itself between an effect and its checkpoint.

Run as `python -m tests.support.dying_loan STORE DATABASE BACKOFFICE OPERATION WHEN INPUT`: it dies when the answer to
OPERATION has come in, WHEN being `before-row` (the outbound row is not closed yet) or `after-row` (it is closed, the
checkpoint is not written). INPUT is the case's input as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.backoffice.lending import IDENTITY
from graphs.common.effects import application_database, http_client
from graphs.common.outbound import OutboundLog
from graphs.loan_underwriting.graph import build_graph
from graphs.loan_underwriting.model import make_model
from graphs.loan_underwriting.tools import production_tools
from tests.support.loan import PRODUCTION_ENV, applicant

_CALLS = {"pull_bureau": "bureau_pull:1", "write_decision_record": "decision_record", "book_loan": "loan_booking"}


class _DyingLog(OutboundLog):
    """Kills its process when the answer to one operation has come in."""

    operation = ""
    when = "before-row"

    def finish(self, key: str, response: Mapping[str, Any]) -> None:
        is_last = key.endswith(f":{_CALLS[self.operation]}")
        if not is_last or self.when == "after-row":
            super().finish(key, response)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)


def main(store: str, database: str, backoffice: str, operation: str, when: str, case: str) -> None:
    """Runs the case on thread `t`, and does not return."""
    log = _DyingLog(application_database(database))
    log.operation, log.when = operation, when
    make = PostgresSaver if store.startswith("postgres") else SqliteSaver
    with make.from_conn_string(store) as saver, http_client(backoffice, identity=IDENTITY) as http:
        saver.setup()
        tools = production_tools(
            backoffice, identity=IDENTITY, database_url=database, env=PRODUCTION_ENV, http=http, log=log
        )
        graph = build_graph(tools, model=make_model(env={}))
        graph.checkpointer = saver
        graph.invoke(json.loads(case), applicant(), durability="sync")


if __name__ == "__main__":
    main(*sys.argv[1:7])
