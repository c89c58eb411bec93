"""A real process killed between an effect and its checkpoint; another one resumes the case."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.support.loan import LoanWorld, applicant, application

REPOSITORY = Path(__file__).parents[2]


def _saver(url: str) -> Any:
    return PostgresSaver.from_conn_string(url) if url.startswith("postgres") else SqliteSaver.from_conn_string(url)


@pytest.mark.real_process
@pytest.mark.parametrize(
    ("store", "operation", "when", "keys", "waits_at"),
    [
        ("sqlite", "pull_bureau", "before-row", "expired", "pull_bureau"),
        ("sqlite", "book_loan", "after-row", "kept", "finalize"),
        ("postgres", "pull_bureau", "after-row", "kept", "pull_bureau"),
        ("postgres", "book_loan", "before-row", "expired", "finalize"),
    ],
)
def test_after_kill_9_the_case_resumes_with_one_inquiry_one_record_and_one_booking(
    bank: LoanWorld, request: pytest.FixtureRequest, store: str, operation: str, when: str, keys: str, waits_at: str
) -> None:
    documents = bank.put_applicant()
    is_postgres = store == "postgres"
    store_url = request.getfixturevalue("fresh_postgres_url") if is_postgres else str(bank.folder / "store.sqlite")
    database_url = store_url if is_postgres else bank.database_url
    arguments = [store_url, database_url, bank.backoffice.url, operation, when, json.dumps(application(documents))]
    died = subprocess.run(
        [sys.executable, "-m", "tests.support.dying_loan", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    kind = {"pull_bureau": "inquiry", "book_loan": "loan_booking"}[operation]
    assert len(bank.backoffice.effects(kind)) == 1, "the receiver has done it"
    if keys == "expired":
        bank.backoffice.expire_keys()
    with _saver(store_url) as saver:
        graph = bank.graph(saver, tools=bank.tools(database_url=database_url))
        open_tasks = {task.name for task in graph.get_state(applicant()).tasks if task.result is None}
        assert waits_at in open_tasks, "the thread does not know it"
        state = graph.invoke(None, applicant(), durability="sync")
    assert (state["final_decision"], state["route"]) == ("approve", "finalize")
    assert state["booking_reference"] == bank.backoffice.effects("loan_booking")[0]["loan_booking_id"]
    assert bank.backoffice.counters()["effects"] == {"inquiry": 1, "decision_record": 1, "loan_booking": 1}
    assert set(bank.backoffice.counters()["effects_by_key"].values()) == {1}
