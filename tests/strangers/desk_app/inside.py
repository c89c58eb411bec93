"""A graph built inside a function; its tools are given state, memory store, runtime and call id, and a context."""

from dataclasses import dataclass
from typing import Annotated

from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime, tools_condition
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from .model import Model
from .world import happened, look_up, pay_back


@dataclass
class Context:
    region: str


@tool
def lookup_order(
    order_id: str,
    state: Annotated[dict, InjectedState],
    store: Annotated[BaseStore, InjectedStore()],
    tool_call_id: Annotated[str, InjectedToolCallId],
) -> dict:
    """Looks an order up."""
    store.put(("orders",), order_id, {"asked": len(state["messages"]), "by": tool_call_id})
    return look_up(order_id)


@tool
def issue_refund(order_id: str, runtime: ToolRuntime[Context]) -> str:
    """Pays money back."""
    happened(f"asked the bank of {runtime.context.region}")
    return pay_back(order_id)


def make():
    tools = [lookup_order, issue_refund]
    model = Model().bind_tools(tools)
    builder = StateGraph(MessagesState, context_schema=Context)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(store=InMemoryStore())
