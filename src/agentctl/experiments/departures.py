"""What a run of a thread begins with: decided from its state, refused where it would not mean what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentctl.errors import NotFound, Refused
from agentctl.experiments.reports import inert
from agentctl.experiments.resuming import check_resume
from agentctl.records.copies import command
from agentctl.records.runs import answer_words

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

Question = Mapping[str, object]
"""A question that waits: `{"id", "node", "value"}`, inert."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A run that is about to begin: nothing is written yet.

    Attributes:
        thread: Thread id.
        head: Its head, None where the thread does not exist yet.
        nodes: Nodes that it stopped before; those that begin where no input is given.
        has_input: Whether new input is given.
        discarded: Questions that nobody will answer, since input takes their place.
        answers: Answers by interrupt id.
        left: Questions that go on waiting.
    """

    thread: str
    head: str | None
    nodes: tuple[str, ...] = ()
    has_input: bool = False
    discarded: tuple[Question, ...] = ()
    answers: Mapping[str, object] = field(default_factory=dict)
    left: tuple[Question, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether the thread does not exist yet."""
        return self.head is None

    @property
    def dropped(self) -> tuple[str, ...]:
        """Nodes that the thread stopped before and that do not go on, since input takes their place."""
        return self.nodes if self.has_input else ()


def depart_with_input(
    state: StateSnapshot | None, thread: str, value: object, *, discard: bool, target: str, workflow: str
) -> Departure:
    """Returns what `run` begins with.

    A stop that asks nothing, where no task failed either, is a breakpoint: input would go past it as past a question.

    Args:
        state: The thread's state, None where it does not exist.
        thread: Thread id.
        value: Input, or None to go on where the thread stopped.
        discard: Whether what waits may be lost.
        target: The thread as the command line names it.
        workflow: The workflow as the command line names it.

    Raises:
        Refused: what waits would be lost.
        NotFound: there is nothing to go on with.
    """
    waiting = waiting_questions(state)
    stopped = tuple(state.next) if state is not None else ()
    if value is None and not stopped:
        raise NotFound(f"{thread} has nothing to go on with", hint="give it input: --input FILE")
    if value is None and waiting:
        raise Refused(f"{thread} waits for an answer", hint=answer_command(target, waiting), candidates=waiting)
    if value is not None and waiting and not discard:
        raise Refused(
            f"{thread} waits for an answer, and new input would discard the question",
            hint=f"answer it: {answer_command(target, waiting)}; or discard it: --discard-interrupt",
            candidates=waiting,
        )
    failed = state is not None and any(task.error is not None for task in state.tasks)
    if value is not None and stopped and not waiting and not failed and not discard:
        raise Refused(
            f"{thread} is stopped before {', '.join(stopped)}, and new input would discard that",
            hint=f"go on: {command('run', workflow, '--thread', target)}; or discard it: --discard-interrupt",
        )
    discarded = tuple(waiting) if value is not None else ()
    return Departure(thread, head_of(state), stopped, value is not None, discarded)


def depart_with_answers(
    state: StateSnapshot, thread: str, value: object, by_id: Mapping[str, object] | None, *, target: str
) -> Departure:
    """Returns what `resume` begins with.

    Args:
        state: The thread's state.
        thread: Thread id.
        value: The answer, where one question waits and `by_id` is None.
        by_id: Answers by interrupt id.
        target: The thread as the command line names it.

    Raises:
        Refused: nothing waits, or one answer was given to several questions.
        UsageError: an id is not waiting.
    """
    waiting = waiting_questions(state)
    answers = check_resume(waiting, value, by_id, thread=thread, target=target)
    asking = tuple(str(question["node"]) for question in waiting if question["id"] in answers)
    left = tuple(question for question in waiting if question["id"] not in answers)
    return Departure(thread, head_of(state), asking, answers=answers, left=left)


def waiting_questions(state: StateSnapshot | None) -> list[Question]:
    """Returns the questions that wait for an answer."""
    return [
        {"id": question.id, "node": task.name, "value": inert(question.value)}
        for task in (state.tasks if state is not None else ())
        for question in task.interrupts
    ]


def head_of(state: StateSnapshot | None) -> str | None:
    """Returns the id of the checkpoint that a state is of, None for no state."""
    return None if state is None else str(state.config["configurable"]["checkpoint_id"])


def answer_command(target: str, waiting: Sequence[Question]) -> str:
    """Returns the command that answers what waits on a thread."""
    return command("resume", target, *answer_words(waiting))
