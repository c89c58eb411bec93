"""One run's recorded model answers: which call gets which, and which calls get none."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentctl.codec.messages import message_of
from agentctl.records.absent import ABSENT
from agentctl.sandbox.calls import Blocked
from agentctl.sandbox.inert import inert
from agentctl.sandbox.models.asking import Asking
from agentctl.sandbox.models.fitting import misfit
from agentctl.sandbox.models.given import said
from agentctl.sandbox.models.recording import ModelAnswer, ModelRecording, Place, Visit
from agentctl.stores.reading.layout import caller_path

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

HINT: Final = "--model PROVIDER:NAME"
"""What lets a run go on that no recorded answer fits."""

_ALONE: Final = "a thread that code started calls the model, so it cannot be told which recorded answer is its own"


class ModelBlocked(Blocked):
    """Stops the run at a model call that no recorded answer fits; no model ran."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was changed before a run, where no state that a task is given shows it.

    Attributes:
        configurable: Configuration given by hand, over the recorded one.
        retold: Places whose code finds another stored result of a call that it made.
    """

    configurable: Mapping[str, object]
    retold: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Served:
    """An answer that was given: to which task, and the digest of its message."""

    node: str
    task_id: str
    digest: str


class ModelDesk:
    """Gives the recorded answers of one run. Safe to use from many threads.

    Args:
        recording: The recorded answers.
        changes: What was changed before the run.
    """

    def __init__(self, recording: ModelRecording, changes: Changes) -> None:
        self._recording = recording
        self._changes = changes
        self._visit_of: dict[str, Visit] = {}
        self._n_asked: dict[str, int] = {}
        self._served: list[Served] = []
        self._lock = threading.Lock()

    @property
    def served(self) -> tuple[Served, ...]:
        """The answers given so far, in order."""
        with self._lock:
            return tuple(self._served)

    def answer(
        self,
        asking: Asking | None,
        messages: Sequence[BaseMessage],
        options: Mapping[str, object],
        strayed: Collection[str],
    ) -> ModelAnswer:
        """Returns the recorded answer to a call.

        Args:
            asking: The task that calls, None where that is not known.
            messages: What the model is given.
            options: What it is given besides, tools and formats among it.
            strayed: Ids of the tasks in which a tool was answered otherwise than by the recording.

        Raises:
            ModelBlocked: no recorded answer is known to be that of this call.
        """
        if asking is None:
            raise no_answer(_ALONE)
        self._require_same_way(asking, strayed)
        with self._lock:
            visit = self._visit_of.get(asking.task_id) or self._matching(asking)
            self._visit_of[asking.task_id] = visit
            number = self._n_asked[asking.task_id] = self._n_asked.get(asking.task_id, 0) + 1
            answer = _numbered(asking, visit, number)
            _require_fit(asking, answer, messages, options)
            self._served.append(Served(asking.node, asking.task_id, answer.digest))
        return answer

    def _require_same_way(self, asking: Asking, strayed: Collection[str]) -> None:
        """Refuses a task whose code was told something else than was recorded, which its state does not show."""
        if asking.task_id in strayed:
            raise no_answer(f"a tool answered {asking.node} otherwise than was recorded, so it may ask something else")
        graph, path = asking.place
        if asking.place in self._changes.retold or (graph, caller_path(path)) in self._changes.retold:
            raise no_answer(f"a result that {asking.node} is told was changed, so it may ask something else")

    def _matching(self, asking: Asking) -> Visit:
        """Returns the next recorded task at this place that was given the same, and belongs to no task of this run."""
        visits = self._recording.at(asking.place)
        if not any(visit.answers for visit in visits):
            raise self._none(asking.node, bool(visits))
        taken = {(visit.ns, visit.task_id) for visit in self._visit_of.values()}
        left = [visit for visit in visits if (visit.ns, visit.task_id) not in taken]
        same = [visit for visit in left if visit.given is not None and visit.given.difference(asking.given) is None]
        if not same:
            raise no_answer(f"{asking.node} is not where it was recorded: {_difference(left, asking)}")
        if _are_alike(same):
            raise no_answer(f"{asking.node} ran several times side by side, given the same and answered differently")
        self._require_configuration(asking, same[0])
        return same[0]

    def _none(self, node: str, ran: bool) -> ModelBlocked:
        if not ran:
            return no_answer(f"{node} did not run after the target in {self._recording.thread}")
        return no_answer(
            f"{node} stored no message of its model; an answer that became a route or a parsed value is not kept",
            f"{HINT}, or begin after it: {self._recording.thread}@after:{node}" if "|" not in node else HINT,
        )

    def _require_configuration(self, asking: Asking, visit: Visit) -> None:
        for key, value in self._changes.configurable.items():
            if visit.metadata.get(key, ABSENT) != value:
                was = "none" if key not in visit.metadata else repr(visit.metadata[key])
                raise no_answer(f"{asking.node} was recorded with configurable {key} {was}, not {value!r}")


def no_answer(reason: str, hint: str = HINT) -> ModelBlocked:
    """Returns the exception that stops a run at a model call."""
    return ModelBlocked(f"no recorded answer fits the model call: {reason}", hint)


def unstored(served: Iterable[Served], stored: Mapping[str, frozenset[str]]) -> str | None:
    """Returns why a run is none of the recorded answers' after all, None where it is.

    A node that calls its model for two things may store one answer alone, and then the first call gets it. The run is
    told from the recorded one by what its task stores: not the answer that it was given.

    Args:
        served: The answers given.
        stored: Digests of the AI messages that each finished task of the run stored, by task id.
    """
    for one in served:
        if one.task_id in stored and one.digest not in stored[one.task_id]:
            return (
                f"{one.node} was given a recorded answer and stored another message: it is not known to be the answer"
                " to what it asked"
            )
    return None


def _numbered(asking: Asking, visit: Visit, number: int) -> ModelAnswer:
    if not visit.answers:
        raise no_answer(f"{asking.node} stored no message of its model that time")
    if number > len(visit.answers):
        n = len(visit.answers)
        stored = "1 answer is stored" if n == 1 else f"{n} answers are stored"
        raise no_answer(f"{asking.node} asks its model {number} times, and {stored}")
    return visit.answers[number - 1]


def _require_fit(
    asking: Asking, answer: ModelAnswer, messages: Sequence[BaseMessage], options: Mapping[str, object]
) -> None:
    if (reason := misfit(answer, options)) is not None:
        raise no_answer(f"{asking.node} asks something else: {reason}")
    if not answer.needs:
        return
    told = {said(message) for each in messages if (message := message_of(inert(each))) is not None}
    lacking = next((name for digest, name in answer.needs if digest not in told), None)
    if lacking is not None:
        raise no_answer(f"{lacking} that {asking.node} had by then is not in what it asks, or not as recorded")


def _difference(left: Sequence[Visit], asking: Asking) -> str:
    if not left:
        return "it runs more often than it did"
    first = left[0]
    if first.given is None:
        return first.unread or "what it was given is not known"
    return first.given.difference(asking.given) or ""


def _are_alike(same: Sequence[Visit]) -> bool:
    """Returns whether tasks that were given the same ran side by side, in graphs of one step, with other answers."""
    first = same[0]
    answers = [one.digest for one in first.answers]
    return any(
        other.ns != first.ns and other.outer == first.outer and [one.digest for one in other.answers] != answers
        for other in same[1:]
    )
