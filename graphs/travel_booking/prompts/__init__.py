"""The system prompts, as text files."""

from __future__ import annotations

from pathlib import Path

from graphs.common.versions import read_prompt

CURRENT_FLIGHTS_PROMPT = "v2"
CURRENT_HOTELS_PROMPT = "v2"
_FOLDER = Path(__file__).parent


def intake_prompt(today: str) -> str:
    """Returns the prompt that reads travellers' messages."""
    return read_prompt(_FOLDER, "intake").format(today=today)


def flights_prompt(version: str) -> str:
    """Returns the flight agent's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    return read_prompt(_FOLDER, f"flights-{version}")


def hotels_prompt(version: str) -> str:
    """Returns the hotel agent's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    return read_prompt(_FOLDER, f"hotels-{version}")
