"""Answers to interrupts: which answer goes to which question.

Source: langgraph 1.2.24, pregel/_loop.py and _algo.py. A resume value of None given directly is taken for no value at
all and crashes; given in a map from interrupt id it arrives. So every answer is given in a map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentctl.errors import Refused, UsageError
from agentctl.records.copies import command

Answered = Callable[[str], str | None]

Answers = Sequence[object] | Mapping[str, object]
"""Answers in the order in which questions come, or by interrupt id or asking node."""


def command_for(asked: Sequence[tuple[str, Any]], answers: Answers, n_answered: int) -> tuple[object, int] | None:
    """Returns what to run next at a stop and how many listed answers that uses, or None where the run ends here.

    A stop without a question is a breakpoint (`interrupt_before` or `_after`): one listed answer takes the run past it
    and is given to nobody.

    Args:
        asked: (node, interrupt) of the questions that wait.
        answers: All answers of the run.
        n_answered: How many listed answers were used before.
    """
    if isinstance(answers, Mapping):
        by_id = {
            question.id: answers[key]
            for node, question in asked
            if (key := question.id if question.id in answers else node) in answers
        }
        return (resume_by_id(by_id), 0) if by_id else None
    left = answers[n_answered:]
    if not left:
        return None
    if not asked:
        return None, 1
    by_id = {question.id: answer for (_, question), answer in zip(asked, left, strict=False)}
    return resume_by_id(by_id), len(by_id)


def resume_by_id(answers: Mapping[str, object]) -> object:
    """Returns the LangGraph command that resumes by interrupt id."""
    from langgraph.types import Command

    return Command(resume=dict(answers))


def never(interrupt_id: str) -> str | None:
    """Tells of every question that nobody answered it."""
    return None


def check_resume(
    waiting: Sequence[Mapping[str, object]],
    value: object,
    by_id: Mapping[str, object] | None,
    *,
    thread: str,
    target: str | None = None,
    answered: Answered = never,
    taken_on: str = "",
) -> dict[str, object]:
    """Returns answers by interrupt id, after checking that they fit the questions that wait.

    Args:
        waiting: The questions, as `{"id", "node", "value"}`.
        value: The one value of `--value`, where `by_id` is None.
        by_id: The answers of `--map`.
        thread: For messages.
        target: The thread as a target, for hints; the thread alone by default.
        answered: Tells of an id that does not wait who answered it, as ` by NAME at TIME`; None where nobody did.
        taken_on: Who took the thread to where it is, in the same form.

    Raises:
        Refused: nothing waits, an id was answered before, or one value was given and several questions wait.
        UsageError: an id of the map is not waiting and never was answered.
    """
    ids = [str(question["id"]) for question in waiting]
    unknown = [one for one in by_id or () if one not in ids]
    for one in unknown:
        if (by := answered(one)) is not None:
            raise Refused(
                f"question {one} of {thread} was answered{by}; nothing was run", hint=command("show", target or thread)
            )
    if not ids:
        taken = f"; it was taken on{taken_on}" if taken_on else ""
        raise Refused(f"{thread} has no question waiting for an answer{taken}", hint=command("show", target or thread))
    if by_id is None:
        if len(ids) > 1:
            raise Refused(
                f"{thread} has {len(ids)} questions waiting; one value does not say which it answers",
                hint="give each an answer: " + " ".join(f"--map {one}=JSON" for one in ids),
                candidates=waiting,
            )
        return {ids[0]: value}
    if unknown:
        raise UsageError(
            f"{thread} has no waiting question {', '.join(unknown)}",
            hint="waiting: " + ", ".join(ids),
        )
    return dict(by_id)
