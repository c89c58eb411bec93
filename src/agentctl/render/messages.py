"""Messages and tool calls as text."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.codec.jsontext import dumps
from agentctl.records.messages import Message, ToolCall
from agentctl.render.clean import clean

ROLE_STYLE = {"human": "bold", "ai": "green", "tool": "magenta", "system": "dim"}


def call_text(call: ToolCall) -> str:
    """Returns `lookup_order(order_id="A1")`; arguments that are not an object are shown as they are."""
    if isinstance(call.args, Mapping):
        return f"{call.name}({', '.join(f'{key}={dumps(value)}' for key, value in call.args.items())})"
    return f"{call.name}({clean(str(call.args))})"


def message_text(message: Message) -> str:
    """Returns a message's text on one line, or its calls where it has no text."""
    if message.text:
        return clean(message.text)
    return ", ".join(call_text(call) for call in message.tool_calls)


def message_document(message: Message | None) -> dict[str, object] | None:
    """Returns the JSON form of a message: role, id, text, content, name, tool_calls, tool_call_id, status."""
    if message is None:
        return None
    return {
        "role": message.role,
        "id": message.id,
        "text": message.text,
        "content": message.content,
        "name": message.name,
        "tool_calls": [call_document(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "status": message.status,
    }


def call_document(call: ToolCall | None) -> dict[str, object] | None:
    """Returns the JSON form of a tool call: name, id, args, valid."""
    if call is None:
        return None
    return {"name": call.name, "id": call.id, "args": call.args, "valid": call.valid}
