"""Tools that count how often they really ran, and the smallest agents around them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agentctl.records.messages import CallSite, Message


@dataclass
class World:
    """The outside: `ran` holds every call that reached it."""

    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def lookup(self, **extra: Any) -> BaseTool:
        def lookup_order(order_id: str) -> str:
            """Looks an order up."""
            self.ran.append(("lookup_order", {"order_id": order_id}))
            return json.dumps({"order_id": order_id, "status": "delivered"})

        return StructuredTool.from_function(lookup_order, **extra)

    def refund(self, **extra: Any) -> BaseTool:
        def issue_refund(order_id: str, amount: float) -> str:
            """Pays money back."""
            self.ran.append(("issue_refund", {"order_id": order_id, "amount": amount}))
            return "paid"

        return StructuredTool.from_function(issue_refund, **extra)

    def async_lookup(self) -> BaseTool:
        async def lookup_order(order_id: str) -> str:
            """Looks an order up."""
            self.ran.append(("lookup_order", {"order_id": order_id}))
            return json.dumps({"order_id": order_id, "status": "delivered"})

        return StructuredTool.from_function(coroutine=lookup_order)

    @property
    def n_ran(self) -> int:
        return len(self.ran)


def call(name: str, call_id: str, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def calling(*calls: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=list(calls))


def agent(
    tools: Sequence[BaseTool],
    script: Callable[[list[Any]], AIMessage],
    *,
    tool_node: ToolNode | None = None,
    **compiled: Any,
) -> Any:
    """Compiles agent -> tools -> agent, the model being a function of the messages."""

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [script(state["messages"])]}

    def route(state: MessagesState) -> str:
        return "tools" if state["messages"][-1].tool_calls else END

    graph = StateGraph(MessagesState)
    graph.add_node("agent", think)
    graph.add_node("tools", tool_node or ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", route, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=compiled.pop("checkpointer", InMemorySaver()), **compiled)


def once(*calls: dict[str, Any]) -> Callable[[list[Any]], AIMessage]:
    """A script that makes the calls and then repeats what the tools said."""

    def script(messages: list[Any]) -> AIMessage:
        said = [message.text for message in messages if isinstance(message, ToolMessage)]
        return AIMessage(" ".join(said)) if said else calling(*calls)

    return script


def ask(text: str = "where is my order?") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def tool_messages(result: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


def answered(
    name: str,
    content: object,
    args: dict[str, Any],
    *,
    call_id: str = "c1",
    pending_at: str = "2",
    answered_at: str | None = "3",
    status: str = "success",
    raw: dict[str, object] | None = None,
    ns: str = "",
) -> CallSite:
    """A call site whose answer is recorded."""
    text = content if isinstance(content, str) else ""
    message = Message("tool", "m1", content, text, name=name, tool_call_id=call_id, status=status, raw=raw or {})
    return CallSite(name, call_id, args, 1, ns, pending_at, answered_at, message, 0, "ai1")
