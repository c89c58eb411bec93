"""A deep agent whose subagent has the only tools that do anything."""

from deepagents import create_deep_agent
from langchain_core.tools import tool

from .model import Model
from .world import look_up, pay_back


@tool
def lookup_order(order_id: str) -> dict:
    """Looks an order up."""
    return look_up(order_id)


@tool
def issue_refund(order_id: str) -> str:
    """Pays money back."""
    return pay_back(order_id)


def make():
    researcher = {
        "name": "researcher",
        "description": "Looks things up.",
        "system_prompt": "Look it up.",
        "tools": [lookup_order, issue_refund],
    }
    return create_deep_agent(model=Model(), tools=[], subagents=[researcher])
