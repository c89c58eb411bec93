"""The tools' names, arguments, descriptions and effects: written once, so that production and sandbox cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from graphs.common.catalog import ToolSpec, build_registry

Topic = Literal["lost", "damaged", "return", "cancelled"]
Method = Literal["original_payment", "store_credit"]
MONEY = r"^\d{1,7}\.\d{2}$"


class LookupOrder(BaseModel):
    """Arguments of lookup_order."""

    order_id: str = Field(description="The order's number, such as A1042.", pattern=r"^[A-Z]\d{3,8}$")


class GetRefundPolicy(BaseModel):
    """Arguments of get_refund_policy."""

    topic: Topic = Field(description="The customer's reason.")


class IssueRefund(BaseModel):
    """Arguments of issue_refund."""

    order_id: str = Field(description="The order's number.", pattern=r"^[A-Z]\d{3,8}$")
    amount: str = Field(description="Amount in the order's currency with two decimals, such as 120.00.", pattern=MONEY)
    currency: str = Field(description="Currency code of the order.", pattern=r"^[A-Z]{3}$")
    reason: Topic = Field(description="The customer's reason.")
    method: Method = Field(default="original_payment", description="How the customer is paid.")


class SendEmail(BaseModel):
    """Arguments of send_email."""

    order_id: str = Field(description="The order; the message goes to the address kept with it.")
    subject: str = Field(max_length=120, description="Subject line.")
    body: str = Field(max_length=2000, description="Plain text.")


class UpdateTicket(BaseModel):
    """Arguments of update_ticket."""

    ticket_id: str = Field(description="The ticket of this conversation.")
    status: Literal["open", "resolved", "escalated"] = Field(description="The ticket's new status.")
    note: str = Field(max_length=500, description="One line for colleagues.")


class RememberPreference(BaseModel):
    """Arguments of remember_preference."""

    name: Literal["refund_method", "language"] = Field(description="What the preference is about.")
    value: str = Field(max_length=60, description="The preference.")


SPECS = (
    ToolSpec("lookup_order", "Looks an order up by its number.", LookupOrder, "read"),
    ToolSpec("get_refund_policy", "Reads what the policy says on a reason for a refund.", GetRefundPolicy, "read"),
    ToolSpec("issue_refund", "Refunds an order; larger ones wait for a person's approval.", IssueRefund, "write"),
    ToolSpec("send_email", "Sends the customer an e-mail about an order.", SendEmail, "write"),
    ToolSpec("update_ticket", "Sets the ticket's status and leaves a note.", UpdateTicket, "write"),
    ToolSpec("remember_preference", "Remembers what a customer prefers in future.", RememberPreference, "write"),
)
NAMES = tuple(spec.name for spec in SPECS)
registry_of = partial(build_registry, SPECS)

ORDERS_TOOLS = ("lookup_order", "send_email", "update_ticket")
REFUNDS_TOOLS = NAMES
AGENT_TOOLS: Mapping[str, tuple[str, ...]] = {"orders_agent": ORDERS_TOOLS, "refunds_agent": REFUNDS_TOOLS}
