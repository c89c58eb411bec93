"""The plan: todos that name sub-questions and what they wait for, `q3 (after q1, q2): ...`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TODO = re.compile(r"^(q\d{1,2})(?: \(after (q\d{1,2}(?:, q\d{1,2})*)\))?: (.+)$", re.DOTALL)
_TASK = re.compile(r"^Sub-question (q\d{1,2}):")


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """One sub-question; `after` names those whose answers it needs."""

    id: str
    text: str
    after: tuple[str, ...] = ()

    @property
    def todo(self) -> str:
        """The todo's content."""
        waits = f" (after {', '.join(self.after)})" if self.after else ""
        return f"{self.id}{waits}: {self.text}"

    @property
    def heading(self) -> str:
        """How an outline names it."""
        return f"{self.id}: {self.text}"


def sub_question(todo: str) -> SubQuestion | None:
    """Reads a todo, None where it is about something else."""
    found = _TODO.match(todo)
    return (
        None
        if found is None
        else SubQuestion(found[1], found[3], tuple((found[2] or "").split(", ")) if found[2] else ())
    )


def sub_questions(todos: Iterable[Mapping[str, Any]]) -> list[SubQuestion]:
    """Returns the sub-questions among todos, in order."""
    return [found for todo in todos if (found := sub_question(str(todo.get("content", "")))) is not None]


def task_of(description: str) -> str | None:
    """Returns the sub-question that a search task is for, by its first line `Sub-question q1: ...`."""
    found = _TASK.match(description)
    return found[1] if found else None


def ready(plan: Sequence[SubQuestion], searched: Collection[str]) -> list[SubQuestion]:
    """Returns what can be searched now: not searched yet, and waiting for nothing."""
    return [item for item in plan if item.id not in searched and all(each in searched for each in item.after)]


def problem(plan: Sequence[SubQuestion], most: int) -> str:
    """Says what is wrong with a plan, '' where nothing is."""
    ids = [item.id for item in plan]
    if len(set(ids)) != len(ids):
        return "two todos have the same sub-question id"
    if len(plan) > most:
        return f"{len(plan)} sub-questions are more than {most}"
    unknown = sorted({each for item in plan for each in item.after} - set(ids))
    if unknown:
        return f"a todo waits for {', '.join(unknown)}, which the plan does not have"
    done: set[str] = set()
    while batch := ready(plan, done):
        done |= {item.id for item in batch}
    waiting = [item.id for item in plan if item.id not in done]
    return f"{', '.join(waiting)} wait for each other" if waiting else ""
