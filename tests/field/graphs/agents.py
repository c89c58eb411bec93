"""Agents whose tool has an effect, and refuses to have it where nobody meant it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

LIVE = ContextVar("live", default=False)
N_ROUNDS = 3


@tool
def pay(number: int) -> str:
    """Pays an invoice."""
    if not LIVE.get():
        raise RuntimeError("paid although nobody meant to")
    return f"paid {number}"


def agent(state: MessagesState) -> dict[str, Any]:
    done = sum(message.type == "tool" for message in state["messages"])
    if done == N_ROUNDS:
        return {"messages": [AIMessage("all paid")]}
    return {"messages": [AIMessage("", tool_calls=[{"name": "pay", "args": {"number": done}, "id": f"c{done}"}])]}


async def async_agent(state: MessagesState) -> dict[str, Any]:
    return agent(state)


def _loop(node: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", node)
    builder.add_node("tools", ToolNode([pay]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile()


def echo(state: MessagesState) -> dict[str, Any]:
    asked = [str(message.content) for message in state["messages"] if message.type == "human"]
    return {"messages": [AIMessage(f"reply to {' and '.join(asked)}")]}


loop = _loop(agent)
async_loop = _loop(async_agent)
chat = StateGraph(MessagesState).add_node("agent", echo).add_edge(START, "agent").compile()
