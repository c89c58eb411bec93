"""A small application for command-line tests: an agent that answers about orders and asks before it pays back."""

from __future__ import annotations

import json
from typing import Any, NotRequired, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph

from agentctl.sandbox.registry import ToolRegistry
from tests.catalog.scripted import ScriptedModel

PAID: list[str] = []
"""Every refund that was really paid."""


def _call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "id": call_id, "args": args, "type": "tool_call"}


def _script(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    last = max(i for i, message in enumerate(messages) if isinstance(message, HumanMessage))
    said = [str(message.content) for message in messages[last:] if isinstance(message, ToolMessage)]
    turn = len(messages)
    if not said:
        calls = [_call("lookup_order", f"c{turn}", order_id="A1"), _call("get_policy", f"p{turn}", topic="lost")]
        return AIMessage("", id=f"ai-{turn}", tool_calls=calls)
    if len(said) == 2 and '"lost"' in said[0]:
        return AIMessage("", id=f"ai-{turn}", tool_calls=[_call("issue_refund", f"r{turn}", order_id="A1", amount=120)])
    text = "Your refund is on its way." if len(said) > 2 else "No refund is due: your order was delivered."
    return AIMessage(text, id=f"ai-{turn}")


def _tools(status: str, *, real: bool) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(effect="read")
    def lookup_order(order_id: str) -> str:
        """Looks an order up."""
        return json.dumps({"order_id": order_id, "status": status})

    @registry.register(effect="read")
    def get_policy(topic: str) -> str:
        """Reads the policy."""
        return json.dumps({"topic": topic, "days": 30})

    @registry.register(effect="write")
    def issue_refund(order_id: str, amount: int) -> str:
        """Pays money back."""
        if real:
            PAID.append(order_id)
        return json.dumps({"order_id": order_id, "refunded": amount})

    return registry


def sandbox() -> ToolRegistry:
    return _tools("lost", real=False)


def production() -> ToolRegistry:
    return _tools("delivered", real=True)


def build_graph(tools: ToolRegistry, *, model: Any = None, memory: Any = None) -> Any:
    """The agent on a registry; refunds wait for a person."""
    return create_agent(
        ScriptedModel(script=_script),
        tools=tools.only(*tools.names),
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"issue_refund": True})],
    )


def agent() -> Any:
    """The agent on production tools, as a graph of its own."""
    tools = production()
    return create_agent(ScriptedModel(script=_script), tools=tools.only(*tools.names))


class State(TypedDict):
    n: NotRequired[int]


def raising() -> Any:
    """A graph whose node raises, after printing to stdout."""

    def work(state: State) -> State:
        print("noise on stdout")
        raise ValueError("the shop is closed")

    return StateGraph(State).add_node("work", work).add_edge(START, "work").compile()


def printing() -> Any:
    """A graph whose node prints to stdout."""

    def work(state: State) -> State:
        print("noise on stdout")
        return {"n": state.get("n", 0) + 1}

    return StateGraph(State).add_node("work", work).add_edge(START, "work").compile()
