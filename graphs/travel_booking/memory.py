"""Where the memory store keeps what travellers prefer: one item `{"value": ...}` for each, keyed by its name."""

from __future__ import annotations

from langgraph.store.base import BaseStore

from graphs.common.owners import Owner

_MAX_PREFERENCES = 20


def travellers_namespace(owner: Owner) -> tuple[str, ...]:
    """Returns the namespace of a traveller's preferences; user ids are unique across tenants."""
    return ("travellers", owner["user_id"])


def read_preferences(store: BaseStore | None, owner: Owner) -> dict[str, str]:
    """Returns what a traveller prefers, by name; nothing without a store."""
    if store is None:
        return {}
    items = store.search(travellers_namespace(owner), limit=_MAX_PREFERENCES)
    return {item.key: str(item.value.get("value", "")) for item in items}
