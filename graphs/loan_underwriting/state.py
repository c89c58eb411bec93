"""What a case remembers, and the settings that a run gets from its configuration."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

from graphs.common.owners import Owner
from graphs.loan_underwriting.catalog import DecisionWord
from graphs.loan_underwriting.policy import CURRENT_POLICY, IncomeStatus
from graphs.loan_underwriting.prompts import CURRENT_EXTRACTION_PROMPT

GRAPH_VERSION = 2

DocumentKind = Literal["application_form", "identity", "payslip", "bank_statement"]


class Application(TypedDict):
    """What is applied for. References only: who the applicant is stands in the documents."""

    applicant_id: str
    amount: str
    currency: str
    term_months: int
    segment: str


class Document(TypedDict):
    """A reference to a document."""

    document_id: str
    kind: DocumentKind


class Candidate(TypedDict):
    """A value that the model read, with its confidence from 0 to 1."""

    value: str
    confidence: float


class Extraction(TypedDict):
    """What one reading of one document gave; `problem` says why it gave nothing."""

    document_id: str
    kind: DocumentKind
    attempt: int
    fields: dict[str, Candidate]
    inconsistencies: list[str]
    problem: str


class FieldError(TypedDict):
    """A field that has no usable value."""

    field: str
    problem: str


class BureauResult(TypedDict):
    """The bureau's answer to inquiry `version`; amounts by month, `as_of` ISO, '' where it has no file."""

    version: int
    reference: str
    found: bool
    score: int
    open_defaults: int
    n_accounts: int
    monthly_obligations: str
    as_of: str


class IncomeResult(TypedDict):
    """What the statements show: the lowest monthly income of those asked for, '0.00' where none was found."""

    status: IncomeStatus
    monthly: str
    n_months: int
    reference: str
    employer_from: str


class Assignment(TypedDict):
    """Who reviews, and the notice that told them."""

    reviewer_id: str
    notice_id: str


class Review(TypedDict):
    """What a person decided, on the bureau's answer to inquiry `bureau_version`."""

    decision: DecisionWord
    reason_code: str
    reason_text: str
    reviewer_id: str
    role: str
    decided_at: str
    bureau_version: int


class AuditEvent(TypedDict):
    """One thing that was done, without personal data."""

    event: str
    at: str
    detail: str


class LoanState(TypedDict, total=False):
    """State of a case. Every key has one writer but those with a reducer.

    Attributes:
        application: What is applied for (input).
        documents: References to the documents (input; request_documents adds).
        owner: Whose case it is (plan_documents, once).
        graph_version: The version of the graph that wrote last (plan_documents).
        extractions: Every reading of every document (extract_document).
        extracted_fields: Values that passed the schema; None where there is no usable one (merge_extraction).
        flags: What a person has to look at, as `kind:subject` (merge_extraction).
        validation_errors: Fields without a usable value (merge_extraction).
        extraction_round: How often the document that was read most was read (merge_extraction).
        manual_fields: Fields that operations entered by hand (request_documents).
        documents_problem: What was wrong with the latest answer to the request (request_documents).
        bureau_version: The inquiry that counts; only finalize raises it, for data that is too old (finalize).
        bureau_result: The bureau's answer (pull_bureau).
        income_result: What the statements show (verify_income).
        risk_score: The score (score_risk).
        reason_codes: Why, in the policy's words (score_risk).
        hard_stops: Rules that always decline (score_risk).
        indicated: What the score says: approve, decline, or '' for neither (score_risk).
        route: `finalize` or `review` (score_risk).
        policy_version: The policy the case is judged by; stays what it was when it was scored first (score_risk).
        scored_at: When (score_risk).
        case_summary: For the underwriter (summarize_case).
        review_requested_at: When a person was asked (notify_underwriters).
        review_due_at: Until when (notify_underwriters).
        assignment: Who was asked (notify_underwriters).
        review: What they decided (review).
        review_problem: What was wrong with the latest answer, '' when nothing was (review).
        second_review: What the second person decided (second_review).
        second_problem: What was wrong with the latest answer of the second person (second_review).
        final_decision: The decision, once its record is written (finalize).
        decision_record_id: Its record (finalize).
        booking_reference: The booked loan, '' after a decline (finalize).
        audit_events: What was done, gathered from all nodes.
        calls: Tool calls of the nodes, each with its answer.
    """

    application: Application
    documents: list[Document]
    owner: Owner
    graph_version: int
    extractions: Annotated[list[Extraction], operator.add]
    extracted_fields: dict[str, str | None]
    flags: list[str]
    validation_errors: list[FieldError]
    extraction_round: int
    manual_fields: dict[str, str]
    documents_problem: str
    bureau_version: int
    bureau_result: BureauResult
    income_result: IncomeResult
    risk_score: int
    reason_codes: list[str]
    hard_stops: list[str]
    indicated: str
    route: str
    policy_version: str
    scored_at: str
    case_summary: str
    review_requested_at: str
    review_due_at: str
    assignment: Assignment
    review: Review
    review_problem: str
    second_review: Review
    second_problem: str
    final_decision: DecisionWord
    decision_record_id: str
    booking_reference: str
    audit_events: Annotated[list[AuditEvent], operator.add]
    calls: Annotated[list[AnyMessage], add_messages]


class DocumentToRead(TypedDict):
    """What one `Send` carries: one reference, and what was wrong with an earlier reading."""

    document_id: str
    kind: DocumentKind
    attempt: int
    problems: list[str]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is set up: scalars of `configurable`, which LangGraph keeps in checkpoint metadata.

    Attributes:
        prompt: Version of the extraction prompt.
        temperature: The model's sampling temperature; None leaves it to the model.
        policy_version: The policy for cases that are not scored yet.
        now: RFC 3339 time to use in place of the clock's.
    """

    prompt: str = CURRENT_EXTRACTION_PROMPT
    temperature: float | None = None
    policy_version: str = CURRENT_POLICY
    now: str | None = None

    def over(self, configurable: Mapping[str, Any]) -> Settings:
        """Returns these settings with those that a run's `configurable` names put over them."""
        temperature, now = configurable.get("temperature", self.temperature), configurable.get("now", self.now)
        return Settings(
            prompt=str(configurable.get("prompt", self.prompt)),
            temperature=None if temperature is None else float(temperature),
            policy_version=str(configurable.get("policy_version", self.policy_version)),
            now=None if now is None else str(now),
        )
