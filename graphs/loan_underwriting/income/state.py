"""What the income check remembers; it shares the case's keys by name and gives back its result and audit events."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

from graphs.common.owners import Owner
from graphs.loan_underwriting.state import Application, AuditEvent, Document, IncomeResult


class Credit(TypedDict):
    """One credit of a statement: the day, the amount, who paid."""

    day: str
    amount: str
    payer: str


class Statement(TypedDict):
    """One monthly statement: as it was fetched, or with its credits parsed."""

    statement_id: str
    month: str
    lines: list[str]


class IncomeInput(TypedDict, total=False):
    """What the case gives."""

    application: Application
    documents: list[Document]
    owner: Owner
    extracted_fields: dict[str, str | None]
    policy_version: str


class IncomeOutput(TypedDict, total=False):
    """What the case gets."""

    income_result: IncomeResult
    audit_events: Annotated[list[AuditEvent], operator.add]


class IncomeState(IncomeInput, IncomeOutput, total=False):
    """State of the check.

    Attributes:
        statements: What could be fetched (fetch_statements).
        missing: What could not, and why (fetch_statements).
        supplied: References that were given on request (request_statements).
        is_complete: Whether no further statement will come (request_statements).
        statements_problem: What was wrong with the latest answer (request_statements).
        credits: Every credit of the statements, by month (parse_statements).
        calls: Tool calls of these nodes, each with its answer.
    """

    statements: list[Statement]
    missing: list[str]
    supplied: list[str]
    is_complete: bool
    statements_problem: str
    credits: dict[str, list[Credit]]
    calls: Annotated[list[AnyMessage], add_messages]
