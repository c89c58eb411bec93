"""The review: the summary and the notification come first, each a node of its own; then people are asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field

from graphs.common.owners import caller_of, check_owner
from graphs.loan_underwriting import prompts
from graphs.loan_underwriting.asking import BadAnswer
from graphs.loan_underwriting.kit import Kit, audit
from graphs.loan_underwriting.review_answers import Reviewer, mismatches, needs_second, question, read_answer
from graphs.loan_underwriting.services import answered
from graphs.loan_underwriting.state import Assignment, AuditEvent, LoanState, Review


class NotificationAnswer(BaseModel):
    """The queue's answer: who the case was given to."""

    model_config = ConfigDict(extra="ignore")

    review_notice_id: str = Field(min_length=1)
    assigned_to: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Reviewing:
    """The nodes over what they need.

    Attributes:
        kit: Tools, policies, settings, time.
        model: Writes the summary.
    """

    kit: Kit
    model: BaseChatModel

    def summarize_case(self, state: LoanState, config: RunnableConfig) -> dict[str, Any]:
        """Lets the model write the case up for the underwriter; it is given no personal data."""
        facts = {
            "amount": f"{state['application']['amount']} {state['application']['currency']}",
            "term_months": state["application"]["term_months"],
            "score": state["risk_score"],
            "reasons": [self.kit.policy(state, config).reasons.get(code, code) for code in state["reason_codes"]],
            "mismatches": mismatches(state),
        }
        answer = self.model.invoke(prompts.summary_messages(facts), config)
        return {"case_summary": answer.text}

    def notify_underwriters(self, state: LoanState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Queues the case, once for each inquiry that it was scored on, and keeps who it was given to."""
        check_owner(state.get("owner"), caller_of(config.get("configurable", {})))
        due_in_hours = self.kit.policy(state, config).review.due_hours
        args = {
            "amount": state["application"]["amount"],
            "segment": state["application"]["segment"],
            "reason_codes": state["reason_codes"],
            "due_in_hours": due_in_hours,
        }
        call_id = f"review_notification:{state['bureau_result']['version']}"
        called = self.kit.call("notify_underwriters", args, id=call_id, config=config)
        answer = answered("notify_underwriters", called, NotificationAnswer)
        runtime.stream_writer({"progress": "waiting for review"})
        now = self.kit.now(config)
        return {
            "review_requested_at": now.isoformat(),
            "review_due_at": (now + timedelta(hours=due_in_hours)).isoformat(),
            "assignment": Assignment(reviewer_id=answer.assigned_to, notice_id=answer.review_notice_id),
            "calls": called.messages,
            "audit_events": [audit("review requested", now, f"of {answer.assigned_to}")],
        }

    def review(self, state: LoanState, config: RunnableConfig) -> dict[str, Any]:
        """Asks the assigned underwriter.

        One question per super-step. A bad answer is stored as the problem and asked again in a step of its own, so that
        every answer is judged by the identity of the run that gave it.
        """
        policy = self.kit.policy(state, config)
        raw = interrupt(question(state, policy, problem=state.get("review_problem", "")))
        reviewer = Reviewer(assigned=state.get("assignment", {}).get("reviewer_id", ""))
        try:
            decided = self._decided(raw, state, config, reviewer)
        except BadAnswer as bad:
            return {"review_problem": str(bad)}
        return {"review": decided, "review_problem": "", "audit_events": [_reviewed("reviewed", decided)]}

    def second_review(self, state: LoanState, config: RunnableConfig) -> dict[str, Any]:
        """Asks a second person, who is not the first, where the amount is above what one may approve alone."""
        first = state["review"]
        shown = {name: first.get(name) for name in ("decision", "reason_code", "reviewer_id")}
        raw = interrupt(
            question(state, self.kit.policy(state, config), problem=state.get("second_problem", ""), first=shown)
        )
        try:
            decided = self._decided(raw, state, config, Reviewer(not_this=first["reviewer_id"]))
        except BadAnswer as bad:
            return {"second_problem": str(bad)}
        return {"second_review": decided, "second_problem": "", "audit_events": [_reviewed("second review", decided)]}

    def after_review(self, state: LoanState, config: RunnableConfig) -> str:
        """Asks again after a bad answer, asks a second person above the limit, or goes on."""
        if state.get("review_problem"):
            return "review"
        amount = Decimal(state["application"]["amount"])
        is_two_person = needs_second(state["review"]["decision"], amount, self.kit.policy(state, config))
        return "second_review" if is_two_person else "finalize"

    def _decided(self, raw: object, state: LoanState, config: RunnableConfig, reviewer: Reviewer) -> Review:
        caller = caller_of(config.get("configurable", {}))
        answer = read_answer(raw, state=state, caller=caller, reviewer=reviewer, policy=self.kit.policy(state, config))
        return Review(
            decision=answer.decision,
            reason_code=answer.reason_code,
            reason_text=answer.reason_text,
            reviewer_id=caller.actor,
            role=caller.role,
            decided_at=self.kit.now(config).isoformat(),
            bureau_version=state["bureau_result"]["version"],
        )


def after_second_review(state: LoanState) -> str:
    """Asks again after a bad answer, or goes on."""
    return "second_review" if state.get("second_problem") else "finalize"


def _reviewed(event: str, decided: Review) -> AuditEvent:
    detail = f"{decided['decision']} by {decided['reviewer_id']}: {decided['reason_code']}"
    return AuditEvent(event=event, at=decided["decided_at"], detail=detail)
