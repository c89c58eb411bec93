"""The refund decision: what is owed on an order by what the prompt and the policy say. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

_CENT = Decimal("0.01")
_WINDOW_RULE = re.compile(r"refunded only within the policy's window_days of delivery", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a prompt tells the model to apply."""

    applies_window: bool

    @classmethod
    def of_prompt(cls, prompt: str) -> Rules:
        """Reads the rules from a system prompt: a rule that is not written is not applied."""
        return cls(applies_window=_WINDOW_RULE.search(prompt) is not None)


@dataclass(frozen=True, slots=True)
class Decision:
    """An amount that is due, or None with the reason why nothing is."""

    amount: Decimal | None
    because: str


def decide(order: Mapping[str, Any], policy: Mapping[str, Any], topic: str, rules: Rules, today: date) -> Decision:
    """Decides one order.

    Args:
        order: The record that lookup_order gave; amounts are decimal text in `currency`.
        policy: What get_refund_policy gave for the topic.
        topic: The customer's reason.
        rules: What the prompt says.
        today: The day of the customer's message.
    """
    remaining = _money(order["total"]) - _money(order["refunded"])
    status = order["status"]
    if remaining <= 0:
        return Decision(None, "it was refunded already")
    if status == "lost":
        return Decision(remaining, "the carrier lost it")
    if topic == "cancelled":
        return (
            Decision(remaining, "it was cancelled")
            if status == "cancelled"
            else Decision(None, f"it is {_words(status)}")
        )
    if status != "delivered":
        return Decision(None, f"your order is {_words(status)}")
    if topic == "lost":
        return Decision(None, f"your order was delivered on {order['delivered_on']}")
    return _after_delivery(order, policy, topic, rules, today, remaining)


def _after_delivery(
    order: Mapping[str, Any], policy: Mapping[str, Any], topic: str, rules: Rules, today: date, remaining: Decimal
) -> Decision:
    if topic == "return" and not order["eligible"]:
        return Decision(None, "these goods cannot be returned")
    window = policy.get("window_days")
    n_days = (today - date.fromisoformat(order["delivered_on"])).days
    if rules.applies_window and window is not None and n_days > window:
        return Decision(None, f"it was delivered {n_days} days ago and the policy allows {window}")
    owed = remaining - _money(order["shipping"]) if policy["covers"] == "goods" else remaining
    return Decision(owed, "the policy covers it") if owed > 0 else Decision(None, "nothing is left to pay back")


def _money(text: object) -> Decimal:
    return Decimal(str(text)).quantize(_CENT)


def _words(status: str) -> str:
    return status.replace("_", " ")
