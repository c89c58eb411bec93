"""A hand-made loop around a ToolNode that turns every error into a message."""

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

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


TOOLS = [lookup_order, issue_refund]
model = ScriptedModel(script=two_orders_then_refund).bind_tools(TOOLS)


def agent(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_node("tools", ToolNode(TOOLS, handle_tool_errors=True))
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", tools_condition)
builder.add_edge("tools", "agent")
