"""The end of a case: guard, record, booking, in that order; each effect once, and none without a decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

from graphs.common.owners import caller_of, check_owner
from graphs.loan_underwriting.catalog import DecisionWord
from graphs.loan_underwriting.kit import Kit, audit
from graphs.loan_underwriting.policy import Policy
from graphs.loan_underwriting.review_answers import is_override, needs_second
from graphs.loan_underwriting.services import answered
from graphs.loan_underwriting.state import LoanState, Review


class NoDecision(RuntimeError):
    """The case has no decision that may be carried out; nothing was recorded and nothing booked."""


class RecordAnswer(BaseModel):
    """The decision service's answer."""

    model_config = ConfigDict(extra="ignore")

    decision_record_id: str = Field(min_length=1)


class BookingAnswer(BaseModel):
    """The loan service's answer."""

    model_config = ConfigDict(extra="ignore")

    loan_booking_id: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision that may be carried out.

    Attributes:
        decision: What.
        reason_codes: Why; each is known to the policy.
        reviewer: Who: a person, or the system with its rule.
        second_reviewer: Who agreed or disagreed above the limit, None below it.
        is_override: Whether people decided against what the score says.
    """

    decision: DecisionWord
    reason_codes: tuple[str, ...]
    reviewer: str
    second_reviewer: str | None
    is_override: bool


@dataclass(frozen=True, slots=True)
class Finalizing:
    """The node over what it needs: tools, policies, settings, time."""

    kit: Kit

    def finalize(self, state: LoanState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Carries the decision out, or asks for fresh bureau data where the present is too old to decide on.

        Raises:
            NotTheOwner: the caller has no business on this case.
            NoDecision: the decision, its reason or its reviewer is missing, or may not stand.
            ServiceAnswerRefused: a service refused; a different decision was recorded before, for one.
        """
        check_owner(state.get("owner"), caller_of(config.get("configurable", {})))
        if state.get("final_decision"):
            return {}
        policy = self.kit.policy(state, config)
        decision = decision_of(state, policy)
        now = self.kit.now(config)
        if is_stale(state, policy, now):
            return self._asked_anew(state, policy, now, runtime)
        record_id, messages = self._record(decision, state, config)
        booking = ""
        if decision.decision == "approve":
            booking, booked = self._book(record_id, state, config)
            messages = [*messages, *booked]
        runtime.stream_writer({"progress": f"decided: {decision.decision}"})
        return {
            "final_decision": decision.decision,
            "decision_record_id": record_id,
            "booking_reference": booking,
            "calls": messages,
            "audit_events": [audit("finalized", now, f"{decision.decision}, record {record_id}")],
        }

    def _asked_anew(self, state: LoanState, policy: Policy, now: datetime, runtime: Runtime[None]) -> dict[str, Any]:
        """Raises the version of the inquiry that counts: deliberate, logged, and bounded."""
        version = state["bureau_result"]["version"]
        if version >= policy.bureau.max_pulls:
            raise NoDecision(f"the bureau's data is too old after {version} inquiries")
        runtime.stream_writer({"progress": "bureau data too old, asking anew"})
        detail = (
            f"as of {state['bureau_result']['as_of']}, over {policy.bureau.max_age_days} days: inquiry {version + 1}"
        )
        return {"bureau_version": version + 1, "audit_events": [audit("bureau data too old", now, detail)]}

    def _record(self, decision: Decision, state: LoanState, config: RunnableConfig) -> tuple[str, list[AnyMessage]]:
        args = {
            "decision": decision.decision,
            "reason_codes": list(decision.reason_codes),
            "reviewer": decision.reviewer,
            "second_reviewer": decision.second_reviewer,
            "policy_version": state["policy_version"],
            "score": state["risk_score"],
            "route": state["route"],
            "segment": state["application"]["segment"],
            "amount": state["application"]["amount"],
            "override": decision.is_override,
            "bureau_reference": state["bureau_result"]["reference"],
            "income_reference": state["income_result"]["reference"],
        }
        called = self.kit.call("write_decision_record", args, id="decision_record", config=config)
        return answered("write_decision_record", called, RecordAnswer).decision_record_id, called.messages

    def _book(self, record_id: str, state: LoanState, config: RunnableConfig) -> tuple[str, list[AnyMessage]]:
        application = state["application"]
        args = {
            "decision_record_id": record_id,
            "applicant_id": application["applicant_id"],
            "amount": application["amount"],
            "currency": application["currency"],
            "term_months": application["term_months"],
        }
        called = self.kit.call("book_loan", args, id="loan_booking", config=config)
        return answered("book_loan", called, BookingAnswer).loan_booking_id, called.messages


def after_finalize(state: LoanState) -> str:
    """Goes to the bureau where finalize asked for it, else to the end."""
    return "pull_bureau" if state.get("bureau_version", 1) > state["bureau_result"]["version"] else END


def decision_of(state: LoanState, policy: Policy) -> Decision:
    """Returns the decision of a case.

    Raises:
        NoDecision: something that a decision needs is missing, or it may not stand.
    """
    decision = _automatic(state) if state.get("route") == "finalize" else _by_people(state, policy)
    unknown = [code for code in decision.reason_codes if code not in policy.reasons]
    if not decision.reason_codes or unknown:
        raise NoDecision(f"no known reason: {', '.join(unknown) or 'none was given'}")
    if not decision.reviewer:
        raise NoDecision("nobody decided")
    if decision.decision == "approve" and state.get("hard_stops"):
        raise NoDecision(f"a hard stop cannot be overridden: {', '.join(state['hard_stops'])}")
    return decision


def is_stale(state: LoanState, policy: Policy, now: datetime) -> bool:
    """Tells whether the bureau's data is older than the policy allows; a file that there is not has no age."""
    as_of = state["bureau_result"]["as_of"]
    return as_of != "" and (now.date() - date.fromisoformat(as_of)).days > policy.bureau.max_age_days


def _automatic(state: LoanState) -> Decision:
    indicated = state.get("indicated")
    if indicated not in ("approve", "decline"):
        raise NoDecision("the score indicates no decision")
    rule = f"system:score_risk@{state['policy_version']}"
    word: DecisionWord = "approve" if indicated == "approve" else "decline"
    return Decision(word, tuple(state.get("reason_codes", ())), rule, None, False)


def _by_people(state: LoanState, policy: Policy) -> Decision:
    first = _valid(state.get("review"), state)
    if first is None:
        raise NoDecision("nobody has reviewed the case as it is now")
    if not needs_second(first["decision"], Decimal(state["application"]["amount"]), policy):
        return _decision([first], state)
    second = _valid(state.get("second_review"), state)
    if second is None or second["reviewer_id"] == first["reviewer_id"]:
        raise NoDecision("a second approver, who is someone else, has to agree")
    return _decision([first, second], state)


def _decision(reviews: list[Review], state: LoanState) -> Decision:
    last = reviews[-1]
    agreed = [review for review in reviews if review["decision"] == last["decision"]]
    codes = dict.fromkeys(review["reason_code"] for review in agreed if review.get("reason_code"))
    return Decision(
        decision=last["decision"],
        reason_codes=tuple(codes),
        reviewer=reviews[0]["reviewer_id"],
        second_reviewer=last["reviewer_id"] if len(reviews) > 1 else None,
        is_override=is_override(last["decision"], state.get("indicated", "")),
    )


def _valid(review: Review | None, state: LoanState) -> Review | None:
    """Returns a review that was made on the bureau's present answer."""
    version = state["bureau_result"]["version"]
    return review if review is not None and review.get("bureau_version", 1) == version else None
