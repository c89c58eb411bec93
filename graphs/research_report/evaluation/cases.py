"""The cases: what is asked, and what a good report must and must not say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).parent / "cases.yaml"


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        id: Its name.
        trap: What makes it hard.
        question: What is asked.
        scope: Aspects to cover.
        facts: Words that the findings must hold.
        wrong: Words that no finding may hold.
        open: Words that the open questions must hold.
        flags: Flags that some finding must have.
        confidence: That every finding must have; '' for any.
    """

    id: str
    trap: str
    question: str
    scope: tuple[str, ...]
    facts: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    confidence: str = ""

    @property
    def input(self) -> dict[str, Any]:
        """The run's input."""
        return {"question": self.question, "scope": list(self.scope), "audience": "evaluation"}


def load_cases(file: Path = _FILE) -> list[Case]:
    """Reads the cases, in their order."""
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))["cases"]
    return [_case(entry) for entry in entries]


def _case(entry: dict[str, Any]) -> Case:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return Case(**fields)
