"""What a team and a user prefer, in the memory store: read at the start of a run, written only on a person's word."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.store.base import BaseStore
from pydantic import JsonValue

from graphs.common.owners import Caller, Owner

Name = Literal["report_style", "trusted_domains", "blocked_domains", "audience"]
_NAMES = ("report_style", "trusted_domains", "blocked_domains", "audience")
_MAX_ITEMS = 50


def user_namespace(owner: Owner) -> tuple[str, ...]:
    """Returns the namespace of a user's preferences: one item `{"value": ...}` each, keyed by its name."""
    return ("research", owner["tenant"], "users", owner["user_id"])


def team_namespace(owner: Owner) -> tuple[str, ...]:
    """Returns the namespace of the team's defaults, which a user's own values override."""
    return ("research", owner["tenant"], "team")


def read_preferences(store: BaseStore | None, owner: Owner) -> dict[str, Any]:
    """Returns what is preferred, by name; nothing without a store. The owner comes from the caller, never a model."""
    if store is None:
        return {}
    found: dict[str, Any] = {}
    for namespace in (team_namespace(owner), user_namespace(owner)):
        found.update({item.key: item.value.get("value") for item in store.search(namespace, limit=_MAX_ITEMS)})
    return {name: found[name] for name in _NAMES if name in found}


def remember_preference(
    store: BaseStore, caller: Caller, name: Name, value: JsonValue, *, for_team: bool = False
) -> None:
    """Writes a preference, as when an analyst says "always use this format"; no agent has a tool that does.

    Args:
        store: The memory store.
        caller: Who says so, by their authenticated context: the namespace is theirs.
        name: What it is about.
        value: The preference.
        for_team: Whether it is a default for the whole team.
    """
    namespace = team_namespace(caller.owner) if for_team else user_namespace(caller.owner)
    store.put(namespace, name, {"value": value})
