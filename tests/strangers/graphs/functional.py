"""The functional API: tools called in tasks, side by side."""

from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph.message import add_messages

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


TOOLS = {made.name: made for made in (lookup_order, issue_refund)}
model = ScriptedModel(script=two_orders_then_refund).bind_tools(list(TOOLS.values()))


@task
def act(call: dict) -> ToolMessage:
    return TOOLS[call["name"]].invoke({**call, "type": "tool_call"})


@entrypoint()
def graph(state: dict) -> dict:
    messages: list[AnyMessage] = list(state["messages"])
    while True:
        said = model.invoke(messages)
        messages = add_messages(messages, [said])
        if not said.tool_calls:
            return {"messages": messages}
        messages = add_messages(messages, [waiting.result() for waiting in [act(call) for call in said.tool_calls]])
