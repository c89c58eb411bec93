"""Items of LangGraph's BaseStore (the memory store) as its tables keep them.

Source: langgraph-checkpoint-sqlite 3.1.2, store/sqlite/base.py (`_namespace_to_text`: the namespace joined with dots);
langgraph-checkpoint-postgres 3.2.0, store/postgres/base.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from agentctl.codec import jsontext
from agentctl.errors import DecodeError
from agentctl.records.rows import MemoryItem


def memory_item(namespace: str, key: str, value: object, created_at: object, updated_at: object) -> MemoryItem:
    """Returns one row of a `store` table as an item.

    Args:
        namespace: Dotted.
        key: Item key.
        value: JSON text or bytes, or a decoded map.
        created_at: Text or datetime; without a zone it is UTC (SQLite's CURRENT_TIMESTAMP).
        updated_at: The same.

    Raises:
        DecodeError: The value is no JSON, or is nested too deeply.
    """
    try:
        return MemoryItem(tuple(namespace.split(".")), key, _value(value), _time(created_at), _time(updated_at))
    except ValueError as error:
        raise DecodeError(f"the memory item {namespace}/{key} cannot be read: {error}") from error


def _value(raw: object) -> Mapping[str, object]:
    value = jsontext.parse(raw) if isinstance(raw, str | bytes) else raw
    return value if isinstance(value, Mapping) else {"value": value}


def _time(raw: object) -> datetime | None:
    if isinstance(raw, str):
        raw = datetime.fromisoformat(raw)
    if not isinstance(raw, datetime):
        return None
    return raw.replace(tzinfo=UTC) if raw.tzinfo is None else raw.astimezone(UTC)
