"""Reviewing: what an underwriter is shown, what they may answer, and who may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.common.owners import CUSTOMER, Caller
from graphs.loan_underwriting.asking import BadAnswer, check_caller, first_problem
from graphs.loan_underwriting.catalog import DecisionWord
from graphs.loan_underwriting.policy import Policy
from graphs.loan_underwriting.state import LoanState


class ReviewAnswer(BaseModel):
    """A decision. Who gave it is not part of it: that comes from the caller's authenticated context."""

    model_config = ConfigDict(extra="forbid")

    decision: DecisionWord
    reason_code: str
    reason_text: str = Field(default="", max_length=500)


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Who has to answer.

    Attributes:
        assigned: The one person who may, '' where any with the role may.
        not_this: Someone who may not, whatever their role: who decided first.
    """

    assigned: str = ""
    not_this: str = ""


def question(state: LoanState, policy: Policy, *, problem: str, first: Mapping[str, Any] | None = None) -> Any:
    """Returns what an underwriter is shown: no personal data; the documents are looked up by reference.

    Args:
        state: The case.
        policy: What it is judged by.
        problem: What was wrong with the previous answer, '' the first time.
        first: The first person's decision, for the second.
    """
    codes = state.get("reason_codes", [])
    asked = {
        "kind": "second_review" if first is not None else "review",
        "summary": state.get("case_summary", ""),
        "amount": state["application"]["amount"],
        "currency": state["application"]["currency"],
        "score": state.get("risk_score"),
        "indicated": state.get("indicated", ""),
        "reason_codes": {code: policy.reasons.get(code, "") for code in codes},
        "hard_stops": state.get("hard_stops", []),
        "mismatches": mismatches(state),
        "due_at": state.get("review_due_at", ""),
        "assigned_to": state.get("assignment", {}).get("reviewer_id", "") if first is None else "",
        "answers": "decision: approve or decline, reason_code, reason_text?",
        "problem": problem,
    }
    return asked if first is None else {**asked, "first_decision": dict(first)}


def mismatches(state: LoanState) -> list[str]:
    """Returns what does not fit together, without any value."""
    income = state.get("income_result", {}).get("status", "")
    return [*state.get("flags", []), *([f"income:{income}"] if income not in ("", "verified") else [])]


def read_answer(raw: object, *, state: LoanState, caller: Caller, reviewer: Reviewer, policy: Policy) -> ReviewAnswer:
    """Reads an underwriter's answer.

    Raises:
        BadAnswer: it is malformed, its reason is unknown, it overrides a hard stop, or it comes from someone who may
            not decide this case.
    """
    check_caller(caller, state.get("owner"))
    _check_reviewer(caller, reviewer, Decimal(state["application"]["amount"]), policy)
    if not isinstance(raw, Mapping):
        raise BadAnswer("the answer is an object with decision, reason_code and perhaps reason_text")
    try:
        answer = ReviewAnswer.model_validate(raw)
    except ValidationError as error:
        raise BadAnswer(first_problem(error)) from error
    if answer.reason_code not in policy.reasons:
        known = ", ".join(sorted(policy.reasons))
        raise BadAnswer(f"reason_code: policy {policy.version} does not know {answer.reason_code}; it knows {known}")
    if answer.decision == "approve" and state.get("hard_stops"):
        raise BadAnswer(f"decision: a hard stop cannot be overridden ({', '.join(state['hard_stops'])})")
    return answer


def is_override(decision: str, indicated: str) -> bool:
    """Tells whether a person decided against what the score says; a borderline score says nothing."""
    return bool(indicated) and decision != indicated


def needs_second(decision: str, amount: Decimal, policy: Policy) -> bool:
    """Tells whether a second person has to agree."""
    return decision == "approve" and amount > policy.review.second_above


def _check_reviewer(caller: Caller, reviewer: Reviewer, amount: Decimal, policy: Policy) -> None:
    limit = policy.review.limit(caller.role)
    if caller.role == CUSTOMER or limit is None:
        raise BadAnswer(f"{caller.actor} as {caller.role} may not review")
    if caller.actor == caller.owner["user_id"]:
        raise BadAnswer(f"{caller.actor} may not review their own application")
    if reviewer.assigned and caller.actor != reviewer.assigned:
        raise BadAnswer(f"the case is assigned to {reviewer.assigned}, not to {caller.actor}")
    if caller.actor == reviewer.not_this:
        raise BadAnswer(f"{caller.actor} decided first: the second approver is someone else")
    if amount > limit:
        raise BadAnswer(f"{amount} is above what {caller.role} may decide, {limit}")
