"""Inert messages as the dicts that LangChain reads back, every field kept, and inert values as live ones again.

Source: langchain_core/messages/base.py message_to_dict and utils.py messages_from_dict (langchain-core 1.8.3).
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from agentctl.codec.inert import TYPE, VALUE
from agentctl.codec.messages import message_of
from agentctl.errors import DecodeError
from agentctl.records.messages import Message

_MADE_OF_VALUE: Mapping[str, Callable[[Any], object]] = {
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "collections.deque": deque,
    "uuid.UUID": UUID,
    "decimal.Decimal": Decimal,
    "datetime.datetime": datetime.fromisoformat,
    "datetime.date": date.fromisoformat,
    "datetime.time": time.fromisoformat,
    "pathlib.Path": Path,
    "pathlib.PosixPath": Path,
}


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


def portable(value: object) -> object:
    """Returns an inert value with every LangChain message in it as `{"type", "data"}`."""
    if isinstance(value, list):
        return [portable(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if TYPE in value and (message := message_of(value)) is not None:
        return message_dict(message)
    return {key: portable(item) for key, item in value.items()}


def is_message_dict(value: object) -> bool:
    """Returns whether a value is a message as `message_dict` writes it."""
    return (
        isinstance(value, Mapping)
        and set(value) == {"type", "data"}
        and isinstance(value["data"], Mapping)
        and value["data"].get("type") == value["type"]
    )


def revive(value: object) -> Any:
    """Returns the live value of an inert one: messages as LangChain messages, typed values of known kinds as such.

    No module is imported because a value names it: of other classes only dataclasses, pydantic models and enums are
    made, and only where the application has loaded them.

    Raises:
        DecodeError: a typed value of any other kind, or one that its class refuses.
    """
    if isinstance(value, list):
        return [revive(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if is_message_dict(value):
        return _message(value)
    if TYPE in value:
        return _typed(str(value[TYPE]), {key: revive(item) for key, item in value.items() if key != TYPE})
    match dict(value):
        case {"$base64": str(text)}:
            return base64.b64decode(text)
        case {"$tuple": list(items)}:
            return tuple(revive(item) for item in items)
        case {"$map": list(pairs)}:
            return {revive(key): revive(item) for key, item in pairs}
        case {"$float": str(text)}:
            return float(text)
        case plain:
            return {key: revive(item) for key, item in plain.items()}


def _message(entry: Mapping[str, Any]) -> Any:
    from langchain_core.messages import messages_from_dict

    data = {key: revive(value) for key, value in entry["data"].items()}
    try:
        return messages_from_dict([{"type": entry["type"], "data": data}])[0]
    except ValueError as error:
        raise DecodeError(f"a message cannot be made again: {error}") from error


def _typed(name: str, fields: Mapping[str, Any]) -> Any:
    try:
        if VALUE in fields and name in _MADE_OF_VALUE:
            return _MADE_OF_VALUE[name](fields[VALUE])
        if name == "datetime.timedelta":
            return timedelta(**fields)
        made = _of_the_application(name, fields)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise DecodeError(f"a {name} cannot be made again: {error}") from error
    if made is None:
        raise DecodeError(f"a {name} cannot be made again from an example")
    return made


def _of_the_application(name: str, fields: Mapping[str, Any]) -> Any:
    module, _, attribute = name.rpartition(".")
    kind = getattr(sys.modules.get(module), attribute, None)
    if not isinstance(kind, type):
        return None
    if issubclass(kind, enum.Enum) and VALUE in fields:
        return kind(fields[VALUE])
    if hasattr(kind, "model_validate"):
        return kind.model_validate(fields)
    return kind(**fields) if dataclasses.is_dataclass(kind) else None
