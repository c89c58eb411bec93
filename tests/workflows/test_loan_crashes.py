"""A real process killed between an effect and its checkpoint; another one resumes the case."""

from __future__ import annotations

import json

import pytest

from tests.support.killed import Killed
from tests.support.loan import LoanWorld, applicant, application
from tests.support.stored import is_postgres
from tests.support.stores import saver_at


@pytest.mark.real_process
@pytest.mark.parametrize(
    ("store_url", "operation", "when", "keys", "waits_at"),
    [
        ("sqlite", "pull_bureau", "before-row", "expired", "pull_bureau"),
        ("sqlite", "book_loan", "after-row", "kept", "finalize"),
        ("postgres", "pull_bureau", "after-row", "kept", "pull_bureau"),
        ("postgres", "book_loan", "before-row", "expired", "finalize"),
    ],
    indirect=["store_url"],
)
def test_after_kill_9_the_case_resumes_with_one_inquiry_one_record_and_one_booking(
    bank: LoanWorld, killed: Killed, store_url: str, operation: str, when: str, keys: str, waits_at: str
) -> None:
    documents = bank.put_applicant()
    database_url = store_url if is_postgres(store_url) else bank.database_url
    arguments = [store_url, database_url, bank.backoffice.url, operation, when, json.dumps(application(documents))]
    killed("dying_loan", *arguments)
    kind = {"pull_bureau": "inquiry", "book_loan": "loan_booking"}[operation]
    assert len(bank.backoffice.effects(kind)) == 1, "the receiver has done it"
    if keys == "expired":
        bank.backoffice.expire_keys()
    with saver_at(store_url) as saver:
        graph = bank.graph(saver, tools=bank.tools(database_url=database_url))
        open_tasks = {task.name for task in graph.get_state(applicant()).tasks if task.result is None}
        assert waits_at in open_tasks, "the thread does not know it"
        state = graph.invoke(None, applicant(), durability="sync")
    assert (state["final_decision"], state["route"]) == ("approve", "finalize")
    assert state["booking_reference"] == bank.backoffice.effects("loan_booking")[0]["loan_booking_id"]
    assert bank.backoffice.counters()["effects"] == {"inquiry": 1, "decision_record": 1, "loan_booking": 1}
    assert set(bank.backoffice.counters()["effects_by_key"].values()) == {1}
