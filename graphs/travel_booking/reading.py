"""How the scripted model reads a traveller's message."""

from __future__ import annotations

import re
from typing import Any

_DAY = r"(\d{4}-\d{2}-\d{2})"
_FIELDS: dict[str, re.Pattern[str]] = {
    "origin": re.compile(r"\b[Ff]rom ([A-Z][a-z]+(?: [A-Z][a-z]+)*)"),
    "destination": re.compile(r"\b[Tt]o ([A-Z][a-z]+(?: [A-Z][a-z]+)*)"),
    "depart_on": re.compile(rf"\b(?:leav\w+|depart\w*|out|start\w*)(?: on)? {_DAY}", re.IGNORECASE),
    "return_on": re.compile(rf"\b(?:return\w*|back|home|until)(?: on)? {_DAY}", re.IGNORECASE),
    "flexible_days": re.compile(r"\bflexible by (\d)", re.IGNORECASE),
    "travellers": re.compile(r"\bfor (\d) (?:people|travellers|of us)", re.IGNORECASE),
    "arrive_by": re.compile(r"\barriv\w+ (?:by|before) (\d\d:\d\d)", re.IGNORECASE),
    "budget": re.compile(r"\b(?:at most|budget(?: of)?|up to) (\d+(?:\.\d\d)?)", re.IGNORECASE),
    "min_stars": re.compile(r"\b(\d) stars", re.IGNORECASE),
    "area": re.compile(r"\bnear the ([A-Za-z ]+?)(?=[,.;]|$)", re.IGNORECASE),
    "currency": re.compile(r"\b(EUR|USD|GBP)\b"),
}
_NUMBERS = frozenset({"flexible_days", "travellers", "min_stars"})
_LASTING = re.compile(r"\b(always|from now on|remember|in future)\b", re.IGNORECASE)
_WISHES: dict[str, re.Pattern[str]] = {
    "airline": re.compile(r"\b(?:fly|flying) (?:with )?([a-z]+)", re.IGNORECASE),
    "hotel_chain": re.compile(r"\bstay (?:with|at) ([A-Za-z]+)"),
    "seat": re.compile(r"\b(aisle|window)\b", re.IGNORECASE),
    "diet": re.compile(r"\b(vegetarian|vegan|kosher|halal)\b", re.IGNORECASE),
}


def plan_of(text: str) -> dict[str, Any]:
    """Returns what a message says about a trip."""
    found = {name: match.group(1) for name, pattern in _FIELDS.items() if (match := pattern.search(text))}
    plan: dict[str, Any] = {name: int(value) if name in _NUMBERS else value for name, value in found.items()}
    if "budget" in plan and "." not in plan["budget"]:
        plan["budget"] += ".00"
    if re.search(r"\bnon-?stop\b", text, re.IGNORECASE):
        plan["nonstop"] = True
    return plan


def wish_of(text: str) -> dict[str, str] | None:
    """Returns what a message asks to be remembered, None where it asks for nothing lasting."""
    if not _LASTING.search(text):
        return None
    found = ((name, pattern.search(text)) for name, pattern in _WISHES.items())
    return next(({"name": name, "value": match.group(1).lower()} for name, match in found if match), None)
