"""An agent made with `create_agent`, with middleware around its tools."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.tools import tool

from tests.catalog.scripted import ScriptedModel
from tests.strangers.scripts import two_orders_then_refund

WORLD: list[str] = []


@tool
def lookup_order(order_id: str) -> str:
    """Looks an order up."""
    WORLD.append(order_id)
    return f'{{"order_id": "{order_id}", "status": "lost"}}'


@tool
def issue_refund(order_id: str) -> str:
    """Pays money back."""
    WORLD.append(f"refund {order_id}")
    return f"refunded {order_id}"


@wrap_tool_call
async def shout(request: Any, handler: Any) -> Any:
    message = await handler(request)
    return message.model_copy(update={"additional_kwargs": {"shouted": True}})


graph = create_agent(
    ScriptedModel(script=two_orders_then_refund), tools=[lookup_order, issue_refund], middleware=[shout]
)
