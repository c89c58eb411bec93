"""The workflow's tools: names, arguments, descriptions and effects."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from graphs.common.catalog import EffectArguments, ToolSpec, build_registry

MONEY = r"^\d{1,9}\.\d{2}$"
REFERENCE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
DecisionWord = Literal["approve", "decline"]


class ReadDocument(BaseModel):
    """Arguments of read_document."""

    document_id: str = Field(description="The document's reference.", pattern=REFERENCE)


class FetchStatement(BaseModel):
    """Arguments of fetch_statement."""

    statement_id: str = Field(description="The account statement's reference.", pattern=REFERENCE)


class LookupEmployer(BaseModel):
    """Arguments of lookup_employer."""

    employer_id: str = Field(description="The employer's number.", pattern=REFERENCE)


class PullBureau(EffectArguments):
    """Arguments of pull_bureau."""

    applicant_id: str = Field(description="The applicant's reference.", pattern=REFERENCE)
    purpose: Literal["credit_application"] = Field(description="Why the bureau may be asked.")
    version: int = Field(ge=1, description="1 for the first inquiry; a higher one asks anew, deliberately.")


class NotifyUnderwriters(EffectArguments):
    """Arguments of notify_underwriters."""

    amount: str = Field(description="The amount applied for.", pattern=MONEY)
    segment: str = Field(description="The segment of the application.", max_length=40)
    reason_codes: list[str] = Field(description="Why a person decides.")
    due_in_hours: int = Field(ge=1, description="Until when, in hours from now.")


class WriteDecisionRecord(EffectArguments):
    """Arguments of write_decision_record."""

    decision: DecisionWord
    reason_codes: list[str] = Field(min_length=1)
    reviewer: str = Field(min_length=1, description="Who decided: a person, or the system with its rule.")
    second_reviewer: str | None = None
    policy_version: str
    score: int
    route: str
    segment: str
    amount: str = Field(pattern=MONEY)
    override: bool = Field(description="Whether a person decided against what the score says.")
    bureau_reference: str
    income_reference: str


class BookLoan(EffectArguments):
    """Arguments of book_loan."""

    decision_record_id: str = Field(description="The record that decided it; the loan service demands one.")
    applicant_id: str = Field(pattern=REFERENCE)
    amount: str = Field(pattern=MONEY)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    term_months: int = Field(ge=1, le=360)


SPECS = (
    ToolSpec("read_document", "Gives the labelled entries of a document, identifiers masked.", ReadDocument, "read"),
    ToolSpec("fetch_statement", "Gives the lines of one monthly account statement.", FetchStatement, "read"),
    ToolSpec("lookup_employer", "Gives the names under which an employer pays.", LookupEmployer, "read"),
    ToolSpec("pull_bureau", "Asks the credit bureau: an inquiry that stays on file.", PullBureau, "write"),
    ToolSpec("notify_underwriters", "Queues a case for review and assigns it.", NotifyUnderwriters, "write"),
    ToolSpec("write_decision_record", "Writes the immutable record of a decision.", WriteDecisionRecord, "write"),
    ToolSpec("book_loan", "Books the loan that a decision record allows.", BookLoan, "write"),
)
NAMES = tuple(spec.name for spec in SPECS)
registry_of = partial(build_registry, SPECS)
