"""Schemas of tool results: one that is malformed or contradicts itself never reaches the model as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from graphs.support_refunds.catalog import MONEY, Topic

Money = Annotated[str, Field(pattern=MONEY)]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
OrderStatus = Literal["processing", "in_transit", "delivered", "lost", "cancelled"]


class InvalidResult(ValueError):
    """A tool's result is not what its schema says; the message names each field and what is wrong with it."""


class OrderLine(BaseModel):
    """One line of an order."""

    sku: str
    quantity: int = Field(ge=1)
    unit_price: Money


class Order(BaseModel):
    """The result of lookup_order."""

    order_id: str
    status: OrderStatus
    currency: Currency
    total: Money
    shipping: Money
    refunded: Money
    lines: list[OrderLine] = Field(min_length=1)
    eligible: bool
    ordered_on: date
    delivered_on: date | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Order:
        goods = sum((Decimal(line.unit_price) * line.quantity for line in self.lines), Decimal(0))
        expected = goods + Decimal(self.shipping)
        if Decimal(self.total) != expected:
            raise ValueError(f"total {self.total} is not the sum of its lines and shipping, {expected}")
        if Decimal(self.refunded) > Decimal(self.total):
            raise ValueError(f"refunded {self.refunded} is above the order's total {self.total}")
        if self.status == "delivered" and self.delivered_on is None:
            raise ValueError("status is delivered without delivered_on")
        if self.eligible and Decimal(self.refunded) == Decimal(self.total):
            raise ValueError("eligible although all of it was refunded")
        return self


class PolicyAnswer(BaseModel):
    """The result of get_refund_policy."""

    policy_version: str
    topic: Topic
    covers: Literal["full", "goods"]
    window_days: int | None = Field(default=None, ge=1, le=365)


class Refund(BaseModel):
    """The result of issue_refund."""

    refund_id: str = Field(min_length=1)
    order_id: str
    amount: Money
    currency: Currency
    status: Literal["accepted", "paid"]


_SCHEMAS: Mapping[str, type[BaseModel]] = {
    "lookup_order": Order,
    "get_refund_policy": PolicyAnswer,
    "issue_refund": Refund,
}
_ECHOED = {
    "lookup_order": ("order_id",),
    "get_refund_policy": ("topic",),
    "issue_refund": ("order_id", "amount", "currency"),
}


def check_result(tool: str, args: Mapping[str, object], content: str) -> None:
    """Checks the text of a tool's result against the tool's schema and against what was asked.

    Raises:
        InvalidResult: it is not JSON, lacks a field, contradicts itself or answers another question.
    """
    schema = _SCHEMAS.get(tool)
    if schema is None:
        return
    try:
        result = schema.model_validate_json(content)
    except ValidationError as error:
        raise InvalidResult("; ".join(_problem(dict(entry)) for entry in error.errors(include_url=False))) from error
    answered = json.loads(content)
    for name in _ECHOED[tool]:
        if name in args and answered.get(name) != args[name]:
            raise InvalidResult(f"{name} is {getattr(result, name)}, but {args[name]} was asked for")


def _problem(entry: Mapping[str, object]) -> str:
    location = entry.get("loc")
    path = ".".join(str(part) for part in location) if isinstance(location, tuple) else ""
    message = str(entry.get("msg", "")).removeprefix("Value error, ")
    if not path:
        return message
    return f"{path} is {json.dumps(entry.get('input'), default=str)}: {message}"
