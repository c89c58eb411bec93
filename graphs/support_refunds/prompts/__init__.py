"""The system prompts, as text files, and what fills them in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CURRENT_REFUNDS_PROMPT = "v3"
_FOLDER = Path(__file__).parent


class UnknownPrompt(LookupError):
    """There is no prompt of that version."""


def triage_prompt() -> str:
    """Returns the router's prompt."""
    return _read("triage")


def orders_prompt(*, ticket_id: str, today: str) -> str:
    """Returns the orders agent's prompt."""
    return _read("orders").format(ticket_id=ticket_id, today=today)


def refunds_prompt(version: str, *, ticket_id: str, today: str, preferences: Mapping[str, object]) -> str:
    """Returns the refunds agent's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    remembered = "; ".join(f"{name} = {value}" for name, value in sorted(preferences.items())) or "nothing"
    return _read(f"refunds-{version}").format(ticket_id=ticket_id, today=today, preferences=remembered)


def _read(name: str) -> str:
    path = _FOLDER / f"{name}.md"
    if not path.is_file():
        raise UnknownPrompt(
            f"there is no prompt {name}; there are {', '.join(sorted(p.stem for p in _FOLDER.glob('*.md')))}"
        )
    return path.read_text(encoding="utf-8")
