"""The end of a case: no effect without a decision, the record first, one booking, fresh bureau data only."""

from __future__ import annotations

import copy
import threading
from datetime import datetime
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.backoffice.lending import IDENTITY
from graphs.common.effects import NotProduction, http_client
from graphs.common.outbound import KeyReused
from graphs.common.services import ServiceUnavailable
from graphs.loan_underwriting.finalizing import NoDecision, decision_of, is_stale
from graphs.loan_underwriting.graph import LoanGraph
from graphs.loan_underwriting.policy import load_policies
from graphs.loan_underwriting.services import ServiceAnswerRefused
from graphs.loan_underwriting.state import LoanState, Review
from tests.support.loan import APPLICATION, APPROVE, DECLINE, NOW, LoanWorld, applicant, apply, question, resume, staff

BORDERLINE = {"score": 530}
POLICY = load_policies()["2026-10"]
REVIEW = Review(
    decision="approve",
    reason_code="COMPENSATING_FACTORS",
    reason_text="",
    reviewer_id="uw-1",
    role="underwriter",
    decided_at=NOW,
    bureau_version=1,
)
SCORED: LoanState = {
    "application": APPLICATION,
    "bureau_result": {
        "version": 1,
        "reference": "in_1",
        "found": True,
        "score": 530,
        "open_defaults": 0,
        "n_accounts": 5,
        "monthly_obligations": "0.00",
        "as_of": "2026-11-30",
    },
    "policy_version": "2026-10",
    "indicated": "",
    "hard_stops": [],
    "reason_codes": ["SCORE_BORDERLINE"],
    "route": "review",
}


def _parked(bank: LoanWorld, **asked: Any) -> LoanGraph:
    graph = bank.graph(InMemorySaver())
    apply(graph, bank.put_applicant(bureau=BORDERLINE), **asked)
    return graph


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, "nobody has reviewed the case as it is now"),
        ({"review": {**REVIEW, "reason_code": ""}}, "no known reason: none was given"),
        ({"review": {**REVIEW, "reason_code": "BECAUSE"}}, "no known reason: BECAUSE"),
        ({"review": {**REVIEW, "reviewer_id": ""}}, "nobody decided"),
        ({"review": {**REVIEW, "bureau_version": 0}}, "nobody has reviewed the case as it is now"),
        ({"review": REVIEW, "hard_stops": ["OPEN_DEFAULT"]}, "a hard stop cannot be overridden"),
        ({"review": REVIEW, "application": {**SCORED["application"], "amount": "45000.00"}}, "a second approver"),
        (
            {
                "review": REVIEW,
                "second_review": REVIEW,
                "application": {**SCORED["application"], "amount": "45000.00"},
            },
            "a second approver, who is someone else",
        ),
        ({"route": "finalize"}, "the score indicates no decision"),
        ({"route": "finalize", "indicated": "approve", "reason_codes": []}, "no known reason"),
        ({"route": "finalize", "indicated": "approve", "hard_stops": ["UNDER_AGE"]}, "a hard stop cannot be"),
    ],
)
def test_nothing_is_carried_out_without_a_decision_that_may_stand(change: LoanState, problem: str) -> None:
    with pytest.raises(NoDecision, match=problem):
        decision_of({**SCORED, **change}, POLICY)


def test_an_automatic_decision_names_the_system_and_its_rule(bank: LoanWorld) -> None:
    apply(bank.graph(InMemorySaver()), bank.put_applicant(bureau={"open_defaults": 1}))
    (record,) = bank.backoffice.effects("decision_record")
    assert (record["decision"], record["reviewer"]) == ("decline", "system:score_risk@2026-10")
    assert record["reason_codes"] == ["OPEN_DEFAULT"]
    assert bank.backoffice.effects("loan_booking") == []


def test_finalize_refuses_a_case_whose_review_lost_its_reason_and_books_nothing(bank: LoanWorld) -> None:
    graph = _parked(bank)
    graph.update_state(applicant(), {"review": {**REVIEW, "reason_code": ""}}, as_node="review")
    with pytest.raises(NoDecision, match="no known reason"):
        graph.invoke(None, applicant(), durability="sync")
    assert set(bank.backoffice.counters()["effects"]) == {"inquiry", "review_notice"}


