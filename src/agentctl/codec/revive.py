"""Messages in JSON, known by their shape, as the serializer stores them; nothing is imported.

An Agent Server gives messages as their fields. A field set that only a message has is taken for one: type, content,
`additional_kwargs` and `response_metadata`, which every dump of a message holds and what a client sends seldom does.

Source: langchain_core/messages (langchain-core 1.8.3); `_msgpack_default` (langgraph-checkpoint 4.3.2,
serde/jsonplus.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentctl.codec.tree import PYDANTIC_V2, Typed

_PACKAGE: Final = "langchain_core.messages"
_CLASSES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "human": ("human", "HumanMessage"),
        "ai": ("ai", "AIMessage"),
        "tool": ("tool", "ToolMessage"),
        "system": ("system", "SystemMessage"),
        "function": ("function", "FunctionMessage"),
        "chat": ("chat", "ChatMessage"),
        "remove": ("modifier", "RemoveMessage"),
        "HumanMessageChunk": ("human", "HumanMessageChunk"),
        "AIMessageChunk": ("ai", "AIMessageChunk"),
        "ToolMessageChunk": ("tool", "ToolMessageChunk"),
        "SystemMessageChunk": ("system", "SystemMessageChunk"),
        "FunctionMessageChunk": ("function", "FunctionMessageChunk"),
        "ChatMessageChunk": ("chat", "ChatMessageChunk"),
    }
)
_FIELDS: Final = frozenset({"type", "content", "additional_kwargs", "response_metadata"})


def revived(value: object) -> object:
    """Returns a JSON value as a tree in which dumped messages, at any depth, are typed values."""
    if isinstance(value, list):
        return [revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    if is_dumped_message(value):
        module, name = _CLASSES[value["type"]]
        return Typed(PYDANTIC_V2, f"{_PACKAGE}.{module}", name, value, ("model_validate_json",))
    return {key: revived(item) for key, item in value.items()}


def is_dumped_message(value: object) -> bool:
    """Says whether a JSON value has the fields that the dump of a message has."""
    return isinstance(value, dict) and value.get("type") in _CLASSES and value.keys() >= _FIELDS


def is_plain(value: object) -> bool:
    """Says whether JSON tells all of a value's types: numbers, booleans, null, and lists of these and of messages."""
    if isinstance(value, list):
        return all(is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float) or is_dumped_message(value)
