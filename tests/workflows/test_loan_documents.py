"""Documents: read side by side, merged, validated, read again, asked for; doubts are flags and never values."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentctl.testing import ScriptedModel, Turn
from fixtures.backoffice.lending import put_document
from fixtures.documents.loan import document_text
from graphs.common.answers import Graph
from graphs.common.owners import caller_of
from graphs.loan_underwriting import fields
from graphs.loan_underwriting.asking import BadAnswer
from graphs.loan_underwriting.inputs import read_answer
from graphs.loan_underwriting.intake import AttemptExists
from graphs.loan_underwriting.model import make_model
from graphs.loan_underwriting.policy import load_policies
from graphs.loan_underwriting.script import loan_script
from graphs.loan_underwriting.state import Candidate, DocumentKind, Extraction
from tests.support.loan import APPLICANT, OPERATIONS, TODAY, LoanWorld, applicant, application, apply, question, resume

RULES = load_policies()["2026-10"].extraction
MONTH = TODAY.replace(month=10, day=1)


def _reading(kind: DocumentKind, attempt: int = 1, **values: str | tuple[str, float]) -> Extraction:
    """A reading of a document of that kind; values are read with confidence 0.97 unless said otherwise."""
    pairs = {name: (value, 0.97) if isinstance(value, str) else value for name, value in values.items()}
    return Extraction(
        document_id=f"doc-{kind}",
        kind=kind,
        attempt=attempt,
        fields={name: Candidate(value=value, confidence=confidence) for name, (value, confidence) in pairs.items()},
        inconsistencies=[],
        problem="",
    )


IDENTITY = _reading("identity", full_name="Jana Roth", birth_date="1989-03-14", id_last4="4821")
PAYSLIP = _reading("payslip", full_name="Jana Roth", employer_id="E1001", monthly_income="4200.00", currency="EUR")


def _errors(merged: fields.Merged) -> dict[str, str]:
    return {error["field"]: error["problem"] for error in merged.errors}


def test_values_that_agree_are_taken_without_a_flag() -> None:
    form = _reading("application_form", full_name="JANA  Röth", monthly_income="4100.00")
    merged = fields.merge([form, PAYSLIP, IDENTITY], {}, RULES)
    assert (merged.flags, merged.errors) == ([], [])
    assert merged.fields["full_name"] == "Jana Roth", "the identity card has most authority"
    assert merged.fields["monthly_income"] == "4200.00", "4100.00 is within 5 %"


def test_the_order_in_which_readings_came_in_does_not_matter() -> None:
    form = _reading("application_form", monthly_income="9000.00", birth_date="1990-01-01")
    readings = [form, PAYSLIP, IDENTITY]
    assert fields.merge(readings, {}, RULES) == fields.merge(readings[::-1], {}, RULES)


def test_values_that_contradict_are_flagged_and_the_document_with_more_authority_wins() -> None:
    form = _reading("application_form", monthly_income="9000.00", birth_date="1998-03-14")
    merged = fields.merge([form, PAYSLIP, IDENTITY], {}, RULES)
    assert merged.flags == ["conflict:birth_date", "conflict:monthly_income"]
    assert (merged.fields["monthly_income"], merged.fields["birth_date"]) == ("4200.00", "1989-03-14")
    assert merged.errors == []


def test_a_field_read_with_little_confidence_is_flagged_and_with_less_it_is_no_value() -> None:
    doubtful = _reading("payslip", employer_id="E1001", monthly_income=("4200.00", 0.7), currency="EUR")
    merged = fields.merge([IDENTITY, doubtful], {}, RULES)
    assert (merged.flags, merged.fields["monthly_income"]) == (["low_confidence:monthly_income"], "4200.00")
    illegible = _reading("payslip", employer_id="E1001", monthly_income=("4200.00", 0.4), currency="EUR")
    merged = fields.merge([IDENTITY, illegible], {}, RULES)
    assert merged.fields["monthly_income"] is None
    assert _errors(merged) == {"monthly_income": "only read with confidence 0.40"}


def test_a_document_does_not_speak_on_what_it_has_no_authority_on() -> None:
    merged = fields.merge([_reading("identity", monthly_income="99000.00"), PAYSLIP], {}, RULES)
    assert (merged.fields["monthly_income"], merged.flags) == ("4200.00", [])


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("birth_date", "14.03.1989", "valid date"),
        ("id_last4", "48", "match pattern"),
        ("employer_id", "Nordwind", "match pattern"),
        ("monthly_income", "a lot", "valid decimal"),
        ("monthly_income", "-4200.00", "greater than 0"),
        ("currency", "euros", "match pattern"),
        ("full_name", "J", "at least 2 characters"),
    ],
)
def test_a_value_that_does_not_fit_the_schema_is_an_error_that_names_its_field(
    field: str, value: str, problem: str
) -> None:
    readings = [
        {**each, "fields": {**each["fields"], field: Candidate(value=value, confidence=0.97)}}
        for each in (IDENTITY, PAYSLIP)
    ]
    merged = fields.merge(readings, {}, RULES)  # type: ignore[arg-type]
    assert list(_errors(merged)) == [field]
    assert problem in _errors(merged)[field]
    assert merged.fields[field] is None


def test_only_the_latest_reading_of_a_document_counts() -> None:
    again = {
        **PAYSLIP,
        "attempt": 2,
        "fields": {**PAYSLIP["fields"], "monthly_income": Candidate(value="4300.00", confidence=0.97)},
    }
    merged = fields.merge([again, PAYSLIP, IDENTITY], {}, RULES)  # type: ignore[list-item]
    assert (merged.fields["monthly_income"], merged.flags) == ("4300.00", [])


def test_what_operations_enter_stands_above_all_documents_and_raises_no_flag() -> None:
    form = _reading("application_form", monthly_income="9000.00")
    merged = fields.merge([form, PAYSLIP, IDENTITY], {"monthly_income": "4250.00"}, RULES)
    assert (merged.fields["monthly_income"], merged.flags) == ("4250.00", [])


def test_each_document_is_read_in_a_task_of_its_own_and_only_references_are_sent(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    apply(graph, bank.put_applicant())
    planned = next(state for state in graph.get_state_history(applicant()) if "extract_document" in state.next)
    assert planned.next == ("extract_document",) * 3
    sent = [name for name in planned.values if name in ("extractions", "calls") and planned.values[name]]
    assert sent == []
    read = graph.get_state(applicant()).values["extractions"]
    assert {entry["kind"] for entry in read} == {"application_form", "identity", "payslip"}
    assert bank.backoffice.counters()["by_route"]["GET /documents"] == 3


def test_one_document_that_cannot_be_had_does_not_have_the_others_read_again(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    bank.backoffice.add_fault("error", "GET /documents", subject="ap-1-payslip")
    graph = bank.graph(InMemorySaver())
    with pytest.raises(Exception, match="documents: HTTP 503"):
        apply(graph, documents)
    assert bank.backoffice.counters()["by_route"]["GET /documents"] == 5, "two, and three attempts at the payslip"
    bank.backoffice.clear_faults()
    state = graph.invoke(None, applicant(), durability="sync")
    assert state["final_decision"] == "approve"
    assert bank.backoffice.counters()["by_route"]["GET /documents"] == 6


class _Tired:
    """Reads every document, but fails to find the income in the first so many readings of the payslip."""

    def __init__(self, n_failures: int) -> None:
        self.n_failures = n_failures
        self.n_readings = 0
        self.told: list[str] = []

    def __call__(self, turn: Turn) -> AIMessage:
        answer = loan_script(turn)
        if turn.tools != ("DocumentReading",) or "of kind payslip" not in turn.messages[-1].text:
            return answer
        self.n_readings += 1
        self.told.append(turn.messages[-1].text.rpartition("DOCUMENT>>>")[2].strip())
        if self.n_readings > self.n_failures:
            return answer
        reading = answer.tool_calls[0]["args"]
        kept = [entry for entry in reading["fields"] if entry["field"] != "employer_id"]
        return AIMessage("", tool_calls=[turn.call("DocumentReading", {**reading, "fields": kept})])


def _without_employer_number(bank: LoanWorld) -> list[dict[str, str]]:
    """Documents of which only the payslip states the employer's number."""
    documents = bank.put_applicant()
    text = document_text("application_form", APPLICANT, month=MONTH).replace("Employer number: E1001\n", "")
    put_document(bank.backoffice, "ap-1-application_form", "application_form", text)
    return documents


