"""The system prompts, as text files, and what fills them in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphs.common.versions import read_prompt

CURRENT_REFUNDS_PROMPT = "v3"
_FOLDER = Path(__file__).parent


def triage_prompt() -> str:
    """Returns the router's prompt."""
    return read_prompt(_FOLDER, "triage")


def orders_prompt(*, ticket_id: str, today: str) -> str:
    """Returns the orders agent's prompt."""
    return read_prompt(_FOLDER, "orders").format(ticket_id=ticket_id, today=today)


def refunds_prompt(version: str, *, ticket_id: str, today: str, preferences: Mapping[str, object]) -> str:
    """Returns the refunds agent's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    remembered = "; ".join(f"{name} = {value}" for name, value in sorted(preferences.items())) or "nothing"
    return read_prompt(_FOLDER, f"refunds-{version}").format(ticket_id=ticket_id, today=today, preferences=remembered)
