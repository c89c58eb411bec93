"""What is kept of a case: deletion, encryption, no personal data where it must not be, and rows of an earlier graph."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.backoffice.lending import put_statement
from fixtures.documents.loan import Applicant, statement_lines
from graphs.common.answers import AnswerClaims, answer
from graphs.common.deletion import delete_case
from graphs.common.effects import application_database
from graphs.loan_underwriting.state import GRAPH_VERSION
from tests.support.loan import (
    APPLICANT,
    APPROVE,
    TODAY,
    LoanWorld,
    applicant,
    application,
    apply,
    question,
    resume,
    staff,
)
from tests.support.stored import is_postgres, rows_naming

ROWS = Path(__file__).parent / "rows" / "loan_underwriting_v1.sql"
PERSONAL = (APPLICANT.full_name, APPLICANT.birth_date.isoformat(), APPLICANT.id_last4, "4200.00", "4,200.00")


def test_deleting_a_case_leaves_nothing_of_it_and_keeps_what_is_known_of_the_employer(
    bank: LoanWorld, stores: tuple[Any, Any], store_url: str
) -> None:
    saver, memory = stores
    database_url = store_url if is_postgres(store_url) else bank.database_url
    graph = bank.graph(saver, memory=memory, tools=bank.tools(database_url=database_url))
    database = application_database(database_url)
    gone = Applicant("ap-gone", full_name="Mara Winter")
    kept = bank.put_applicant(bureau={"score": 530})
    apply(graph, kept, applicant("case-kept"))
    apply(
        graph,
        bank.put_applicant(gone, bureau={"score": 530}),
        applicant("case-gone", user_id="u-gone"),
        applicant_id="ap-gone",
    )
    answer(graph, staff("case-gone", user_id="u-gone"), APPROVE, claims=AnswerClaims(database))
    before = rows_naming(database_url, "case-gone")
    assert (before["outbound_requests"], before["answer_claims"]) == (4, 1)
    assert sum(rows_naming(store_url, "Mara Winter").values()) > 0
    deleted = delete_case("case-gone", saver=saver, memory=memory, namespace=("cases", "case-gone"), database=database)
    assert (deleted.n_rows, deleted.n_items) == (5, 0)
    for url in {store_url, database_url}:
        for text in ("case-gone", "u-gone", "ap-gone", "Mara Winter"):
            assert set(rows_naming(url, text).values()) == {0}, text
    assert memory.get(("employers", "E1001"), "payroll") is not None, "a fact about a firm"
    assert graph.get_state(applicant("case-kept")).next == ("review",)


def test_encrypted_cases_hold_no_plain_text_and_go_on(bank: LoanWorld, stores: tuple[Any, Any], store_url: str) -> None:
    saver, _ = stores
    saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    apply(bank.graph(saver), bank.put_applicant(bureau={"score": 530}))
    assert set(rows_naming(store_url, APPLICANT.full_name).values()) == {0}
    state = resume(bank.graph(saver), staff(), APPROVE)
    assert state["final_decision"] == "approve"
    assert state["extracted_fields"]["full_name"] == APPLICANT.full_name


def test_progress_is_streamed_without_personal_data(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    documents = bank.put_applicant(bureau={"score": 530})
    asked = graph.stream(application(documents), applicant(), durability="sync", stream_mode="custom", subgraphs=True)
    events = [event for _, event in asked]
    assert [event["progress"] for event in events if "bureau" in event["progress"]] == ["bureau check done"]
    assert "waiting for review" in str(events[-1])
    told = str([*events, question(graph)])
    assert [text for text in PERSONAL if text in told] == []


def test_the_question_to_an_underwriter_and_the_audit_trail_hold_no_personal_data(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    documents = bank.put_applicant(bureau={"score": 530}, payslip="payslip-contradiction")
    apply(graph, documents)
    state = resume(graph, staff(), {**APPROVE, "reason_text": "As agreed."})
    told = str([state["audit_events"], state["case_summary"], bank.backoffice.effects("decision_record")])
    assert [text for text in PERSONAL if text in told] == []


def test_the_state_holds_references_and_entries_but_never_a_document(bank: LoanWorld) -> None:
    state = apply(bank.graph(InMemorySaver()), bank.put_applicant())
    assert "I confirm that what I state" not in str(state)
    assert "PAYSLIP" not in str(state)
    (payslip,) = [message for message in state["calls"] if message.id == "read_document:ap-1-payslip:answered"]
    entries = json.loads(payslip.text)["entries"]
    assert {"label": "Net pay", "value": "4,200.00 EUR"} in entries
    assert len(entries) == 7


@pytest.fixture
def old_rows(tmp_path: Path) -> Iterator[SqliteSaver]:
    """The rows that version 1 of the graph left."""
    store = tmp_path / "v1.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(ROWS.read_text(encoding="utf-8"))
    with SqliteSaver.from_conn_string(str(store)) as saver:
        yield saver


def test_a_case_parked_under_version_1_resumes_under_the_present_version(
    bank: LoanWorld, old_rows: SqliteSaver
) -> None:
    graph = bank.graph(old_rows)
    parked = graph.get_state(applicant("parked-v1"))
    assert parked.values["graph_version"] == 1 < GRAPH_VERSION
    assert {"assignment", "review_due_at", "bureau_version"}.isdisjoint(parked.values)
    assert parked.next == ("review",)
    state = resume(graph, staff("parked-v1"), APPROVE)
    assert (state["final_decision"], state["review"]["reviewer_id"]) == ("approve", "uw-1")
    assert len(bank.backoffice.effects("loan_booking")) == 1


def test_a_case_that_stopped_before_its_end_under_version_1_is_decided_as_it_was_scored(
    bank: LoanWorld, old_rows: SqliteSaver
) -> None:
    state = bank.graph(old_rows).invoke(None, applicant("stopped-v1"), durability="sync")
    assert (state["final_decision"], state["policy_version"]) == ("approve", "2026-10")
    assert bank.backoffice.counters()["effects"] == {"decision_record": 1, "loan_booking": 1}


def test_a_case_parked_inside_the_income_check_under_version_1_goes_on_there(
    bank: LoanWorld, old_rows: SqliteSaver
) -> None:
    graph = bank.graph(old_rows)
    bank.put_applicant(n_statements=2)
    put_statement(bank.backoffice, "extra", "2026-08", statement_lines(APPLICANT, TODAY.replace(month=8)))
    state = resume(graph, applicant("incomplete-v1"), {"statements": ["extra"]})
    assert (state["final_decision"], state["income_result"]["n_months"]) == ("approve", 3)
    assert bank.backoffice.counters()["effects"] == {"decision_record": 1, "loan_booking": 1}, "no second inquiry"
