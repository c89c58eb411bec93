"""The scripted model: triage and both agents, deciding from the prompt and from parsed tool results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.messages.tool import ToolCall

from agentctl.testing import Turn
from graphs.support_refunds.decisions import Decision, Rules, decide
from graphs.support_refunds.facts import Facts, facts_of

SLIP_RATE = 0.4
"""Share of answers at temperature 1 in which the model overlooks what the carrier reported."""

_TICKET = re.compile(r"conversation is ticket (\S+)\.")
_TODAY = re.compile(r"Today is (\d{4}-\d{2}-\d{2})\.")
_METHOD = re.compile(r"refund_method = (\w+)")
_MAX_LOOKUPS = 2
_ESCALATED = "I could not check your order, so I have passed your request to a colleague."


def support_script(turn: Turn) -> AIMessage:
    """Answers for whichever part of the workflow asks: the tools that are bound tell which."""
    if turn.tools == ("Route",):
        return _route(turn)
    if "issue_refund" in turn.tools:
        return _refunds(turn)
    return _orders(turn)


def _route(turn: Turn) -> AIMessage:
    text = facts_of(turn.messages).text.lower()
    named = dict(re.findall(r"^(\w+): (.+)$", _prompt(turn), re.MULTILINE))
    words = [word.strip().lower() for word in named.get("refunds_agent", "").split(",")]
    agent = (
        "refunds_agent" if any(re.search(rf"\b{re.escape(word)}", text) for word in words if word) else "orders_agent"
    )
    return _calling(turn.call("Route", {"agent": agent}))


def _orders(turn: Turn) -> AIMessage:
    facts = facts_of(turn.messages)
    if not facts.order_ids:
        return AIMessage("Which order is it about? Please give me its number.")
    wanted = _lookups(facts)
    if wanted is None:
        return _escalate(turn, facts)
    if wanted:
        return _calling(*(turn.call(name, args, position) for position, (name, args) in enumerate(wanted)))
    return AIMessage(" ".join(_status_line(order_id, _order(facts, order_id)) for order_id in facts.order_ids))


def _refunds(turn: Turn) -> AIMessage:
    facts = facts_of(turn.messages)
    preference = _preference(facts)
    if preference and not facts.order_ids:
        if not facts.of("remember_preference"):
            return _calling(turn.call("remember_preference", preference))
        return AIMessage("Thank you, I have noted that.")
    if not facts.order_ids:
        return AIMessage("Which order is it about? Please give me its number.")
    if facts.topic is None:
        return AIMessage(
            "What happened: did it not arrive, is it damaged, was it cancelled, or do you want to return it?"
        )
    wanted = _lookups(facts, topic=facts.topic)
    if wanted is None:
        return _escalate(turn, facts)
    if preference and not facts.of("remember_preference"):
        wanted.append(("remember_preference", preference))
    if wanted:
        return _calling(*(turn.call(name, args, position) for position, (name, args) in enumerate(wanted)))
    return _settle(turn, facts)


def _settle(turn: Turn, facts: Facts) -> AIMessage:
    """Decides, refunds, tells the customer, in the order that the conversation has reached."""
    decisions = {order_id: _decision(turn, facts, order_id) for order_id in facts.order_ids}
    due = {order_id: decision for order_id, decision in decisions.items() if decision.amount is not None}
    if "how much" in facts.text.lower():
        return AIMessage(" ".join(_quote_line(facts, order_id, decisions[order_id]) for order_id in facts.order_ids))
    open_refunds = [order_id for order_id in due if not facts.of("issue_refund", order_id=order_id)]
    if open_refunds:
        return _calling(
            *(_refund_call(turn, facts, order_id, due[order_id], i) for i, order_id in enumerate(open_refunds))
        )
    paid = [order_id for order_id in due if facts.latest("issue_refund", order_id=order_id)]
    if paid and not facts.of("update_ticket"):
        return _calling(*_closing_calls(turn, facts, paid))
    return AIMessage(" ".join(_outcome_line(facts, order_id, decisions[order_id]) for order_id in facts.order_ids))


def _lookups(facts: Facts, topic: str | None = None) -> list[tuple[str, dict[str, Any]]] | None:
    """Returns the look-ups still to be made, or None when one has failed too often."""
    queries: list[tuple[str, dict[str, Any]]] = [
        ("lookup_order", {"order_id": order_id}) for order_id in facts.order_ids
    ]
    if topic is not None:
        queries.append(("get_refund_policy", {"topic": topic}))
    missing = [(name, args) for name, args in queries if facts.latest(name, **args) is None]
    if any(len(facts.of(name, **args)) >= _MAX_LOOKUPS for name, args in missing):
        return None
    return missing


def _escalate(turn: Turn, facts: Facts) -> AIMessage:
    if facts.of("update_ticket"):
        return AIMessage(_ESCALATED)
    failed = next((call for call in reversed(facts.calls) if call.failed), None)
    note = f"{failed.name} failed twice" if failed else "a look-up failed twice"
    return _calling(turn.call("update_ticket", {"ticket_id": _ticket(turn), "status": "escalated", "note": note}))


def _decision(turn: Turn, facts: Facts, order_id: str) -> Decision:
    order, topic = _order(facts, order_id), str(facts.topic)
    policy = facts.latest("get_refund_policy", topic=topic) or {}
    today = date.fromisoformat(_found(_TODAY, _prompt(turn)))
    if order["status"] == "lost" and not facts.of("issue_refund", order_id=order_id) and turn.slips(SLIP_RATE):
        return Decision(None, "your parcel is still on its way")
    return decide(order, policy, topic, Rules.of_prompt(_prompt(turn)), today)


def _refund_call(turn: Turn, facts: Facts, order_id: str, decision: Decision, position: int) -> ToolCall:
    args = {
        "order_id": order_id,
        "amount": f"{decision.amount:.2f}",
        "currency": _order(facts, order_id)["currency"],
        "reason": str(facts.topic),
    }
    preferred = _METHOD.search(_prompt(turn))
    if preferred and preferred.group(1) != "original_payment":
        args["method"] = preferred.group(1)
    return turn.call("issue_refund", args, position)


def _closing_calls(turn: Turn, facts: Facts, paid: list[str]) -> list[ToolCall]:
    calls = [
        turn.call(
            "send_email",
            {"order_id": order_id, "subject": f"Your refund for order {order_id}", "body": _paid_line(facts, order_id)},
            position,
        )
        for position, order_id in enumerate(paid)
    ]
    note = f"refunded {', '.join(paid)}"
    ticket = {"ticket_id": _ticket(turn), "status": "resolved", "note": note}
    return [*calls, turn.call("update_ticket", ticket, len(calls))]


def _outcome_line(facts: Facts, order_id: str, decision: Decision) -> str:
    if decision.amount is None:
        return f"No refund is due on order {order_id}: {decision.because}."
    if facts.latest("issue_refund", order_id=order_id):
        return _paid_line(facts, order_id)
    return f"I could not refund order {order_id}: {_refusal(facts, order_id)}"


def _paid_line(facts: Facts, order_id: str) -> str:
    refund = facts.latest("issue_refund", order_id=order_id) or {}
    asked = facts.of("issue_refund", order_id=order_id)[-1].args
    how = " as store credit" if asked.get("method") == "store_credit" else ""
    return f"Your refund of {refund.get('amount')} {refund.get('currency')} for order {order_id} is on its way{how}."


def _refusal(facts: Facts, order_id: str) -> str:
    answer = facts.of("issue_refund", order_id=order_id)[-1].answer
    return str(answer.content) if answer is not None else "it is not finished."


def _quote_line(facts: Facts, order_id: str, decision: Decision) -> str:
    if decision.amount is None:
        return f"No refund is due on order {order_id}: {decision.because}."
    return f"For order {order_id} you would get {decision.amount:.2f} {_order(facts, order_id)['currency']} back."


def _status_line(order_id: str, order: Mapping[str, Any]) -> str:
    status = str(order["status"]).replace("_", " ")
    if order["status"] == "delivered":
        return f"Order {order_id} was delivered on {order['delivered_on']}."
    if order["status"] == "lost":
        return f"Order {order_id} is marked as lost. There is nothing more that I can do here."
    return f"Order {order_id} is {status}."


def _preference(facts: Facts) -> dict[str, str] | None:
    """Reads a wish about future refunds from the customer's words."""
    text = facts.text.lower()
    if not re.search(r"\b(always|prefer|from now on|next time)\b", text):
        return None
    if "store credit" in text:
        return {"name": "refund_method", "value": "store_credit"}
    if re.search(r"original payment|my card|bank account", text):
        return {"name": "refund_method", "value": "original_payment"}
    return None


def _order(facts: Facts, order_id: str) -> dict[str, Any]:
    return facts.latest("lookup_order", order_id=order_id) or {}


def _prompt(turn: Turn) -> str:
    return "\n".join(str(message.content) for message in turn.messages if isinstance(message, SystemMessage))


def _ticket(turn: Turn) -> str:
    return _found(_TICKET, _prompt(turn))


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if match is None:
        raise ValueError(f"the prompt has no {pattern.pattern!r}")
    return match.group(1)


def _calling(*calls: ToolCall) -> AIMessage:
    return AIMessage("", tool_calls=list(calls))
