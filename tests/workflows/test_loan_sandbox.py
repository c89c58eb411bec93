"""The sandbox registry: in parity with production, nothing behind it, and nobody made creditworthy by it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

import graphs.loan_underwriting
from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import Call, CallBlocked
from agentctl.sandbox.registry import RegisteredTool, ToolRegistry
from graphs.loan_underwriting.catalog import NAMES
from graphs.loan_underwriting.graph import build_graph, graph
from graphs.loan_underwriting.model import make_model
from graphs.loan_underwriting.tools import registry_from_environment
from sandbox_tools.answers import NoAnswer
from sandbox_tools.loan import registry
from tests.support.loan import APPROVE, LoanWorld, applicant, apply, question, resume, staff

WRITES: dict[str, dict[str, Any]] = {
    "pull_bureau": {"applicant_id": "ap-1", "purpose": "credit_application", "version": 1},
    "notify_underwriters": {"amount": "9.00", "segment": "car", "reason_codes": ["THIN_FILE"], "due_in_hours": 48},
    "write_decision_record": {
        "decision": "decline",
        "reason_codes": ["SCORE_LOW"],
        "reviewer": "uw-1",
        "policy_version": "2026-10",
        "score": 500,
        "route": "review",
        "segment": "car",
        "amount": "9.00",
        "override": False,
        "bureau_reference": "in_1",
        "income_reference": "s",
    },
    "book_loan": {
        "decision_record_id": "de_1",
        "applicant_id": "ap-1",
        "amount": "9.00",
        "currency": "EUR",
        "term_months": 12,
    },
}
READS: dict[str, dict[str, Any]] = {
    "read_document": {"document_id": "d-1"},
    "fetch_statement": {"statement_id": "s-1"},
    "lookup_employer": {"employer_id": "E1"},
}


def _asked(tools: ToolRegistry, name: str, args: dict[str, Any]) -> ToolMessage:
    answer = tools[name].invoke({"name": name, "args": args, "id": f"{name}:1", "type": "tool_call"})
    assert isinstance(answer, ToolMessage)
    return answer


def test_sandbox_and_production_have_the_same_tools_schemas_and_effects(bank: LoanWorld) -> None:
    production, sandbox = bank.tools(), registry()
    assert sandbox.names == production.names == NAMES
    for real, stub in zip(production, sandbox, strict=True):
        assert (real.name, real.effect, real.schema) == (stub.name, stub.effect, stub.schema)
        assert "tool_call_id" not in str(real.schema), "the id of the call is injected"


def test_every_tool_with_an_effect_has_a_stub_and_no_other_tool_has(bank: LoanWorld) -> None:
    sandbox = registry()
    assert {entry.name for entry in sandbox if entry.effect == "write"} == set(WRITES)
    assert {name for name in NAMES if sandbox.answers(name)} == set(WRITES)


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_stub_answers_the_same_each_time(name: str) -> None:
    first, second = (_asked(registry(), name, WRITES[name]) for _ in range(2))
    assert first.content == second.content
    assert first.status == "success"


def test_stubs_have_the_fields_of_production(bank: LoanWorld) -> None:
    real_graph = bank.graph(InMemorySaver())
    apply(real_graph, bank.put_applicant(bureau={"score": 530}))
    state = resume(real_graph, staff(), APPROVE)
    real = {message.name: json.loads(message.text) for message in state["calls"] if message.type == "tool"}
    for name, args in WRITES.items():
        stub = json.loads(_asked(registry(), name, args).text)
        # What the receiver adds: its key, the case and checkpoint, the day of a file that the sandbox does not have.
        assert set(real[name]) - set(stub) <= {"reference", "case", "checkpoint_id", "as_of", "second_reviewer"}
        assert set(stub) <= set(real[name])


@pytest.mark.parametrize("name", sorted(READS))
def test_what_nobody_recorded_is_not_invented(name: str) -> None:
    with pytest.raises(NoAnswer):
        _asked(registry(), name, READS[name])
    desk = Desk(Policy(registry=registry()))
    with pytest.raises(CallBlocked):
        desk.admit(Call(name, READS[name], "c1"))


def test_an_inquiry_that_nobody_recorded_ends_with_a_person_and_no_one_else(bank: LoanWorld) -> None:
    sandbox, real = registry(), bank.tools()
    reads = [entry for entry in real if entry.effect == "read"]
    mixed: list[RegisteredTool] = [*reads, *(entry for entry in sandbox if entry.effect == "write")]
    sandboxed = build_graph(ToolRegistry(mixed), model=make_model(env={}))
    sandboxed.checkpointer = InMemorySaver()
    state = apply(sandboxed, bank.put_applicant())
    assert (state["route"], question(sandboxed)["assigned_to"]) == ("review", "underwriter-sandbox")
    state = resume(sandboxed, staff(actor="underwriter-sandbox"), APPROVE)
    assert state["booking_reference"].startswith("lo_sandbox_")
    assert bank.backoffice.counters()["n_effects"] == 0


def test_outside_production_the_environment_gives_a_registry_that_can_only_read(bank: LoanWorld) -> None:
    bank.put_applicant()
    tools = registry_from_environment({"LOAN_BACKOFFICE_URL": bank.backoffice.url})
    read = _asked(tools, "read_document", {"document_id": "ap-1-identity"})
    assert json.loads(read.text)["kind"] == "identity"
    assert bank.backoffice.counters()["by_identity"] == {"loan-agent@debug": 1}


@pytest.mark.parametrize("missing", ["LOAN_SERVICE_IDENTITY", "LOAN_DATABASE_URL"])
def test_in_production_the_environment_must_name_identity_and_database(bank: LoanWorld, missing: str) -> None:
    env = {
        "LOAN_BACKOFFICE_URL": bank.backoffice.url,
        "LOAN_SERVICE_IDENTITY": "loan-agent@production",
        "LOAN_DATABASE_URL": bank.database_url,
        "AGENTCTL_ENV": "production",
    }
    with pytest.raises(KeyError, match=missing):
        registry_from_environment({name: value for name, value in env.items() if name != missing})


def test_a_server_outside_production_serves_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTCTL_ENV", raising=False)
    served = asyncio.run(graph({"configurable": {}}))
    assert set(served.nodes) >= {"plan_documents", "verify_income", "review", "second_review", "finalize"}
    assert served.checkpointer is None


def test_the_readme_draws_both_graphs_as_they_are() -> None:
    page = (Path(graphs.loan_underwriting.__file__).parent / "README.md").read_text(encoding="utf-8")
    built = build_graph(registry(), model=make_model(env={}))
    ((_, income),) = built.get_subgraphs()
    for drawn in (built, income):
        assert drawn.get_graph().draw_mermaid(with_styles=False).strip() in page


def test_tool_results_of_a_case_name_no_thread_so_that_a_copys_calls_match_its_recording(bank: LoanWorld) -> None:
    state = apply(bank.graph(InMemorySaver()), bank.put_applicant(), applicant("app-7F3K"))
    asked = [call for message in state["calls"] for call in getattr(message, "tool_calls", ())]
    assert "app-7F3K" not in str(asked)
    assert sorted(call["id"] for call in asked) == [
        "bureau_pull:1",
        "decision_record",
        "loan_booking",
        "read_document:ap-1-application_form",
        "read_document:ap-1-identity",
        "read_document:ap-1-payslip",
    ]
