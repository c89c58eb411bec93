"""The nodes of the income check."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.common.owners import caller_of
from graphs.loan_underwriting.asking import BadAnswer, check_caller, first_problem
from graphs.loan_underwriting.catalog import REFERENCE
from graphs.loan_underwriting.income import matching, memory
from graphs.loan_underwriting.income.state import IncomeState, Statement
from graphs.loan_underwriting.inputs import OPERATIONS_ROLE
from graphs.loan_underwriting.kit import Kit, audit
from graphs.loan_underwriting.services import answered
from graphs.loan_underwriting.state import IncomeResult


class StatementAnswer(BaseModel):
    """The statements service's answer."""

    model_config = ConfigDict(extra="ignore")

    statement_id: str = Field(pattern=REFERENCE)
    month: str = Field(pattern=r"^\d{4}-\d{2}$")
    lines: list[str] = Field(max_length=500)


class EmployerAnswer(BaseModel):
    """The employer register's answer, or what the memory store holds."""

    model_config = ConfigDict(extra="ignore")

    name: str
    payroll_names: list[str]


class _Supplied(BaseModel):
    model_config = ConfigDict(extra="forbid")

    statements: list[str] = Field(default_factory=list, max_length=12)
    unavailable: bool = False


@dataclass(frozen=True, slots=True)
class IncomeNodes:
    """The nodes over what they need: tools, policies, settings, time."""

    kit: Kit

    def fetch_statements(self, state: IncomeState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Fetches each statement that is not there yet."""
        fetched = {statement["statement_id"]: statement for statement in state.get("statements", [])}
        wanted = [entry["document_id"] for entry in state["documents"] if entry["kind"] == "bank_statement"]
        messages: list[AnyMessage] = []
        missing: list[str] = []
        for statement_id in [*wanted, *state.get("supplied", [])]:
            if statement_id in fetched:
                continue
            call_id = f"fetch_statement:{statement_id}"
            called = self.kit.call("fetch_statement", {"statement_id": statement_id}, id=call_id, config=config)
            messages += called.messages
            if called.failed:
                missing.append(f"{statement_id}: {called.content}")
                continue
            answer = answered("fetch_statement", called, StatementAnswer)
            fetched[statement_id] = Statement(statement_id=statement_id, month=answer.month, lines=answer.lines)
        n_months = len({statement["month"] for statement in fetched.values()})
        needed = self.kit.policy(state, config).income.n_statements - n_months
        asked_for = [f"{needed} more months", *missing] if needed > 0 else []
        runtime.stream_writer({"progress": f"{len(fetched)} statements fetched"})
        return {"statements": list(fetched.values()), "missing": asked_for, "calls": messages}

    def request_statements(self, state: IncomeState, config: RunnableConfig) -> dict[str, Any]:
        """Asks for what is missing; operations may say that no more will come."""
        raw = interrupt(
            {
                "kind": "request_statements",
                "missing": state.get("missing", []),
                "answers": ["statements: [ID]", "unavailable: true (operations only)"],
                "problem": state.get("statements_problem", ""),
            }
        )
        caller = caller_of(config.get("configurable", {}))
        try:
            check_caller(caller, state.get("owner"))
            answer = _read(raw)
            if answer.unavailable and caller.role != OPERATIONS_ROLE:
                raise BadAnswer(f"{caller.actor} as {caller.role} may not end the request")
        except BadAnswer as bad:
            return {"statements_problem": str(bad)}
        now = self.kit.now(config)
        told = "none will come" if answer.unavailable else ", ".join(answer.statements)
        return {
            "supplied": [*state.get("supplied", []), *answer.statements],
            "is_complete": answer.unavailable,
            "statements_problem": "",
            "audit_events": [audit("statements supplied", now, f"by {caller.actor}: {told}")],
        }

    def parse_statements(self, state: IncomeState) -> dict[str, Any]:
        """Reads the credits of each statement."""
        return {"credits": matching.credits_of(state.get("statements", []))}

    def match_payroll(self, state: IncomeState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Matches credits with what the employer pays, and remembers an employer that was verified by it."""
        messages: list[AnyMessage] = []
        employer_id = str(state["extracted_fields"].get("employer_id") or "")
        employer, source = self._employer(employer_id, config, runtime, messages)
        pay = matching.monthly_pay(state.get("credits", {}), [] if employer is None else employer.payroll_names)
        declared = Decimal(state["extracted_fields"].get("monthly_income") or "0")
        status, lowest = matching.judge(pay, declared, self.kit.policy(state, config).income)
        now = self.kit.now(config)
        if status == "verified" and employer is not None and source == "register":
            names = employer.payroll_names
            verified_on = now.date().isoformat()
            memory.remember(
                runtime.store, employer_id, name=employer.name, payroll_names=names, verified_on=verified_on
            )
        runtime.stream_writer({"progress": "income check done"})
        ids = sorted(statement["statement_id"] for statement in state.get("statements", []))
        result = IncomeResult(
            status=status,
            monthly=f"{lowest:.2f}",
            n_months=len(pay),
            reference="+".join(ids),
            employer_from=source,
        )
        event = audit("income checked", now, f"{status}, employer from {source}")
        return {"income_result": result, "calls": messages, "audit_events": [event]}

    def _employer(
        self, employer_id: str, config: RunnableConfig, runtime: Runtime[None], messages: list[AnyMessage]
    ) -> tuple[EmployerAnswer | None, str]:
        """Returns the employer and where it is known from: `memory`, `register`, or `nowhere`."""
        remembered = memory.recall(runtime.store, employer_id)
        if remembered is not None:
            return EmployerAnswer.model_validate(remembered), "memory"
        call_id = f"lookup_employer:{employer_id}"
        called = self.kit.call("lookup_employer", {"employer_id": employer_id}, id=call_id, config=config)
        messages += called.messages
        if called.failed:
            return None, "nowhere"
        return answered("lookup_employer", called, EmployerAnswer), "register"


def after_fetch(state: IncomeState) -> str:
    """Asks while something is missing and may still come."""
    return "request_statements" if state.get("missing") and not state.get("is_complete") else "parse_statements"


def after_request(state: IncomeState) -> str:
    """Asks again after a bad answer, fetches what was given, or goes on with what there is."""
    if state.get("statements_problem"):
        return "request_statements"
    return "parse_statements" if state.get("is_complete") else "fetch_statements"


def _read(raw: object) -> _Supplied:
    try:
        answer = _Supplied.model_validate(raw)
    except ValidationError as error:
        raise BadAnswer(first_problem(error)) from error
    if answer.unavailable == bool(answer.statements):
        raise BadAnswer("the answer gives statements, or says that they are unavailable")
    return answer
