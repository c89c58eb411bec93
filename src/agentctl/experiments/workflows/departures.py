"""What a run of a thread begins with: decided from its state, refused where it would not mean what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agentctl.errors import NotFound, Refused
from agentctl.experiments.runs.answered import answerer_of
from agentctl.experiments.runs.resuming import Answered, check_resume, never
from agentctl.records.copies import command
from agentctl.records.runs import answer_words
from agentctl.sandbox.inert import inert

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

Question = Mapping[str, object]
"""A question that waits: `{"id", "node", "value"}`, inert."""


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a thread stands: its state, None where it does not exist, and which of its questions were answered."""

    snapshot: StateSnapshot | None = None
    answered: frozenset[str] = frozenset()

    @property
    def head(self) -> str | None:
        """Id of the checkpoint that the state is of, None for no state."""
        return None if self.snapshot is None else str(self.snapshot.config["configurable"]["checkpoint_id"])

    @property
    def waiting(self) -> list[Question]:
        """The questions that wait for an answer."""
        return [
            {"id": question.id, "node": task.name, "value": inert(question.value)}
            for task in (self.snapshot.tasks if self.snapshot is not None else ())
            for question in task.interrupts
            if question.id not in self.answered
        ]


@dataclass(frozen=True, slots=True)
class Departure:
    """A run that is about to begin: nothing is written yet.

    Attributes:
        thread: Thread id.
        head: Its head, None where the thread does not exist yet.
        nodes: Nodes that it stopped before; those that begin where no input is given.
        finished: Nodes of the same step whose results are stored, so that they do not run again.
        has_input: Whether new input is given.
        discarded: Questions that nobody will answer, since input takes their place.
        answers: Answers by interrupt id.
        left: Questions that go on waiting.
        warnings: What to know before it begins.
    """

    thread: str
    head: str | None
    nodes: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    has_input: bool = False
    discarded: tuple[Question, ...] = ()
    answers: Mapping[str, object] = field(default_factory=dict)
    left: tuple[Question, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether the thread does not exist yet."""
        return self.head is None

    @property
    def dropped(self) -> tuple[str, ...]:
        """Nodes that the thread stopped at and that do not go on, since input takes their place."""
        return (*self.nodes, *self.finished) if self.has_input else ()


def depart_with_input(
    stand: Stand, thread: str, value: object, *, discard: bool, target: str, workflow: str
) -> Departure:
    """Returns what `run` begins with.

    A stop that asks nothing, where no task failed either, is a breakpoint or the mark of a command that was cut off:
    input would go past it as past a question.

    Args:
        stand: Where the thread stands.
        thread: Thread id.
        value: Input, or None to go on where the thread stopped.
        discard: Whether what waits may be lost.
        target: The thread as the command line names it.
        workflow: The workflow as the command line names it.

    Raises:
        Refused: what waits would be lost.
        NotFound: there is nothing to go on with.
    """
    waiting = stand.waiting
    stopped, finished = _step(stand.snapshot)
    at = (*stopped, *finished)
    if value is None and not at:
        raise NotFound(f"{thread} has nothing to go on with", hint="give it input: --input FILE")
    if value is None and waiting:
        raise Refused(
            f"{thread} waits for an answer", hint=answer_command(target, waiting, workflow), candidates=waiting
        )
    if value is not None and waiting and not discard:
        raise Refused(
            f"{thread} waits for an answer, and new input would discard the question",
            hint=f"answer it: {answer_command(target, waiting, workflow)}; or discard it: --discard-interrupt",
            candidates=waiting,
        )
    failed = stand.snapshot is not None and any(task.error is not None for task in stand.snapshot.tasks)
    if value is not None and at and not waiting and not failed and not discard:
        raise Refused(
            f"{thread} is stopped at {', '.join(at)}, and new input would discard that",
            hint=f"go on: {command('run', workflow, '--thread', target)}; or discard it: --discard-interrupt",
        )
    discarded = tuple(waiting) if value is not None else ()
    return Departure(thread, stand.head, stopped, finished, value is not None, discarded)


def depart_with_answers(
    stand: Stand,
    thread: str,
    value: object,
    by_id: Mapping[str, object] | None,
    *,
    target: str,
    workflow: str,
    answered: Answered = never,
) -> Departure:
    """Returns what `resume` begins with.

    Args:
        stand: Where the thread stands; it exists.
        thread: Thread id.
        value: The answer, where one question waits and `by_id` is None.
        by_id: Answers by interrupt id.
        target: The thread as the command line names it.
        workflow: The workflow as the command line names it.
        answered: Tells who answered a question that does not wait any more.

    Raises:
        Refused: nothing waits, a question was answered before, or one answer was given to several questions.
        UsageError: an id is not waiting.
    """
    waiting, (stopped, finished) = stand.waiting, _step(stand.snapshot)
    if by_id is None and not waiting and (nodes := (*stopped, *finished)):
        raise Refused(
            f"{thread} has no question waiting for an answer; it is stopped at {', '.join(nodes)}",
            hint=f"go on: {command('run', workflow, '--thread', target)}",
        )
    answers = check_resume(
        waiting, value, by_id, thread=thread, target=target, answered=answered, taken_on=taken_on(stand.snapshot)
    )
    asking = tuple(str(question["node"]) for question in waiting if question["id"] in answers)
    left = tuple(question for question in waiting if question["id"] not in answers)
    return Departure(thread, stand.head, asking, answers=answers, left=left)


def _step(state: StateSnapshot | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the nodes of the pending step that have yet to run, and those that have finished.

    Where all have finished, the command was cut off before it could save their checkpoint; `next` is empty then.

    Source: langgraph 1.2.24, pregel/main.py (`_prepare_state_snapshot`: `next` are the tasks without writes).
    """
    if state is None:
        return (), ()
    left = list(state.next)
    finished = []
    for task in state.tasks:
        if task.name in left:
            left.remove(task.name)
        else:
            finished.append(task.name)
    return tuple(state.next), tuple(finished)


def taken_on(state: StateSnapshot | None) -> str:
    """Returns ` by NAME at TIME` of the head, as far as it is known."""
    if state is None:
        return ""
    at = datetime.fromisoformat(state.created_at).astimezone(UTC) if state.created_at else None
    return str(answerer_of(state.metadata or {}, at))


def answer_command(target: str, waiting: Sequence[Question], workflow: str) -> str:
    """Returns the command that answers what waits on a thread, with the graph where no file names it."""
    graph = ("--graph", workflow) if ":" in workflow else ()
    return command("resume", target, *answer_words(waiting), *graph)
