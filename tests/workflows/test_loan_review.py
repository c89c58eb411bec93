"""The review: who may decide what, two people above the limit, hard stops stay, overrides and delays can be listed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.common.answers import AlreadyAnswered, AnswerClaims, NothingAsked, answer
from graphs.common.effects import application_database
from graphs.common.outbound import OutboundLog
from graphs.common.owners import NotTheOwner, caller_of
from graphs.loan_underwriting.application import claim_answer
from graphs.loan_underwriting.asking import BadAnswer
from graphs.loan_underwriting.graph import LoanGraph
from graphs.loan_underwriting.policy import load_policies
from graphs.loan_underwriting.reports import (
    OverdueReview,
    OverrideRate,
    decision_records,
    overdue_reviews,
    override_rates,
    overrides,
)
from graphs.loan_underwriting.review_answers import Reviewer, is_override, needs_second, read_answer
from graphs.loan_underwriting.state import LoanState
from tests.support.loan import (
    APPLICATION,
    APPROVE,
    DECLINE,
    NOW,
    OPERATIONS,
    REVIEWER,
    SENIOR,
    LoanWorld,
    applicant,
    apply,
    question,
    resume,
    staff,
)

BORDERLINE = {"score": 530}
POLICY = load_policies()["2026-10"]
CASE: LoanState = {
    "owner": {"tenant": "acme", "user_id": "u-1"},
    "application": APPLICATION,
}


def _read(raw: object, *, caller: RunnableConfig | None = None, case: LoanState = CASE, **reviewer: str) -> Any:
    who = caller_of((caller or staff())["configurable"])
    return read_answer(raw, state=case, caller=who, reviewer=Reviewer(**reviewer), policy=POLICY)


def _parked(bank: LoanWorld, thread: str = "t", **asked: Any) -> LoanGraph:
    graph = bank.graph(InMemorySaver())
    apply(graph, bank.put_applicant(bureau=BORDERLINE), applicant(thread), **asked)
    return graph


def _claims(bank: LoanWorld) -> AnswerClaims:
    return AnswerClaims(application_database(bank.database_url))


def test_the_underwriter_is_shown_summary_score_reasons_mismatches_and_deadline(bank: LoanWorld) -> None:
    graph = _parked(bank)
    asked = question(graph)
    assert asked["summary"] == ("12000.00 EUR over 48 months, score 600. The score is between declined and accepted.")
    assert (asked["score"], asked["mismatches"], asked["assigned_to"]) == (600, [], "uw-1")
    assert asked["reason_codes"] == {"SCORE_BORDERLINE": "The score is between declined and accepted."}
    due_at = datetime.fromisoformat(NOW) + timedelta(hours=POLICY.review.due_hours)
    assert asked["due_at"] == due_at.isoformat()
    state = graph.get_state(applicant()).values
    assert state["review_requested_at"] == NOW
    (notice,) = bank.backoffice.effects("review_notice")
    assert (notice["case"], notice["assigned_to"], notice["reference"]) == ("t", "uw-1", "t:review_notification:1")


def test_summary_and_notification_are_nodes_of_their_own_so_that_asking_has_no_effect(bank: LoanWorld) -> None:
    graph = _parked(bank)
    resume(graph, staff(), {"decision": "perhaps"})
    resume(graph, staff(), APPROVE)
    assert len(bank.backoffice.effects("review_notice")) == 1
    assert bank.backoffice.counters()["by_route"]["POST /reviews"] == 1


def test_the_assigned_underwriter_decides_and_the_reviewer_is_who_is_authenticated(bank: LoanWorld) -> None:
    state = resume(_parked(bank), staff(), {**APPROVE, "reason_text": "Long with their employer."})
    review = state["review"]
    assert (review["decision"], review["reviewer_id"], review["role"]) == ("approve", "uw-1", "underwriter")
    assert (review["reason_code"], review["reason_text"]) == ("COMPENSATING_FACTORS", "Long with their employer.")
    (record,) = bank.backoffice.effects("decision_record")
    assert (record["reviewer"], record["second_reviewer"], record["reason_codes"]) == (
        "uw-1",
        None,
        ["COMPENSATING_FACTORS"],
    )
    assert state["booking_reference"] == bank.backoffice.effects("loan_booking")[0]["loan_booking_id"]


def test_a_declined_case_is_recorded_and_not_booked(bank: LoanWorld) -> None:
    state = resume(_parked(bank), staff(), DECLINE)
    assert (state["final_decision"], state["booking_reference"]) == ("decline", "")
    assert bank.backoffice.counters()["effects"] == {"inquiry": 1, "review_notice": 1, "decision_record": 1}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"decision": "perhaps", "reason_code": "SCORE_LOW"}, "decision: Input should be 'approve' or 'decline'"),
        ({"decision": "approve"}, "reason_code: Field required"),
        (
            {"decision": "approve", "reason_code": "BECAUSE"},
            "reason_code: policy 2026-10 does not know BECAUSE; it knows AMOUNT_ABOVE_LIMIT, COMPENSATING_FACTORS",
        ),
        ({**APPROVE, "reviewer_id": "uw-1"}, "reviewer_id: Extra inputs are not permitted"),
        ({**APPROVE, "reason_text": "x" * 501}, "reason_text: String should have at most 500"),
        ("approve", "the answer is an object with decision"),
        (None, "the answer is an object with decision"),
    ],
)
def test_a_malformed_answer_is_told_with_the_reason(raw: object, problem: str) -> None:
    with pytest.raises(BadAnswer) as bad:
        _read(raw)
    assert problem in str(bad.value)


@pytest.mark.parametrize(
    ("caller", "reviewer", "problem"),
    [
        (applicant(), {}, "u-1 as customer may not review"),
        (applicant(**OPERATIONS), {}, "ops-1 as operations may not review"),
        (applicant(actor="u-1", actor_role="underwriter"), {}, "u-1 may not review their own application"),
        (staff(actor="uw-2"), {"assigned": "uw-1"}, "the case is assigned to uw-1, not to uw-2"),
        (staff(), {"not_this": "uw-1"}, "uw-1 decided first: the second approver is someone else"),
        (staff(tenant="globex"), {}, "uw-1 may not act for another tenant or user"),
        (staff(user_id="u-2"), {}, "uw-1 may not act for another tenant or user"),
    ],
)
def test_only_the_assigned_reviewer_with_the_role_may_answer(
    caller: RunnableConfig, reviewer: dict[str, str], problem: str
) -> None:
    with pytest.raises(BadAnswer) as bad:
        _read(APPROVE, caller=caller, **reviewer)
    assert str(bad.value) == problem


@pytest.mark.parametrize(("amount", "may"), [("25000.00", True), ("25000.01", False)])
def test_the_approval_limit_of_the_role_holds(amount: str, may: bool) -> None:
    case: LoanState = {**CASE, "application": {**CASE["application"], "amount": amount}}
    if may:
        assert _read(APPROVE, case=case).decision == "approve"
        return
    with pytest.raises(BadAnswer, match=r"25000.01 is above what underwriter may decide, 25000.00"):
        _read(APPROVE, case=case)


def test_a_hard_stop_cannot_be_overridden_and_can_be_confirmed() -> None:
    stopped: LoanState = {**CASE, "hard_stops": ["OPEN_DEFAULT"]}
    with pytest.raises(BadAnswer, match=r"a hard stop cannot be overridden \(OPEN_DEFAULT\)"):
        _read(APPROVE, case=stopped)
    assert _read(DECLINE, case=stopped).decision == "decline"


def test_a_bad_answer_is_asked_again_and_judged_by_who_gives_the_next(bank: LoanWorld) -> None:
    graph = _parked(bank)
    resume(graph, staff(actor="uw-2"), APPROVE)
    assert question(graph)["problem"] == "the case is assigned to uw-1, not to uw-2"
    assert "final_decision" not in graph.get_state(applicant()).values
    state = resume(graph, staff(), APPROVE)
    assert (state["final_decision"], state["review_problem"]) == ("approve", "")


def test_above_the_limit_a_second_person_who_is_someone_else_decides_too(bank: LoanWorld) -> None:
    graph = _parked(bank, amount="45000.00", term_months=84)
    assert question(graph)["assigned_to"] == "uw-9", "the roster knows who may"
    resume(graph, staff(**SENIOR), APPROVE)
    asked = question(graph)
    assert (asked["kind"], asked["first_decision"]["reviewer_id"]) == ("second_review", "uw-9")
    assert bank.backoffice.effects("loan_booking") == []
    resume(graph, staff(**SENIOR), APPROVE)
    assert question(graph)["problem"] == "uw-9 decided first: the second approver is someone else"
    resume(graph, staff(), APPROVE)
    assert "is above what underwriter may decide" in question(graph)["problem"]
    second = {**APPROVE, "reason_code": "DOCUMENTS_EXPLAINED"}
    resume(graph, staff(actor="uw-8", actor_role="senior_underwriter"), second)
    (record,) = bank.backoffice.effects("decision_record")
    assert (record["reviewer"], record["second_reviewer"]) == ("uw-9", "uw-8")
    assert record["reason_codes"] == ["COMPENSATING_FACTORS", "DOCUMENTS_EXPLAINED"]
    assert len(bank.backoffice.effects("loan_booking")) == 1


def test_where_the_second_person_disagrees_the_case_is_declined_by_their_reason(bank: LoanWorld) -> None:
    graph = _parked(bank, amount="45000.00", term_months=84)
    resume(graph, staff(**SENIOR), APPROVE)
    state = resume(graph, staff(actor="uw-8", actor_role="senior_underwriter"), DECLINE)
    assert (state["final_decision"], bank.backoffice.effects("loan_booking")) == ("decline", [])
    assert bank.backoffice.effects("decision_record")[0]["reason_codes"] == ["UNEXPLAINED_CONFLICT"]


@pytest.mark.parametrize(
    ("decision", "amount", "second"),
    [("approve", "40000.00", False), ("approve", "40000.01", True), ("decline", "90000.00", False)],
)
def test_two_people_are_needed_for_an_approval_above_the_limit(decision: str, amount: str, second: bool) -> None:
    assert needs_second(decision, Decimal(amount), POLICY) is second


@pytest.mark.parametrize(
    ("decision", "indicated", "override"),
    [("approve", "decline", True), ("decline", "approve", True), ("approve", "approve", False), ("decline", "", False)],
)
def test_an_override_is_a_decision_against_what_the_score_says(decision: str, indicated: str, override: bool) -> None:
    assert is_override(decision, indicated) is override


def test_overrides_are_recorded_against_score_and_route_and_their_rates_listed(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    good, poor = bank.put_applicant(), bank.put_applicant(pay=None, payslip="payslip-poor-scan")
    apply(graph, good, applicant("automatic"), segment="consumer")
    for thread, answered, segment in (("a", APPROVE, "consumer"), ("b", DECLINE, "consumer"), ("c", DECLINE, "car")):
        state = apply(graph, poor, applicant(thread), segment=segment)
        assert (state["route"], state["indicated"]) == ("review", "approve")
        resume(graph, staff(thread), answered)
    records = decision_records(bank.http)
    assert [(record["case"], record["score"], record["route"]) for record in overrides(records)] == [
        ("b", 750, "review"),
        ("c", 750, "review"),
    ]
    assert override_rates(records, "reviewer") == [OverrideRate("uw-1", 3, 2)]
    by_segment = override_rates(records, "segment")
    assert by_segment == [OverrideRate("car", 1, 1), OverrideRate("consumer", 2, 1)]
    assert [rate.rate for rate in by_segment] == [1.0, 0.5]


def test_overdue_reviews_are_listed_and_decided_ones_are_not(bank: LoanWorld) -> None:
    graph, documents = bank.graph(InMemorySaver()), bank.put_applicant(bureau=BORDERLINE)
    for thread, now in (("late", NOW), ("decided", NOW), ("fresh", "2026-12-02T11:00:00+00:00")):
        apply(graph, documents, applicant(thread, now=now))
    resume(graph, staff("decided"), APPROVE)
    log = OutboundLog(application_database(bank.database_url))
    due_at = datetime(2026, 12, 2, 12, tzinfo=UTC)
    assert overdue_reviews(graph, log, due_at) == []
    assert overdue_reviews(graph, log, due_at + timedelta(minutes=1)) == [
        OverdueReview(thread="late", waits_at="review", due_at=due_at, assigned_to="uw-1")
    ]


def test_a_thread_that_does_not_wait_for_a_review_takes_no_decision(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    apply(graph, bank.put_applicant())
    with pytest.raises(NothingAsked):
        answer(graph, staff(), DECLINE, claims=_claims(bank))
    assert len(bank.backoffice.effects("decision_record")) == 1


def test_someone_elses_case_cannot_be_answered(bank: LoanWorld) -> None:
    graph = _parked(bank)
    with pytest.raises(NotTheOwner):
        answer(graph, staff(tenant="globex"), APPROVE, claims=_claims(bank))
    assert graph.get_state(applicant()).next == ("review",)


def test_of_two_decisions_the_first_wins_and_the_other_is_told_by_whom(bank: LoanWorld) -> None:
    graph, claims = _parked(bank), _claims(bank)
    (asked,) = graph.get_state(applicant()).interrupts
    answer(graph, staff(), APPROVE, claims=claims, asked=asked.id)
    with pytest.raises(AlreadyAnswered, match="t was answered by uw-1") as refused:
        answer(graph, staff(**SENIOR), DECLINE, claims=claims, asked=asked.id)
    assert refused.value.winner == "uw-1"
    assert bank.backoffice.counters()["effects"]["loan_booking"] == 1


def test_a_program_that_answers_claims_the_question_first(bank: LoanWorld) -> None:
    env = {"LOAN_DATABASE_URL": bank.database_url}
    claim_answer("t", "q-1", APPROVE, {"thread_id": "t", **REVIEWER}, env)
    with pytest.raises(AlreadyAnswered, match="uw-1"):
        claim_answer("t", "q-1", DECLINE, {"thread_id": "t", **SENIOR}, env)
