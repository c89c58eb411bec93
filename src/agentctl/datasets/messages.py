"""Inert messages as the dicts that LangChain reads back, every field kept.

Source: langchain_core/messages/base.py message_to_dict and utils.py messages_from_dict (langchain-core 1.8.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctl.codec.inert import TYPE
from agentctl.records.messages import Message


def message_dict(message: Message) -> dict[str, object]:
    """Returns `{"type": ..., "data": {...}}` with every stored field; a message in another shape is kept as it is."""
    raw = message.raw or {}
    if TYPE not in raw:
        return dict(raw)
    data = {key: value for key, value in raw.items() if key != TYPE}
    return {"type": str(data.get("type") or message.role), "data": data}


def message_dicts(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Returns several messages as dicts."""
    return [message_dict(message) for message in messages]


def revive(entry: Mapping[str, object]) -> object:
    """Returns the LangChain message of a dict, or the dict itself where it has another shape."""
    from langchain_core.messages import messages_from_dict

    if set(entry) == {"type", "data"} and isinstance(entry["data"], Mapping):
        return messages_from_dict([dict(entry)])[0]
    return dict(entry)
