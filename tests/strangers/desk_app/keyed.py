"""An agent made with `create_agent` that needs a key to be imported, with synchronous middleware and tools."""

import os

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call, wrap_tool_call
from langchain_core.tools import tool

from .model import Model
from .world import look_up, pay_back

KEY = os.environ["DESK_KEY"]


@tool
def lookup_order(order_id: str) -> dict:
    """Looks an order up."""
    return look_up(order_id)


@tool
def issue_refund(order_id: str) -> str:
    """Pays money back."""
    return pay_back(order_id)


@wrap_tool_call
def signed(request, handler):
    message = handler(request)
    return message.model_copy(update={"additional_kwargs": {"signed_with": KEY}})


@wrap_model_call
def asked_once(request, handler):
    return handler(request)


graph = create_agent(Model(), tools=[lookup_order, issue_refund], middleware=[signed, asked_once])
