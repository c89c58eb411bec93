"""Approving a refund: what a person is shown, what they may answer, and what a refund must not contradict."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from graphs.common.owners import Caller, Owner
from graphs.support_refunds.catalog import MONEY
from graphs.support_refunds.policy import Policy


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Approve(_Answer):
    """The refund goes out as it is."""

    decision: Literal["approve"]


class Edit(_Answer):
    """The refund goes out with another amount."""

    decision: Literal["edit"]
    amount: str = Field(pattern=MONEY)
    reason: str = Field(default="", max_length=200)


class Reject(_Answer):
    """No refund; the reason goes to the agent."""

    decision: Literal["reject"]
    reason: str = Field(min_length=1, max_length=200)


Answer = Approve | Edit | Reject
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="decision")])


class BadAnswer(ValueError):
    """The answer cannot be used; the message says why, for whoever is asked again."""


def read_answer(
    raw: object,
    *,
    args: Mapping[str, Any],
    order: Mapping[str, Any],
    caller: Caller,
    owner: Owner | None,
    policy: Policy,
) -> Answer:
    """Reads an answer to an approval.

    Args:
        raw: What was answered.
        args: The refund call's arguments.
        order: The order's record.
        caller: Who answers, by their authenticated context.
        owner: Whose thread it is.
        policy: Which roles may answer.

    Raises:
        BadAnswer: it is malformed, from someone who may not approve, or its amount contradicts the order.
    """
    if caller.role not in policy.approver_roles or caller.actor == caller.owner["user_id"]:
        raise BadAnswer(f"{caller.actor} as {caller.role} may not approve refunds")
    if owner is not None and caller.owner != owner:
        raise BadAnswer(f"{caller.actor} may not act for another tenant or user")
    try:
        answer = _ANSWER.validate_python(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise BadAnswer(f"{path}: {first['msg']}") from error
    if isinstance(answer, Edit):
        problem = contradiction({**args, "amount": answer.amount}, order)
        if problem:
            raise BadAnswer(problem)
    return answer


def question(call_id: str, args: Mapping[str, Any], order: Mapping[str, Any], problem: str) -> dict[str, Any]:
    """Returns what the approver is shown. `problem` is what was wrong with the previous answer, '' the first time."""
    return {
        "kind": "approve_refund",
        "call_id": call_id,
        "order_id": args["order_id"],
        "amount": args["amount"],
        "currency": args["currency"],
        "reason": args["reason"],
        "order": {name: order.get(name) for name in ("status", "total", "refunded", "delivered_on")},
        "answers": ["approve", "edit (amount)", "reject (reason)"],
        "problem": problem,
    }


def contradiction(args: Mapping[str, Any], order: Mapping[str, Any] | None) -> str:
    """Says what is wrong with a refund call, '' where nothing is: the order must be known and cover the amount."""
    if order is None:
        return f"order {args.get('order_id')} was not looked up in this conversation"
    try:
        amount, total, refunded = (Decimal(str(text)) for text in (args["amount"], order["total"], order["refunded"]))
    except (KeyError, InvalidOperation):
        return "the amounts of the call or of the order cannot be read"
    if args.get("currency") != order.get("currency"):
        return f"currency {args.get('currency')} is not the order's, {order.get('currency')}"
    if amount <= 0:
        return f"amount {amount} is not above zero"
    if amount > total - refunded:
        return f"amount {amount} is above what is left of the order, {total - refunded}"
    return ""
