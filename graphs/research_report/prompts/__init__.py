"""The system prompts, as text files, one version for all three roles."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

Role = Literal["lead", "search", "critique"]
_FOLDER = Path(__file__).parent


class UnknownPrompt(LookupError):
    """There is no prompt of that version."""


@cache
def prompt(role: Role, version: str) -> str:
    """Returns a role's prompt.

    Raises:
        UnknownPrompt: there is no such version.
    """
    path = _FOLDER / f"{role}-{version}.md"
    if not path.is_file():
        raise UnknownPrompt(
            f"there is no prompt {path.stem}; there are {', '.join(sorted(p.stem for p in _FOLDER.glob('*.md')))}"
        )
    return path.read_text(encoding="utf-8")
