"""The system prompts, as text files."""

from __future__ import annotations

from pathlib import Path

CURRENT_FLIGHTS_PROMPT = "v2"
CURRENT_HOTELS_PROMPT = "v2"
_FOLDER = Path(__file__).parent


class UnknownPrompt(LookupError):
    """There is no prompt of that version."""


def intake_prompt(today: str) -> str:
    """Returns the prompt that reads travellers' messages."""
    return _read("intake").format(today=today)


def flights_prompt(version: str) -> str:
    """Returns the flight agent's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    return _read(f"flights-{version}")


def hotels_prompt(version: str) -> str:
    """Returns the hotel agent's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    return _read(f"hotels-{version}")


def _read(name: str) -> str:
    path = _FOLDER / f"{name}.md"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in _FOLDER.glob("*.md")))
        raise UnknownPrompt(f"there is no prompt {name}; there are {known}")
    return path.read_text(encoding="utf-8")
