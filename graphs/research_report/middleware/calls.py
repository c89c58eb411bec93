"""What middlewares read in a tool call's request and in a conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest


def configurable() -> Mapping[str, Any]:
    """Returns the `configurable` of the run that this code is called in."""
    return get_config().get("configurable", {})


def state_of(request: ToolCallRequest) -> Mapping[str, Any]:
    """Returns the state that a tool is called with."""
    return cast(Mapping[str, Any], request.state)


def refusal(call: ToolCall, problem: str | Mapping[str, Any]) -> ToolMessage:
    """Answers a call with an error that the model reads: a sentence, or a JSON object."""
    text = problem if isinstance(problem, str) else json.dumps(problem, ensure_ascii=False)
    return ToolMessage(text, name=call["name"], tool_call_id=str(call["id"]), status="error")


def last_ai(messages: Sequence[AnyMessage]) -> AIMessage | None:
    """Returns the agent's latest message."""
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def earlier_calls(messages: Sequence[AnyMessage], call: ToolCall) -> list[ToolCall]:
    """Returns the calls of the same tool before this one, in the order they were made."""
    made = [
        each
        for message in messages
        if isinstance(message, AIMessage)
        for each in message.tool_calls
        if each["name"] == call["name"]
    ]
    places = [place for place, each in enumerate(made) if each["id"] == call["id"]]
    return made[: places[-1]] if places else made


def answers(messages: Sequence[AnyMessage]) -> dict[str, ToolMessage]:
    """Returns the tool messages of a conversation, by the id of the call that they answer."""
    return {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
