"""Messages of a large value without what they say: enough to pair calls with results."""

from __future__ import annotations

from dataclasses import replace

from agentctl.codec.inert import plain
from agentctl.codec.large import abridged, nothing
from agentctl.codec.messages import message_of
from agentctl.codec.parts import may_be_message, parts_of
from agentctl.records.messages import Message
from agentctl.records.rows import Large, Stored


def outlined(value: Stored | Large) -> list[Message]:
    """Returns the messages of a list that holds nothing else, without content and arguments; else none.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    parts = parts_of(value)
    found: list[Message] = []
    for item in parts.items if parts.is_list else ():
        message = message_of(plain(abridged(item, nothing))) if may_be_message(item) else None
        if message is None:
            return []
        calls = tuple(replace(call, args=None) for call in message.tool_calls)
        found.append(replace(message, content="", text="", tool_calls=calls, raw=None))
    return found
