"""Approving a quote: what the traveller is shown, what they may answer, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, interrupt
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from graphs.common.owners import CUSTOMER, Caller, Owner
from graphs.travel_booking import money
from graphs.travel_booking.catalog import TOKEN
from graphs.travel_booking.nodes.answers import BadAnswer, read_answer
from graphs.travel_booking.nodes.kit import Kit, handoff, progress
from graphs.travel_booking.quotes import changes_between
from graphs.travel_booking.redaction import redacted
from graphs.travel_booking.state import Approval, Hold, Quote, Settings, TravelState

NODE: Final = "approval"


class QuoteAnswer(BaseModel):
    """The traveller's answer to a quote; free text is never taken for one."""

    model_config = ConfigDict(extra="forbid")

    approved: StrictBool
    quote_version: StrictInt = Field(ge=1)
    payment_method: str = Field(default="", pattern=rf"^$|{TOKEN}")
    reason: str = Field(default="", max_length=200)
    then: Literal["requote", "end"] = "end"


@dataclass(frozen=True, slots=True)
class ApprovalNode:
    """The node that asks. Before `interrupt()` it only reads state."""

    kit: Kit

    def approval(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["approval", "recheck", "hotel_agent", "close"]]:
        """Shows the stored quote and takes the answer of the thread's owner.

        One question per super-step: a bad answer is stored as the problem and asked again in a step of its own, so that
        no answer is judged by a later caller's identity.
        """
        quote = state["quote"] or Quote()
        raw = interrupt(question(state, needs_step_up=self._needs_step_up(state)))
        caller, settings = self.kit.caller(config), self.kit.settings(config)
        try:
            check_answerer(caller, state.get("owner"))
            answer = read_answer(QuoteAnswer, raw)
            self._check(state, answer, settings)
        except BadAnswer as bad:
            again = Approval(status="asked_again", problem=str(bad), quote_version=_seen(raw))
            return Command(goto=NODE, update={"approval": again})
        approval = Approval(
            status="approved" if answer.approved else "declined",
            quote_version=quote["quote_version"],
            by=caller.actor,
            answered_at=self.kit.now(),
            payment_method=answer.payment_method or settings.payment_method,
            step_up=settings.step_up if self._needs_step_up(state) else "",
        )
        update: dict[str, Any] = {"approval": approval, "handoff_count": 0}
        progress("quote approved" if answer.approved else "quote declined")
        if answer.approved:
            return Command(goto="recheck", update=update)
        target: Literal["hotel_agent", "close"] = "hotel_agent" if answer.then == "requote" else "close"
        reason = redacted(answer.reason) or "the traveller declined the quote"
        room = state.get("hotel_hold") or Hold()
        record = handoff(NODE, target, "declined", reason, offer_id=room.get("offer_id", ""))
        return Command(goto=target, update={**update, "handoffs": [record]})

    def _check(self, state: TravelState, answer: QuoteAnswer, settings: Settings) -> None:
        quote = state["quote"] or Quote()
        if answer.quote_version != quote["quote_version"]:
            raise BadAnswer(f"quote {answer.quote_version} is not the present one, which is {quote['quote_version']}")
        if not answer.approved:
            return
        if money.amount(quote.get("due", quote["total"])) > 0 and not (
            answer.payment_method or settings.payment_method
        ):
            raise BadAnswer("a payment method is needed: the token that the payment provider gave")
        if self._needs_step_up(state) and not settings.step_up:
            raise BadAnswer("an amount this high needs a fresh proof of identity with the payment provider")

    def _needs_step_up(self, state: TravelState) -> bool:
        quote = state["quote"] or Quote()
        due = money.amount(quote.get("due", quote["total"]))
        return self.kit.policy(state).needs_step_up(due, quote["currency"])


def question(state: TravelState, *, needs_step_up: bool) -> dict[str, Any]:
    """Returns what the traveller is shown: the stored quote as it is, and its deadline."""
    quote, approval = state["quote"] or Quote(), state.get("approval") or Approval()
    payment = state.get("payment")
    seen = approval.get("quote_version", 0)
    return {
        "kind": "approve_quote",
        "quote_version": quote["quote_version"],
        "lines": quote["lines"],
        "total": quote["total"],
        "currency": quote["currency"],
        "paid": quote.get("paid", "0.00"),
        "due": quote.get("due", quote["total"]),
        "deadline": quote["expires_at"],
        "because": quote.get("because", ""),
        "unmet": quote.get("unmet", []),
        "changes": _since(state.get("quote_history", []), seen, quote) or quote.get("changes", []),
        "payment_failure": payment.get("failure", "") if payment else "",
        "needs_step_up": needs_step_up,
        "answers": ["approved: true", "approved: false (reason; then: requote or end)"],
        "problem": approval.get("problem", ""),
    }


def check_answerer(caller: Caller, owner: Owner | None) -> None:
    """Refuses an answer that is not from the trip's owner in person.

    Args:
        caller: Who answers, by their authenticated context.
        owner: Whose trip it is.

    Raises:
        BadAnswer: it is from someone else.
    """
    if owner is not None and caller.owner != owner:
        raise BadAnswer(f"{caller.actor} may not answer for another tenant or user")
    if caller.role != CUSTOMER or caller.actor != caller.owner["user_id"]:
        raise BadAnswer(f"{caller.actor} as {caller.role} may not answer for the traveller")


def _since(history: Sequence[Quote], seen: int, quote: Quote) -> list[Any]:
    """Returns what differs from the version that the traveller answered, where that is an earlier one."""
    old: Mapping[str, Any] | None = next((each for each in history if each["quote_version"] == seen), None)
    return list(changes_between(old, quote)) if old and seen != quote["quote_version"] else []


def _seen(raw: object) -> int:
    version = raw.get("quote_version") if isinstance(raw, Mapping) else None
    return version if isinstance(version, int) and not isinstance(version, bool) else 0
