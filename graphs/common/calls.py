"""Tools that a node calls by itself: the thread keeps what was asked and what came back, as a pair of messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from agentctl.sandbox.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Called:
    """A call that was made.

    Attributes:
        content: What the tool gave: parsed where it is JSON text.
        failed: Whether the tool answered with an error; `content` is its text then.
        messages: The AI message with the call and the tool message that answers it, for a channel with `add_messages`.
    """

    content: Any
    failed: bool
    messages: list[AnyMessage]


def call_tool(tools: ToolRegistry, name: str, args: Mapping[str, Any], *, id: str, config: RunnableConfig) -> Called:
    """Calls a tool and keeps the call.

    Message ids are derived from the call's, so that a node which runs again replaces its pair instead of adding one.

    Args:
        tools: The registry.
        name: The tool.
        args: Its arguments: nothing of the thread in them, or no copy of it would be answered from its recording.
        id: The call's id: derived from the operation and its item or version, never from thread, time or chance.
        config: The node's.

    Raises:
        KeyError: the registry lacks the tool.
    """
    call = {"name": name, "args": dict(args), "id": id, "type": "tool_call"}
    answer = tools[name].invoke(call, config)
    if not isinstance(answer, ToolMessage):
        raise TypeError(f"{name} answered with {type(answer).__name__}, not with a message")
    failed = answer.status == "error"
    asked = AIMessage("", id=f"{id}:asked", tool_calls=[{"name": name, "args": dict(args), "id": id}])
    answered = answer.model_copy(update={"id": f"{id}:answered"})
    return Called(answer.text if failed else _parsed(answer), failed, [asked, answered])


def _parsed(answer: ToolMessage) -> Any:
    try:
        return json.loads(answer.text)
    except ValueError:
        return answer.text