def test_a_missing_field_is_looked_for_again_in_the_documents_that_can_state_it(bank: LoanWorld) -> None:
    tired = _Tired(2)
    state = apply(bank.graph(InMemorySaver(), model=ScriptedModel(script=tired)), _without_employer_number(bank))
    assert state["final_decision"] == "approve"
    attempts = {entry["document_id"]: 0 for entry in state["extractions"]}
    for entry in state["extractions"]:
        attempts[entry["document_id"]] += 1
    assert attempts == {"ap-1-application_form": 3, "ap-1-identity": 1, "ap-1-payslip": 3}
    assert tired.told == ["", *["An earlier reading had this problem: employer_id: not found in any document"] * 2]


def test_after_two_retries_documents_are_asked_for_naming_the_field(bank: LoanWorld) -> None:
    tired = _Tired(9)
    graph = bank.graph(InMemorySaver(), model=ScriptedModel(script=tired))
    state = apply(graph, _without_employer_number(bank))
    assert tired.n_readings == 3
    assert graph.get_state(applicant()).next == ("request_documents",)
    assert question(graph)["missing"] == [{"field": "employer_id", "problem": "not found in any document"}]
    assert state["validation_errors"] == question(graph)["missing"]
    assert "risk_score" not in state
    assert bank.backoffice.counters()["n_effects"] == 0, "nothing invalid reaches the bureau or the score"


