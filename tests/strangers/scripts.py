"""What the models of the strangers say: pure functions of the messages."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


def _call(name: str, call_id: str, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def _said(messages: list[BaseMessage]) -> list[str]:
    last = max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage))
    return [message.text for message in messages[last:] if isinstance(message, ToolMessage)]


def two_orders_then_refund(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    """Looks two orders up at once, refunds those that are lost, and says what it did."""
    said = _said(messages)
    if not said:
        return AIMessage(
            "", tool_calls=[_call("lookup_order", "c1", order_id="A1"), _call("lookup_order", "c2", order_id="B2")]
        )
    refunds = [text for text in said if text.startswith("refunded")]
    lost = [order for order, text in zip(("A1", "B2"), said, strict=False) if '"lost"' in text]
    if len(refunds) < len(lost):
        order = lost[len(refunds)]
        return AIMessage("", tool_calls=[_call("issue_refund", f"r-{order}", order_id=order)])
    return AIMessage("; ".join(refunds) or "No refund is due.")


def research(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    """Writes a todo, lets the subagent look, notes what it found, and reports."""
    said = _said(messages)
    if "task" not in bound:
        if said:
            return AIMessage(f"found {said[-1]}")
        return AIMessage("", tool_calls=[_call("lookup_order", "s1", order_id="A1")])
    todo = {"content": "look the order up", "status": "in_progress"}
    steps = [
        _call("write_todos", "d1", todos=[todo]),
        _call("task", "d2", description="What happened to A1?", subagent_type="researcher"),
        _call("write_file", "d3", file_path="/notes.md", content="A1 is lost"),
        _call("read_file", "d4", file_path="/notes.md"),
    ]
    return AIMessage("", tool_calls=[steps[len(said)]]) if len(said) < len(steps) else AIMessage(f"Done: {said[1]}")
