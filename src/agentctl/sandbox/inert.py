"""An application's value as an inert one."""

from __future__ import annotations

from typing import Any

from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.records.rows import Stored


def inert(value: Any) -> object:
    """Returns an application's value as an inert one, by way of its stored form."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    try:
        kind, data = JsonPlusSerializer().dumps_typed(value)
        return decode(Stored(kind, data))
    except (TypeError, ValueError, DecodeError) as error:
        return {"$type": f"{type(value).__module__}.{type(value).__qualname__}", "$unreadable": str(error)}
