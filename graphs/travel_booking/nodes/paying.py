"""Paying: the holds are checked once more, a marker is written, then the provider is asked once, under one key."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphs.travel_booking import money
from graphs.travel_booking.holds import is_in_force
from graphs.travel_booking.nodes.checks import check_holds
from graphs.travel_booking.nodes.kit import Kit, handoff, progress
from graphs.travel_booking.nodes.quoting import back_to_agent
from graphs.travel_booking.payment import is_settled, shares
from graphs.travel_booking.state import Approval, Payment, Quote, Refund, TravelState


@dataclass(frozen=True, slots=True)
class PayingNodes:
    """The nodes between an approval and a ticket. No model can call them."""

    kit: Kit

    def recheck(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[
        Literal["approval", "payments", "flight_agent", "hotel_agent", "ask_traveller", "capture", "ticketing"]
    ]:
        """Checks the holds and their prices against the approved quote, then writes the marker of a pending capture.

        The check comes before the marker: once a charge may have been made nothing may turn back any more.
        """
        self.kit.check(state, config)
        quote, payment = state["quote"] or Quote(), state.get("payment")
        version = quote["quote_version"]
        if not _is_approved(state, quote):
            return Command(goto="approval")
        if is_settled(payment, version):
            return Command(goto="ticketing")
        fare, room = check_holds(self.kit, state, f"recheck_hold:{version}", config)
        found: dict[str, Any] = {
            "messages": [*fare.messages, *room.messages],
            "flight_hold": fare.hold,
            "hotel_hold": room.hold,
        }
        if fare.lapsed or room.lapsed:
            return back_to_agent(self.kit, state, fare, room, source="recheck", update=found)
        if fare.changed or room.changed or _other_holds(state, quote):
            record = handoff("recheck", "payments", "re_price", "the price has changed since the quote")
            return Command(goto="payments", update={**found, "handoffs": [record]})
        return Command(goto="capture", update={**found, "payment": _pending(payment, quote)})

    def capture(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["recheck", "payments", "ticketing"]]:
        """Moves the money of the approved quote, once: its key is the thread and the quote's version.

        Amount and currency come from the stored quote. A refused charge routes back; no other card is tried.
        """
        self.kit.check(state, config)
        quote, payment = state["quote"] or Quote(), state.get("payment")
        version = quote["quote_version"]
        if is_settled(payment, version):
            return Command(goto="ticketing")
        if payment is None or (payment["status"], payment["quote_version"]) != ("pending", version):
            return Command(goto="recheck")
        due = money.amount(quote.get("due", quote["total"]))
        if due > 0:
            return self._charge(state, payment, quote, due, config)
        paid, messages = refund(self.kit, payment, -due, f"quote {version} costs less", f"refund:{version}", config)
        progress("payment settled")
        settled: Payment = {**paid, "status": "settled", "quote_version": version}
        return Command(goto="ticketing", update={"messages": messages, "payment": settled})

    def _charge(
        self, state: TravelState, payment: Payment, quote: Quote, due: Decimal, config: RunnableConfig
    ) -> Command[Any]:
        version, approval = quote["quote_version"], state["approval"] or Approval()
        args = {
            "quote_version": version,
            "amount": money.text(due),
            "currency": quote["currency"],
            "payment_method": approval["payment_method"],
            "step_up": approval.get("step_up", ""),
        }
        called = self.kit.call("capture_payment", args, id=f"capture:{version}", config=config)
        if called.failed:
            declined: Payment = {
                **payment,
                "status": "declined",
                "failure": str(called.content),
                "n_failures": payment.get("n_failures", 0) + 1,
            }
            record = handoff("capture", "payments", "re_price", f"the payment was refused: {called.content}")
            progress("payment refused")
            return Command(
                goto="payments", update={"messages": called.messages, "payment": declined, "handoffs": [record]}
            )
        capture = {"payment_id": called.content["payment_id"], "quote_version": version, "amount": money.text(due)}
        settled: Any = {**payment, "status": "settled", "failure": "", "captures": [*payment["captures"], capture]}
        progress("payment captured")
        return Command(goto="ticketing", update={"messages": called.messages, "payment": settled})


def refund(
    kit: Kit, payment: Payment, owed: Decimal, reason: str, id: str, config: RunnableConfig
) -> tuple[Payment, list[AnyMessage]]:
    """Pays back, from the newest charge first, each part under its own key.

    Args:
        kit: The nodes' kit.
        payment: What was paid.
        owed: How much goes back; nothing where it is not above zero.
        reason: Why, for the provider.
        id: What the calls' ids begin with.
        config: The node's.

    Returns:
        The payment with the refunds, and the calls.
    """
    messages: list[AnyMessage] = []
    refunds = list(payment.get("refunds", []))
    for payment_id, share in shares(payment, owed):
        text = money.text(share)
        args = {"payment_id": payment_id, "amount": text, "currency": payment["currency"], "reason": reason}
        called = kit.call("refund_payment", args, id=f"{id}:{payment_id}", config=config)
        if called.failed:
            raise RefundRefused(f"{payment_id}: {called.content}")
        messages += called.messages
        refunds.append(Refund(refund_id=called.content["refund_id"], payment_id=payment_id, amount=text, reason=reason))
    return {**payment, "refunds": refunds}, messages


class RefundRefused(RuntimeError):
    """The provider refused to pay back what is owed: the run stops with its state saved, for a person to look."""


def _pending(payment: Payment | None, quote: Quote) -> Payment:
    old = payment or Payment(captures=[], refunds=[], n_failures=0)
    return {
        **old,
        "status": "pending",
        "quote_version": quote["quote_version"],
        "currency": quote["currency"],
        "failure": "",
    }


def _is_approved(state: TravelState, quote: Quote) -> bool:
    approval = state.get("approval") or Approval()
    return (approval.get("status"), approval.get("quote_version")) == ("approved", quote["quote_version"])


def _other_holds(state: TravelState, quote: Quote) -> bool:
    """Tells whether the quote is about other holds than those in state."""
    holds = (state.get("flight_hold"), state.get("hotel_hold"))
    present = {hold["hold_id"] for hold in holds if hold is not None and is_in_force(hold)}
    return present != {line["reference"] for line in quote["lines"]}
