"""The model answers of a thread, by the task that stored them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentctl.records.rows import Stored
from agentctl.sandbox.models.given import Given

Place = tuple[str, str]
"""Where a task is in its graph: the path of its graph's nodes, and its own stored path (`~__pregel_pull, agent`)."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One AI message that a task stored.

    Attributes:
        id: Its message id.
        message: The message as stored.
        digest: Of all of it.
        tools: Names of the tools that it calls.
        text: Its text.
        needs: What the call must have been told besides the state, as digests of messages with what to call them:
            those that came before it in what its task stored.
    """

    id: str
    message: Stored
    digest: str
    tools: tuple[str, ...] = ()
    text: str = ""
    needs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Visit:
    """One task that ran, with the model answers that it stored, in order; there may be none.

    Attributes:
        place: Where it is in its graph.
        node: Its path as shown: `front|model`.
        ns: Namespace of its graph.
        checkpoint_id: The checkpoint (in `ns`) that it ran from.
        task_id: Its id.
        outer: The checkpoint around it whose step ran its graph, '' in the root graph.
        given: What it was given; None where that cannot be read, which `unread` then tells why.
        answers: The answers.
        unread: Why it is not known what it was given.
        metadata: Metadata of the checkpoint that its step made: the configuration that it ran with is in it.
    """

    place: Place
    node: str
    ns: str
    checkpoint_id: str
    task_id: str
    outer: str = ""
    given: Given | None = None
    answers: tuple[ModelAnswer, ...] = ()
    unread: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelRecording:
    """The visits of a branch from a checkpoint on, oldest first.

    Attributes:
        thread: The thread, as messages name it.
        visits: The visits.
    """

    thread: str = ""
    visits: tuple[Visit, ...] = ()
    _by_place: Mapping[Place, tuple[Visit, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_place: dict[Place, list[Visit]] = {}
        for visit in self.visits:
            by_place.setdefault(visit.place, []).append(visit)
        object.__setattr__(self, "_by_place", {place: tuple(visits) for place, visits in by_place.items()})

    @property
    def n_answers(self) -> int:
        """How many answers there are."""
        return sum(len(visit.answers) for visit in self.visits)

    def at(self, place: Place) -> tuple[Visit, ...]:
        """Returns the visits of one place in order."""
        return self._by_place.get(place, ())
