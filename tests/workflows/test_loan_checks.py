"""Bureau and income: one super-step, two owners, each result kept when the other fails; one inquiry under any fault."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from fixtures.backoffice.lending import IDENTITY, put_employer, put_statement
from fixtures.documents.loan import statement_lines
from graphs.common.effects import application_database, http_client
from graphs.common.outbound import OutboundLog
from graphs.common.owners import NotTheOwner
from graphs.common.services import CircuitBreaker, CircuitOpen, ServiceUnavailable
from graphs.loan_underwriting.graph import LoanGraph
from graphs.loan_underwriting.income import matching
from graphs.loan_underwriting.policy import load_policies
from graphs.loan_underwriting.services import ServiceAnswerRefused
from tests.support.loan import APPLICANT, OPERATIONS, TODAY, LoanWorld, applicant, apply, question, resume

RULES = load_policies()["2026-10"].income


def _pending(graph: LoanGraph) -> dict[str, bool]:
    """The tasks of the step that is open, and whether each has a result."""
    return {task.name: task.result is not None for task in graph.get_state(applicant()).tasks}


def _events(state: dict[str, Any]) -> list[str]:
    return [event["event"] for event in state["audit_events"]]


def test_both_checks_run_in_one_super_step_and_score_once_after_it(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    state = apply(graph, bank.put_applicant())
    steps = [checkpoint.next for checkpoint in graph.get_state_history(applicant())]
    assert ("pull_bureau", "verify_income") in steps
    assert steps.count(("score_risk",)) == 1
    assert state["bureau_result"]["reference"] == "in_000001"
    assert state["income_result"]["status"] == "verified"
    assert {"bureau asked", "income checked"} <= set(_events(state)), "audit events are gathered from both"


def test_calls_of_the_income_check_stay_in_its_namespace(bank: LoanWorld) -> None:
    saver = InMemorySaver()
    graph = bank.graph(saver)
    state = apply(graph, bank.put_applicant())
    assert {message.name for message in state["calls"] if message.type == "tool"} == {
        "read_document",
        "pull_bureau",
        "write_decision_record",
        "book_loan",
    }
    namespaces = {entry.config["configurable"]["checkpoint_ns"].partition(":")[0] for entry in saver.list(applicant())}
    assert namespaces == {"", "verify_income"}


def test_when_the_bureau_is_down_the_income_result_is_kept_and_not_asked_for_again(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("error", "POST /inquiries")
    graph = bank.graph(InMemorySaver())
    with pytest.raises(ServiceUnavailable, match="inquiries: HTTP 503"):
        apply(graph, documents)
    assert bank.backoffice.counters()["by_route"]["POST /inquiries"] == 3, "three attempts of the node"
    assert _pending(graph) == {"pull_bureau": False, "verify_income": True}
    with pytest.raises(NotTheOwner):
        graph.invoke(None, applicant(user_id="u-2"), durability="sync")
    n_statements = bank.backoffice.counters()["by_route"]["GET /statements"]
    bank.backoffice.clear_faults()
    state = graph.invoke(None, applicant(), durability="sync")
    assert state["final_decision"] == "approve"
    assert bank.backoffice.counters()["by_route"]["GET /statements"] == n_statements == 3
    assert _events(state).count("income checked") == 1


def test_when_the_income_check_fails_the_bureau_is_not_asked_again(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("error", "GET /employers")
    graph = bank.graph(InMemorySaver())
    with pytest.raises(ServiceUnavailable, match="employers: HTTP 503"):
        apply(graph, documents)
    assert _pending(graph) == {"pull_bureau": True, "verify_income": False}
    bank.backoffice.clear_faults()
    state = graph.invoke(None, applicant(), durability="sync")
    assert state["final_decision"] == "approve"
    routes = bank.backoffice.counters()["by_route"]
    assert (routes["POST /inquiries"], routes["GET /statements"]) == (1, 3), "what the check had fetched was kept too"


def test_a_bureau_that_answers_after_the_timeout_is_asked_once(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("delay", "POST /inquiries", seconds=0.6, times=1)
    with http_client(bank.backoffice.url, identity=IDENTITY, timeout_s=0.2) as impatient:
        state = apply(bank.graph(InMemorySaver(), tools=bank.tools(http=impatient)), documents)
    assert state["final_decision"] == "approve"
    inquiries = bank.backoffice.effects("inquiry")
    assert [inquiry["reference"] for inquiry in inquiries] == ["t:bureau_pull:1"]


def test_an_inquiry_whose_answer_was_lost_is_looked_up_when_the_bureau_has_forgotten_its_key(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("drop_answer", "POST /inquiries", times=1)
    bank.backoffice.add_fault("error", "GET /inquiries")
    graph = bank.graph(InMemorySaver())
    with pytest.raises(ServiceUnavailable):
        apply(graph, documents)
    bank.backoffice.clear_faults()
    bank.backoffice.expire_keys()
    state = graph.invoke(None, applicant(), durability="sync")
    assert state["bureau_result"]["reference"] == bank.backoffice.effects("inquiry")[0]["inquiry_id"]
    assert len(bank.backoffice.effects("inquiry")) == 1
    assert bank.backoffice.counters()["by_route"]["POST /inquiries"] == 1, "looked up, not repeated"


def test_the_row_of_an_inquiry_is_written_before_it_is_made(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("error", "POST /inquiries")
    with pytest.raises(ServiceUnavailable):
        apply(bank.graph(InMemorySaver()), documents)
    (row,) = OutboundLog(application_database(bank.database_url)).rows("t")
    assert (row["request_key"], row["operation"], row["status"]) == ("t:bureau_pull:1", "pull_bureau", "started")


def test_a_refusal_is_not_tried_again(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("error", "POST /inquiries", status=422)
    with pytest.raises(ServiceAnswerRefused, match="pull_bureau: inquiries refused"):
        apply(bank.graph(InMemorySaver()), documents)
    assert bank.backoffice.counters()["by_route"]["POST /inquiries"] == 1


@pytest.mark.parametrize("wrong", [{"score": -1}, {"score": "high"}, {"as_of": None}, {"monthly_obligations": "-3"}])
def test_a_bureau_answer_that_cannot_be_right_stops_the_run_at_once(bank: LoanWorld, wrong: dict[str, Any]) -> None:
    documents = bank.put_applicant(bureau=wrong)
    with pytest.raises(ServiceAnswerRefused, match="pull_bureau gave an answer that cannot be right"):
        apply(bank.graph(InMemorySaver()), documents)
    assert bank.backoffice.counters()["by_route"]["POST /inquiries"] == 1


def test_an_open_breaker_spares_the_bureau_further_calls_and_other_services_go_on(bank: LoanWorld) -> None:
    documents, seconds = bank.put_applicant(), [0.0]
    tools = bank.tools(breaker=lambda: CircuitBreaker(threshold=2, cooldown_s=30.0, clock=lambda: seconds[0]))
    bank.backoffice.add_fault("error", "POST /inquiries")
    graph = bank.graph(InMemorySaver(), tools=tools)
    for thread in ("t", "other"):
        with pytest.raises(CircuitOpen):
            apply(graph, documents, applicant(thread))
    assert bank.backoffice.counters()["by_route"]["POST /inquiries"] == 2
    assert _pending(graph)["verify_income"], "statements were fetched all the same"
    bank.backoffice.clear_faults()
    seconds[0] = 31.0
    assert graph.invoke(None, applicant(), durability="sync")["final_decision"] == "approve"


def test_no_file_at_the_bureau_is_a_thin_file(bank: LoanWorld) -> None:
    state = apply(bank.graph(InMemorySaver()), bank.put_applicant(), applicant_id="nobody-knows")
    assert (state["bureau_result"]["found"], state["bureau_result"]["as_of"]) == (False, "")
    assert (state["route"], "THIN_FILE" in state["reason_codes"]) == ("review", True)


@pytest.fixture
def parked(bank: LoanWorld) -> LoanGraph:
    """A case whose income check waits for a statement: there are two of three."""
    graph = bank.graph(InMemorySaver())
    apply(graph, bank.put_applicant(n_statements=2))
    return graph


def test_a_missing_statement_pauses_the_case_and_keeps_the_bureaus_answer(bank: LoanWorld, parked: LoanGraph) -> None:
    asked = question(parked)
    assert (asked["kind"], asked["missing"]) == ("request_statements", ["1 more months"])
    assert _pending(parked) == {"pull_bureau": True, "verify_income": False}
    put_statement(bank.backoffice, "extra", "2026-08", statement_lines(APPLICANT, TODAY.replace(month=8)))
    state = resume(parked, applicant(), {"statements": ["extra"]})
    assert state["final_decision"] == "approve"
    assert state["income_result"]["n_months"] == 3
    routes = bank.backoffice.counters()["by_route"]
    assert (routes["POST /inquiries"], routes["GET /statements"]) == (1, 3)


def test_bad_answers_about_statements_are_asked_again(parked: LoanGraph) -> None:
    wrong: Sequence[tuple[dict[str, str], object, str]] = (
        ({}, {"unavailable": True}, "u-1 as customer may not end the request"),
        ({}, {"statements": [], "unavailable": False}, "gives statements, or says"),
        ({"user_id": "u-2"}, {"statements": ["x"]}, "may not act for another tenant or user"),
        ({}, "none", "the answer"),
    )
    for caller, answer, problem in wrong:
        resume(parked, applicant(**caller), answer)
        assert problem in question(parked)["problem"]


def test_a_statement_that_is_not_there_is_asked_for_again(parked: LoanGraph) -> None:
    resume(parked, applicant(), {"statements": ["nowhere"]})
    asked = question(parked)
    assert asked["missing"] == ["1 more months", "nowhere: statements refused: there is no such statement"]
    assert asked["problem"] == ""


def test_operations_may_end_the_request_and_the_income_stays_unverified(parked: LoanGraph) -> None:
    state = resume(parked, applicant(**OPERATIONS), {"unavailable": True})
    assert (state["income_result"]["status"], state["route"]) == ("unverified", "review")
    assert "INCOME_UNVERIFIED" in state["reason_codes"]


def test_statements_that_show_less_than_was_declared_are_a_mismatch(bank: LoanWorld) -> None:
    state = apply(bank.graph(InMemorySaver()), bank.put_applicant(pay=Decimal("3000.00")))
    assert (state["income_result"]["status"], state["income_result"]["monthly"]) == ("mismatch", "3000.00")
    assert (state["route"], state["reason_codes"]) == ("review", ["INCOME_MISMATCH"])


def test_an_employer_that_was_verified_is_remembered_and_not_looked_up_again(bank: LoanWorld) -> None:
    memory, documents = InMemoryStore(), bank.put_applicant()
    graph = bank.graph(InMemorySaver(), memory=memory)
    first = apply(graph, documents)
    (item,) = memory.search(("employers", "E1001"))
    assert item.value == {
        "name": "Nordwind Logistik GmbH",
        "payroll_names": ["NORDWIND LOGISTIK"],
        "verified_on": TODAY.isoformat(),
    }
    second = apply(graph, documents, applicant("second"))
    assert [state["income_result"]["employer_from"] for state in (first, second)] == ["register", "memory"]
    assert bank.backoffice.counters()["by_route"]["GET /employers"] == 1
    assert APPLICANT.full_name not in str(item.value)


def test_an_employer_that_did_not_bear_the_income_out_is_not_remembered(bank: LoanWorld) -> None:
    memory = InMemoryStore()
    apply(bank.graph(InMemorySaver(), memory=memory), bank.put_applicant(pay=Decimal("3000.00")))
    assert memory.search(("employers",)) == []


def test_a_wrong_remembered_employer_makes_a_mismatch(bank: LoanWorld) -> None:
    memory = InMemoryStore()
    memory.put(("employers", "E1001"), "payroll", {"name": "Südwind", "payroll_names": ["SUEDWIND"]})
    state = apply(bank.graph(InMemorySaver(), memory=memory), bank.put_applicant())
    assert (state["income_result"]["status"], state["income_result"]["employer_from"]) == ("mismatch", "memory")


def test_an_employer_that_nobody_knows_leaves_the_income_unproven(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    put_employer(bank.backoffice, {"employer_id": "E1001", "name": "x", "payroll_names": []})
    assert apply(bank.graph(InMemorySaver()), documents)["income_result"]["status"] == "mismatch"


def test_statement_lines_are_read_as_credits_and_matched_by_the_payers_name() -> None:
    lines = ["2026-10-27 CR 4200.00 Nordwind  Logistik SALARY", "2026-10-28 DR 10.00 NORDWIND LOGISTIK", "CR 9", ""]
    credits = matching.credits_of([{"statement_id": "s", "month": "2026-10", "lines": lines}])
    assert credits == {"2026-10": [{"day": "2026-10-27", "amount": "4200.00", "payer": "Nordwind  Logistik SALARY"}]}
    assert matching.monthly_pay(credits, ["NORDWIND LOGISTIK"]) == {"2026-10": Decimal("4200.00")}
    assert matching.monthly_pay(credits, ["", " "]) == {"2026-10": Decimal("0.00")}


@pytest.mark.parametrize(
    ("months", "status"),
    [
        (["3780.00"] * 3, "verified"),
        (["4200.00", "3779.99", "4200.00"], "mismatch"),
        (["4200.00", "0.00", "4200.00"], "mismatch"),
        (["4200.00"] * 2, "unverified"),
        ([], "unverified"),
    ],
)
def test_income_is_borne_out_by_its_lowest_month(months: list[str], status: str) -> None:
    pay = {f"2026-{number:02}": Decimal(amount) for number, amount in enumerate(months, 1)}
    assert matching.judge(pay, Decimal("4200.00"), RULES)[0] == status