def test_the_record_holds_what_an_auditor_starts_from(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    state = apply(graph, bank.put_applicant())
    (record,) = bank.backoffice.effects("decision_record")
    decided_on = next(each for each in graph.get_state_history(applicant()) if each.next == ("finalize",))
    assert record["checkpoint_id"] == decided_on.config["configurable"]["checkpoint_id"]
    assert (record["case"], record["policy_version"], record["score"], record["route"]) == (
        "t",
        "2026-10",
        750,
        "finalize",
    )
    assert record["bureau_reference"] == bank.backoffice.effects("inquiry")[0]["inquiry_id"]
    assert record["income_reference"] == state["income_result"]["reference"]
    assert state["decision_record_id"] == record["decision_record_id"]
    assert not {"full_name", "birth_date"} & record.keys()


def test_the_record_is_written_before_the_booking_which_carries_its_id(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("error", "POST /loans")
    graph = bank.graph(InMemorySaver())
    with pytest.raises(ServiceUnavailable):
        apply(graph, documents)
    (record,) = bank.backoffice.effects("decision_record")
    bank.backoffice.clear_faults()
    graph.invoke(None, applicant(), durability="sync")
    assert bank.backoffice.effects("decision_record") == [record]
    (booking,) = bank.backoffice.effects("loan_booking")
    assert booking["decision_record_id"] == record["decision_record_id"]
    assert booking["reference"] == "t:loan_booking"


@pytest.mark.parametrize("record_id", [None, "de_000099"])
def test_the_loan_service_rejects_a_booking_without_a_record(bank: LoanWorld, record_id: str | None) -> None:
    body = {"decision_record_id": record_id, "amount": "12000.00"}
    refused = bank.http.post("/loans", json=body, headers={"Idempotency-Key": "k"})
    assert (refused.status_code, refused.json()["error"]) == (422, "a booking needs a decision record")


def test_the_loan_service_rejects_a_booking_that_its_record_does_not_allow(bank: LoanWorld) -> None:
    resume(_parked(bank), staff(), DECLINE)
    record_id = bank.backoffice.effects("decision_record")[0]["decision_record_id"]
    body = {"decision_record_id": record_id, "amount": "12000.00"}
    refused = bank.http.post("/loans", json=body, headers={"Idempotency-Key": "k"})
    assert "does not allow this booking" in refused.json()["error"]


def test_a_decided_case_cannot_be_decided_again(bank: LoanWorld) -> None:
    resume(_parked(bank), staff(), DECLINE)
    again = bank.http.post("/decisions", json={"case": "t", "decision": "approve"}, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["error"].partition(":")[0]) == (422, "the case was decided")


def test_a_booking_whose_answer_was_lost_is_looked_up_when_its_key_was_forgotten(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("drop_answer", "POST /loans", times=1)
    bank.backoffice.add_fault("error", "GET /loans")
    graph = bank.graph(InMemorySaver())
    with pytest.raises(ServiceUnavailable):
        apply(graph, documents)
    assert len(bank.backoffice.effects("loan_booking")) == 1
    bank.backoffice.clear_faults()
    bank.backoffice.expire_keys()
    state = graph.invoke(None, applicant(), durability="sync")
    assert bank.backoffice.counters()["effects"] == {"inquiry": 1, "decision_record": 1, "loan_booking": 1}
    assert state["booking_reference"] == bank.backoffice.effects("loan_booking")[0]["loan_booking_id"]


@pytest.fixture
def workers(bank: LoanWorld) -> tuple[LoanGraph, LoanGraph]:
    """Two workers that have both read the parked thread before either wrote to it."""
    saver = InMemorySaver()
    graph = bank.graph(saver)
    apply(graph, bank.put_applicant(bureau=BORDERLINE))
    return graph, bank.graph(copy.deepcopy(saver))


def test_the_same_resume_twice_books_once(bank: LoanWorld, workers: tuple[LoanGraph, LoanGraph]) -> None:
    first, second = (resume(graph, staff(), APPROVE) for graph in workers)
    assert second["booking_reference"] == first["booking_reference"]
    assert bank.backoffice.counters()["effects"]["decision_record"] == 1
    assert bank.backoffice.counters()["effects"]["loan_booking"] == 1


def test_of_two_different_resumes_one_books_and_the_conflict_is_shown(
    bank: LoanWorld, workers: tuple[LoanGraph, LoanGraph]
) -> None:
    resume(workers[0], staff(), APPROVE)
    with pytest.raises(KeyReused, match="t:decision_record was used for another write_decision_record"):
        resume(workers[1], staff(), DECLINE)
    (record,) = bank.backoffice.effects("decision_record")
    assert record["decision"] == "approve"
    assert len(bank.backoffice.effects("loan_booking")) == 1


def test_of_two_different_resumes_at_the_same_time_one_books(
    bank: LoanWorld, workers: tuple[LoanGraph, LoanGraph]
) -> None:
    outcomes: dict[str, object] = {}
    gate = threading.Barrier(2)

    def resume_with(graph: LoanGraph, raw: dict[str, str]) -> None:
        gate.wait()
        try:
            outcomes[raw["decision"]] = resume(graph, staff(), raw)["final_decision"]
        except (KeyReused, ServiceAnswerRefused) as conflict:
            outcomes[raw["decision"]] = conflict

    answers = (APPROVE, DECLINE)
    threads = [threading.Thread(target=resume_with, args=each) for each in zip(workers, answers, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (record,) = bank.backoffice.effects("decision_record")
    won = record["decision"]
    assert outcomes[won] == won
    assert len(bank.backoffice.effects("loan_booking")) == (won == "approve")
    assert isinstance(outcomes["decline" if won == "approve" else "approve"], (KeyReused, ServiceAnswerRefused))


LATER = "2027-01-05T12:00:00+00:00"


def test_bureau_data_that_grew_old_in_the_queue_is_asked_for_anew_and_scored_and_reviewed_again(
    bank: LoanWorld,
) -> None:
    graph = _parked(bank)
    bank.put_file(**{**BORDERLINE, "score": 540, "as_of": "2027-01-05"})
    state = resume(graph, staff(now=LATER), APPROVE)
    assert (state["bureau_version"], state["bureau_result"]["version"]) == (2, 2)
    inquiries = [inquiry["reference"] for inquiry in bank.backoffice.effects("inquiry")]
    assert inquiries == ["t:bureau_pull:1", "t:bureau_pull:2"]
    assert question(graph)["score"] == 610, "an answer to the old data does not stand for the new"
    (logged,) = [event for event in state["audit_events"] if event["event"] == "bureau data too old"]
    assert logged["detail"] == "as of 2026-11-30, over 30 days: inquiry 2"
    assert bank.backoffice.counters()["by_route"]["GET /statements"] == 3, "the income is not checked again"
    state = resume(graph, staff(now=LATER), APPROVE)
    assert (state["final_decision"], len(bank.backoffice.effects("loan_booking"))) == ("approve", 1)
    assert len(bank.backoffice.effects("review_notice")) == 2


def test_fresh_data_may_decide_the_case_by_itself(bank: LoanWorld) -> None:
    graph = _parked(bank)
    bank.put_file(score=700, as_of="2027-01-05")
    state = resume(graph, staff(now=LATER), DECLINE)
    assert (state["final_decision"], state["route"]) == ("approve", "finalize")
    assert bank.backoffice.effects("decision_record")[0]["reviewer"] == "system:score_risk@2026-10"


def test_a_crash_does_not_raise_the_inquirys_version(bank: LoanWorld) -> None:
    graph = _parked(bank)
    bank.put_file(score=700, as_of="2027-01-05")
    bank.backoffice.add_fault("error", "POST /inquiries")
    with pytest.raises(ServiceUnavailable):
        resume(graph, staff(now=LATER), APPROVE)
    bank.backoffice.clear_faults()
    state = graph.invoke(None, staff(now=LATER), durability="sync")
    assert (state["bureau_version"], len(bank.backoffice.effects("inquiry"))) == (2, 2)


def test_a_bureau_that_only_has_old_data_is_not_asked_for_ever(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    documents = bank.put_applicant(bureau={"as_of": "2026-01-01"})
    with pytest.raises(NoDecision, match="the bureau's data is too old after 3 inquiries"):
        apply(graph, documents)
    assert len(bank.backoffice.effects("inquiry")) == 3
    assert bank.backoffice.effects("decision_record") == []


@pytest.mark.parametrize(("as_of", "stale"), [("2026-10-31", False), ("2026-10-30", True), ("", False)])
def test_data_is_too_old_when_the_policy_says(as_of: str, stale: bool) -> None:
    state: LoanState = {**SCORED, "bureau_result": {**SCORED["bureau_result"], "as_of": as_of}}
    assert is_stale(state, POLICY, datetime.fromisoformat(NOW)) is stale


def test_a_case_keeps_the_policy_it_was_scored_by(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    documents = bank.put_applicant(bureau={"score": 460})
    state = apply(graph, documents, applicant(policy_version="2026-04"))
    assert (state["policy_version"], state["route"]) == ("2026-04", "review")
    bank.put_file(score=460, as_of="2027-01-05")
    state = resume(graph, staff(now="2027-01-20T12:00:00+00:00"), APPROVE)
    assert (state["bureau_version"], state["policy_version"]) == (2, "2026-04"), "it was scored again by the same"
    resume(graph, staff(now="2027-01-20T12:00:00+00:00"), APPROVE)
    assert bank.backoffice.effects("decision_record")[0]["policy_version"] == "2026-04"


def test_scoring_by_another_policy_is_a_deliberate_fork(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    apply(graph, bank.put_applicant(bureau={"score": 555}))
    assert graph.get_state(applicant()).values["route"] == "review"
    before = next(each for each in graph.get_state_history(applicant()) if each.next == ("score_risk",))
    graph.update_state(before.config, {"policy_version": "2026-04"}, as_node="pull_bureau")
    graph.invoke(None, applicant(), interrupt_before=["finalize"], durability="sync")
    rescored = graph.get_state(applicant())
    assert (rescored.values["policy_version"], rescored.values["indicated"]) == ("2026-04", "approve")
    assert rescored.next == ("finalize",)


@pytest.mark.parametrize("env", [{}, {"AGENTCTL_ENV": "staging"}])
def test_tools_with_an_effect_refuse_outside_production(bank: LoanWorld, env: dict[str, str]) -> None:
    with pytest.raises(NotProduction, match="pull_bureau refuses to run"):
        apply(bank.graph(InMemorySaver(), tools=bank.tools(env=env)), bank.put_applicant())
    assert bank.backoffice.counters()["n_effects"] == 0
    assert not (bank.folder / "application.sqlite").exists()


def test_an_effect_from_another_identity_is_refused_and_raises_an_alert(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    with http_client(bank.backoffice.url, identity="loan-agent@debug") as debug:
        graph = bank.graph(InMemorySaver(), tools=bank.tools(http=debug))
        with pytest.raises(ServiceAnswerRefused, match="may cause no effects"):
            apply(graph, documents)
    assert bank.backoffice.counters()["n_effects"] == 0
    assert [(alert["identity"], alert["route"]) for alert in bank.backoffice.alerts()] == [
        ("loan-agent@debug", "POST /inquiries")
    ]


def test_calls_are_counted_by_key_and_by_identity(bank: LoanWorld) -> None:
    resume(_parked(bank), staff(), APPROVE)
    counters = bank.backoffice.counters()
    assert counters["by_identity"] == {IDENTITY: counters["n_calls"]}
    assert counters["by_key"] == {
        "t:bureau_pull:1": 1,
        "t:review_notification:1": 1,
        "t:decision_record": 1,
        "t:loan_booking": 1,
    }
    assert bank.backoffice.alerts() == []
