"""Where the memory store keeps what customers prefer."""

from __future__ import annotations

from langgraph.store.base import BaseStore

from graphs.common.owners import Owner

_MAX_PREFERENCES = 20


def preferences_namespace(owner: Owner) -> tuple[str, ...]:
    """Returns the namespace of a customer's preferences: one item `{"value": ...}` for each, keyed by its name."""
    return ("preferences", owner["tenant"], owner["user_id"])


def read_preferences(store: BaseStore | None, owner: Owner) -> dict[str, str]:
    """Returns what a customer prefers, by name; nothing without a store."""
    if store is None:
        return {}
    items = store.search(preferences_namespace(owner), limit=_MAX_PREFERENCES)
    return {item.key: str(item.value.get("value", "")) for item in items}
