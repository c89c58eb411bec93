"""Chat messages recognised by shape in inert values, whatever wrote them.

Three shapes count: a typed value of `langchain_core.messages` (also a subclass, or the older JSON constructor form), a
dict with `type` and `content`, a dict with `role` and `content` (the OpenAI form).

Source: langchain_core/messages/{base,ai,tool,utils}.py (langchain-core 1.8.3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast

from agentctl.codec import jsontext
from agentctl.codec.inert import TYPE
from agentctl.records.messages import Message, Role, ToolCall

REMOVE_ALL: Final = "__remove_all__"
"""Id of a RemoveMessage that clears the list. Source: langgraph/pregel/_messages.py (langgraph 1.2.24)."""

_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        "human": "human",
        "user": "human",
        "HumanMessageChunk": "human",
        "ai": "ai",
        "assistant": "ai",
        "AIMessageChunk": "ai",
        "tool": "tool",
        "ToolMessageChunk": "tool",
        "system": "system",
        "developer": "system",
        "SystemMessageChunk": "system",
        "function": "function",
        "FunctionMessageChunk": "function",
        "remove": "remove",
    }
)
_CLASS_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        "HumanMessage": "human",
        "AIMessage": "ai",
        "ToolMessage": "tool",
        "SystemMessage": "system",
        "FunctionMessage": "function",
        "RemoveMessage": "remove",
        "ChatMessage": "other",
    }
)
_MESSAGE_MODULES: Final = ("langchain_core.messages", "langchain.schema.messages", "langchain.schema")
_CHAT_TYPES: Final = frozenset({"chat", "ChatMessageChunk"})


def message_of(value: object) -> Message | None:
    """Returns the message that an inert value is, or None."""
    if not isinstance(value, Mapping):
        return None
    role = _role(value)
    if role is None or ("content" not in value and role != "remove"):
        return None
    content = value.get("content", "")
    return Message(
        role=role,
        id=_text_or_none(value.get("id")),
        content=content,
        text=text_of(content),
        name=_text_or_none(value.get("name")),
        tool_calls=_tool_calls(value) if role == "ai" else (),
        tool_call_id=_text_or_none(value.get("tool_call_id")),
        status=_text_or_none(value.get("status")),
        raw=value,
    )


def messages_in(value: object) -> tuple[Message, ...]:
    """Returns the messages of a channel value: those of a list, or the one that the value is."""
    if isinstance(value, list):
        return tuple(message for item in value if (message := message_of(item)) is not None)
    message = message_of(value)
    return () if message is None else (message,)


def is_message_list(value: object) -> bool:
    """Returns whether a value is a list that holds messages and nothing else; an empty list is not."""
    return isinstance(value, list) and bool(value) and all(message_of(item) is not None for item in value)


def coerced_messages(value: object) -> tuple[Message, ...]:
    """Returns the messages of a write to a channel that is known to hold messages.

    Besides messages that takes what `add_messages` takes: text (a human message) and [role, text] pairs.
    """
    items = value if isinstance(value, list) and not _is_pair(value) else [value]
    return tuple(message for item in items if (message := coerced_message(item)) is not None)


def coerced_message(item: object) -> Message | None:
    """Returns the message that one item of a write is: a message, text, or a [role, text] pair; None for the rest.

    Source: convert_to_messages, langchain_core/messages/utils.py (langchain-core 1.8.3).
    """
    if isinstance(item, str):
        return Message("human", None, item, item, raw={"type": "human", "content": item})
    if _is_pair(item):
        role, text = cast(Sequence[str], item)
        return Message(_ROLES.get(role, "other"), None, text, text, raw={"role": role, "content": text})
    return message_of(item)


def text_of(content: object) -> str:
    """Returns message content as plain text: text itself, the text blocks of a list joined, else compact JSON.

    Source: BaseMessage.text, langchain_core/messages/base.py (langchain-core 1.8.3).
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_block_text(block) for block in content)
    if content is None:
        return ""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _block_text(block: object) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type", "text") == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    return ""


def _role(value: Mapping[str, object]) -> Role | None:
    kind = value.get("type")
    if isinstance(kind, str):
        if kind in _ROLES:
            return _ROLES[kind]
        if kind in _CHAT_TYPES and isinstance(value.get("role"), str):
            return "other"
    role = value.get("role")
    if isinstance(role, str) and role in _ROLES:
        return _ROLES[role]
    return _class_role(value.get(TYPE))


def _class_role(type_name: object) -> Role | None:
    if not isinstance(type_name, str) or not type_name.startswith(_MESSAGE_MODULES):
        return None
    return _CLASS_ROLES.get(type_name.rpartition(".")[2].removesuffix("Chunk"))


def _tool_calls(value: Mapping[str, object]) -> tuple[ToolCall, ...]:
    given = _dicts(value.get("tool_calls")) + _dicts(value.get("invalid_tool_calls"))
    if not given:
        extra = value.get("additional_kwargs")
        given = _dicts(extra.get("tool_calls")) if isinstance(extra, Mapping) else []
    return tuple(_tool_call(call, position) for position, call in enumerate(given))


def _tool_call(call: Mapping[str, object], position: int) -> ToolCall:
    function = call.get("function")
    if isinstance(function, Mapping):
        args, valid = _parsed(function.get("arguments"))
        return ToolCall(str(function.get("name") or ""), _text_or_none(call.get("id")), args, position, valid)
    return ToolCall(
        name=str(call.get("name") or ""),
        id=_text_or_none(call.get("id")),
        args=call.get("args"),
        position=position,
        valid=call.get("type") != "invalid_tool_call" and isinstance(call.get("args"), Mapping),
    )


def _parsed(arguments: object) -> tuple[object, bool]:
    """Returns the arguments of an OpenAI call, which are JSON text, and whether they are an object."""
    if not isinstance(arguments, str):
        return arguments, isinstance(arguments, Mapping)
    try:
        parsed = jsontext.parse(arguments or "{}")
    except ValueError:
        return arguments, False
    return (parsed, True) if isinstance(parsed, dict) else (arguments, False)


def _is_pair(item: object) -> bool:
    return (
        isinstance(item, list)
        and len(item) == 2
        and isinstance(item[0], str)
        and item[0] in _ROLES
        and isinstance(item[1], str)
    )


def _dicts(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
