"""The system prompts, as text files, one version for all three roles."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from graphs.common.versions import read_prompt

Role = Literal["lead", "search", "critique"]
_FOLDER = Path(__file__).parent


@cache
def prompt(role: Role, version: str) -> str:
    """Returns a role's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    return read_prompt(_FOLDER, f"{role}-{version}")