@pytest.fixture
def asking(bank: LoanWorld) -> Graph:
    """A case that waits for documents: its payslip is illegible and the form says nothing of income."""
    documents = bank.put_applicant(payslip="payslip-illegible")
    text = document_text("application_form", APPLICANT, month=MONTH)
    put_document(bank.backoffice, "ap-1-application_form", "application_form", text.partition("Monthly net income")[0])
    graph = bank.graph(InMemorySaver())
    apply(graph, documents)
    return graph


def test_new_documents_are_read_and_the_case_goes_on(bank: LoanWorld, asking: Graph) -> None:
    assert question(asking)["missing"][0] == {"field": "monthly_income", "problem": "only read with confidence 0.40"}
    put_document(bank.backoffice, "better", "payslip", document_text("payslip", APPLICANT, month=MONTH))
    n_read = bank.backoffice.counters()["by_route"]["GET /documents"]
    state = resume(asking, applicant(), {"documents": [{"document_id": "better", "kind": "payslip"}]})
    assert state["final_decision"] == "approve"
    assert state["extracted_fields"]["monthly_income"] == "4200.00"
    assert bank.backoffice.counters()["by_route"]["GET /documents"] == n_read + 1, "only the new one is read"


def test_operations_may_enter_fields_by_hand(asking: Graph) -> None:
    entered = {"fields": {"monthly_income": "4200", "currency": "EUR"}}
    state = resume(asking, applicant(**OPERATIONS), entered)
    assert state["final_decision"] == "approve"
    assert state["manual_fields"] == {"monthly_income": "4200.00", "currency": "EUR"}
    (event,) = [event for event in state["audit_events"] if event["event"] == "documents supplied"]
    assert event["detail"] == "by ops-1: monthly_income, currency"


@pytest.mark.parametrize(
    ("caller", "answer", "problem"),
    [
        ({}, {"fields": {"monthly_income": "9000.00"}}, "u-1 as customer may not enter fields"),
        (OPERATIONS, {"fields": {"salary": "9000.00"}}, "fields.salary: there is no such field"),
        (OPERATIONS, {"fields": {"monthly_income": "lots"}}, "fields.monthly_income: Input should be a valid decimal"),
        ({}, {"documents": [{"document_id": "x", "kind": "poem"}]}, "documents: kind: Input should be"),
        ({}, {"documents": [{"document_id": "ap-1-payslip", "kind": "payslip"}]}, "ap-1-payslip is there already"),
        ({}, {}, "neither a document nor a field"),
        ({}, "here you are", "the answer is an object"),
        ({}, None, "the answer is an object"),
        ({"user_id": "u-2"}, {"documents": [{"document_id": "x", "kind": "payslip"}]}, "may not act for another"),
    ],
)
def test_a_bad_answer_is_told_with_the_reason(caller: dict[str, str], answer: Any, problem: str) -> None:
    with pytest.raises(BadAnswer) as bad:
        read_answer(
            answer,
            caller=caller_of(applicant(**caller)["configurable"]),
            owner={"tenant": "acme", "user_id": "u-1"},
            known=[{"document_id": "ap-1-payslip", "kind": "payslip"}],
        )
    assert problem in str(bad.value)


def test_a_bad_answer_is_asked_again_with_the_reason(asking: Graph) -> None:
    for answer, problem in (({}, "neither a document nor a field"), (None, "the answer is an object")):
        resume(asking, applicant(), answer)
        assert asking.get_state(applicant()).next == ("request_documents",)
        assert problem in question(asking)["problem"]
    state = resume(asking, applicant(**OPERATIONS), {"fields": {"monthly_income": "4200", "currency": "EUR"}})
    assert state["final_decision"] == "approve"


