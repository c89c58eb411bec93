"""Threads of the stock agents: `create_agent`, with and without a person in the loop, and `create_deep_agent`."""

from __future__ import annotations

import json
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, TodoListMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command

from tests.catalog.case import Saver, before, case, go
from tests.catalog.scripted import ScriptedModel


@tool
def lookup_order(order_id: str) -> str:
    """Looks an order up."""
    return json.dumps({"order_id": order_id, "status": "delivered", "total": 120.0})


@tool
def get_policy(topic: str) -> str:
    """Reads the refund policy."""
    return json.dumps({"topic": topic, "days": 30})


@tool
def issue_refund(order_id: str, amount: float) -> str:
    """Pays money back."""
    return json.dumps({"order_id": order_id, "refunded": amount})


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "id": call_id, "args": args, "type": "tool_call"}


def _answers(messages: list[BaseMessage]) -> int:
    """How many tool messages stand after the last human message."""
    last_human = max(i for i, message in enumerate(messages) if isinstance(message, HumanMessage))
    return sum(isinstance(message, ToolMessage) for message in messages[last_human:])


def _refund_script(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    turn = len(messages)
    match _answers(messages):
        case 0:
            calls = [call("lookup_order", "c1", order_id="A1"), call("get_policy", "c2", topic="lost")]
            return AIMessage("", id=f"ai-{turn}", tool_calls=calls)
        case 2 if any('"lost"' in str(m.content) and "A1" in str(m.content) for m in messages):
            return AIMessage("", id=f"ai-{turn}", tool_calls=[call("issue_refund", "c3", order_id="A1", amount=120.0)])
        case 2:
            return AIMessage("No refund is due: your order was delivered.", id=f"ai-{turn}")
        case _:
            return AIMessage("Your refund is on its way.", id=f"ai-{turn}")


def _agent(saver: Saver | None) -> Any:
    return create_agent(
        ScriptedModel(script=_refund_script), tools=[lookup_order, get_policy, issue_refund], checkpointer=saver
    )


def _refund_at_once(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    turn = len(messages)
    if _answers(messages):
        return AIMessage("Done.", id=f"ai-{turn}")
    calls = [call("issue_refund", "c1", order_id="A1", amount=120.0), call("lookup_order", "c2", order_id="A1")]
    return AIMessage("", id=f"ai-{turn}", tool_calls=calls)


def _approving_agent(saver: Saver | None) -> Any:
    return create_agent(
        ScriptedModel(script=_refund_at_once),
        tools=[lookup_order, issue_refund],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"issue_refund": True})],
        checkpointer=saver,
    )


def _research_script(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    turn = len(messages)
    if "task" not in bound:
        if _answers(messages):
            return AIMessage("Order A1 was delivered.", id=f"sub-{turn}")
        return AIMessage("", id=f"sub-{turn}", tool_calls=[call("lookup_order", "s1", order_id="A1")])
    match _answers(messages):
        case 0:
            todo = {"content": "look the order up", "status": "in_progress"}
            return AIMessage("", id=f"ai-{turn}", tool_calls=[call("write_todos", "d1", todos=[todo])])
        case 1:
            calls = [
                call("task", "d2", description="What happened to order A1?", subagent_type="researcher"),
                call("write_file", "d3", file_path="/notes.md", content="order A1"),
            ]
            return AIMessage("", id=f"ai-{turn}", tool_calls=calls)
        case _:
            return AIMessage("Your order A1 was delivered.", id=f"ai-{turn}")


def _deep_agent(saver: Saver | None) -> Any:
    researcher = {
        "name": "researcher",
        "description": "Looks things up.",
        "system_prompt": "Look it up.",
        "tools": [lookup_order],
    }
    return create_deep_agent(
        model=ScriptedModel(script=_research_script),
        tools=[],
        middleware=[TodoListMiddleware()],
        subagents=[researcher],
        checkpointer=saver,
    )


def _ask(graph: Any, thread: str) -> None:
    go(graph, thread, {"messages": [HumanMessage("where is my order?", id="h-0")]})


def _ask_twice(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    go(graph, thread, {"messages": [HumanMessage("and now?", id="h-1")]})


def _correct(graph: Any, thread: str) -> None:
    """Replaces the recorded result after the tools ran, by the same message id, and runs on."""
    _ask(graph, thread)
    place = before(graph, thread, "model")
    results = [
        state
        for state in graph.get_state_history(place | {"configurable": {"thread_id": thread}})
        if state.next == ("model",) and _answers(state.values["messages"]) == 2
    ]
    found = next(m for m in results[0].values["messages"] if getattr(m, "name", None) == "lookup_order")
    lost = found.model_copy(update={"content": json.dumps({"order_id": "A1", "status": "lost", "total": 120.0})})
    graph.update_state(results[0].config, {"messages": [lost]}, as_node="tools")
    go(graph, thread, None)


def _approve(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    go(graph, thread, Command(resume={"decisions": [{"type": "approve"}]}))


CASES = (
    case("agent", _agent, _ask, "create_agent with two parallel tool calls"),
    case("agent two turns", _agent, _ask_twice, "create_agent asked twice; call ids repeat across turns"),
    case("agent corrected", _agent, _correct, "create_agent with one recorded result corrected by a fork"),
    case("agent asking", _approving_agent, _ask, "create_agent waiting for a person's approval"),
    case("agent approved", _approving_agent, _approve, "create_agent with an approved call"),
    case("deep agent", _deep_agent, _ask, "create_deep_agent with todos, a file and a task subagent"),
)