def test_conflicting_documents_go_to_a_person_with_the_flag_shown(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    claims_more = replace(APPLICANT, monthly_income=Decimal("6000.00"))
    text = document_text("application_form", claims_more, month=MONTH)
    put_document(bank.backoffice, "ap-1-application_form", "application_form", text)
    graph = bank.graph(InMemorySaver())
    state = apply(graph, documents)
    assert (state["route"], state["indicated"], state["reason_codes"]) == ("review", "approve", ["DOCUMENTS_CONFLICT"])
    assert question(graph)["mismatches"] == ["conflict:monthly_income"]
    assert "6000" not in str(question(graph)), "values are looked up by reference"


@pytest.mark.parametrize(
    ("payslip", "flag", "code"),
    [
        ("payslip-poor-scan", "low_confidence:monthly_income", "DOCUMENTS_UNCLEAR"),
        ("payslip-contradiction", "inconsistent:ap-1-payslip", "DOCUMENT_INCONSISTENT"),
    ],
)
def test_doubtful_documents_go_to_a_person(bank: LoanWorld, payslip: str, flag: str, code: str) -> None:
    state = apply(bank.graph(InMemorySaver()), bank.put_applicant(payslip=payslip))
    assert flag in state["flags"]
    assert (state["route"], code in state["reason_codes"]) == ("review", True)


def test_instructions_in_a_document_change_nothing(bank: LoanWorld) -> None:
    graph = bank.graph(InMemorySaver())
    plain = apply(graph, bank.put_applicant(payslip="payslip"), applicant("plain"))
    injected = apply(graph, bank.put_applicant(payslip="payslip-injected"), applicant("injected"))
    unlike = {name for name in plain if plain[name] != injected.get(name)}
    assert unlike == {
        "calls",
        "bureau_result",
        "decision_record_id",
        "booking_reference",
        "audit_events",
    }
    assert injected["extracted_fields"] == plain["extracted_fields"]
    assert injected["extractions"] == plain["extractions"]
    assert bank.backoffice.counters()["effects"] == {"inquiry": 2, "decision_record": 2, "loan_booking": 2}


def test_a_model_that_does_what_a_document_says_is_held_by_the_schema(bank: LoanWorld) -> None:
    def obedient(turn: Turn) -> AIMessage:
        if "approval mode" in turn.messages[-1].text:
            return AIMessage("", tool_calls=[turn.call("DocumentReading", {"decision": "approve", "fields": []})])
        return loan_script(turn)

    documents = bank.put_applicant(payslip="payslip-injected")
    graph = bank.graph(InMemorySaver(), model=ScriptedModel(script=obedient))
    state = apply(graph, documents)
    problems = {entry["problem"] for entry in state["extractions"] if entry["kind"] == "payslip"}
    assert problems == {"the reading does not fit: decision: Extra inputs are not permitted"}
    assert state["extracted_fields"]["monthly_income"] == "4200.00", "the form states it too"


def test_a_document_with_too_many_entries_is_not_cut_but_reported(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    put_document(bank.backoffice, "ap-1-identity", "identity", "Name: Jana Roth\n" * 600)
    graph = bank.graph(InMemorySaver())
    apply(graph, documents)
    (problem,) = {entry["problem"] for entry in graph.get_state(applicant()).values["extractions"] if entry["problem"]}
    assert problem.startswith("not recognised: entries")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"amount": "12000"}, "application.amount"),
        ({"term_months": 0}, "application.term_months"),
        ({"full_name": "Jana Roth"}, "application.full_name: Extra inputs"),
        ({"applicant_id": "../x"}, "application.applicant_id"),
    ],
)
def test_an_application_that_is_malformed_is_refused_naming_the_field(
    bank: LoanWorld, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        apply(bank.graph(InMemorySaver()), bank.put_applicant(), **change)


def test_a_case_needs_documents_and_each_once(bank: LoanWorld) -> None:
    graph, documents = bank.graph(InMemorySaver()), bank.put_applicant()
    with pytest.raises(ValueError, match="documents"):
        graph.invoke(application([]), applicant("none"), durability="sync")
    with pytest.raises(ValueError, match="given twice"):
        apply(graph, [*documents, documents[0]], applicant("twice"))


def test_a_thread_is_one_attempt(bank: LoanWorld) -> None:
    graph, documents = bank.graph(InMemorySaver()), bank.put_applicant()
    apply(graph, documents)
    with pytest.raises(AttemptExists, match="a new one gets a new suffix"):
        apply(graph, documents)
    assert len(bank.backoffice.effects("decision_record")) == 1


def test_the_older_prompt_takes_a_year_to_date_total_for_the_month(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    graph = bank.graph(InMemorySaver())
    wrong = apply(graph, documents, applicant("v1", prompt="v1"))
    right = apply(graph, documents, applicant("v2"))
    assert wrong["extracted_fields"]["monthly_income"] == "42000.00"
    assert (wrong["route"], right["route"]) == ("review", "finalize")


def test_at_a_high_temperature_some_readings_are_wrong_and_at_none_none_is(bank: LoanWorld) -> None:
    documents = bank.put_applicant()
    incomes = {}
    for name, seed, temperature in (("hot", 3, 1.0), ("hot too", 1, 1.0), ("cold", 1, 0.0)):
        graph = bank.graph(InMemorySaver(), model=make_model(env={}, seed=seed))
        state = apply(graph, documents, applicant(name, temperature=temperature))
        incomes[name] = (state["extracted_fields"]["monthly_income"], state["route"])
    assert incomes == {
        "hot": ("2400.00", "review"),
        "hot too": ("4200.00", "finalize"),
        "cold": ("4200.00", "finalize"),
    }
