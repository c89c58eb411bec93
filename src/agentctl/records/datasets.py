"""Dataset examples: what a user said, what the agent did, and what would have been right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExampleSource:
    """Where an example comes from: store (no secrets), thread, the checkpoint that ends the turn, its branch's tip."""

    store: str
    thread: str
    checkpoint: str
    branch: str


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """One tool call of a turn with its recorded result, a whole message as an inert value, or None where unanswered."""

    name: str
    args: object
    id: str
    ns: str
    result: Mapping[str, object] | None
    before: bool = False
    """True for a call of an earlier turn: part of the recording, not of this turn."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What is right.

    `reply` is the expected final reply where one is known; `tool_calls` the expected calls as
    `{name, args}`; `check` says what failing means, so that its negation must hold; `source` where it was taken from.
    """

    reply: str | None = None
    tool_calls: tuple[Mapping[str, object], ...] = ()
    check: tuple[str, ...] = ()
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One user turn.

    Attributes:
        id: Stable: the same turn of the same thread always gives the same id.
        inputs: `messages` up to and with the user's message (whole messages as inert values), and `state`: the other
            channel values at the start of the turn where the store still has them.
        outputs: `messages` that the turn added, and `reply`.
        reference: What is right.
        source: Provenance.
        steps: Node names in execution order.
        tool_calls: The turn's calls and those before it.
        configurable: Recorded configurable values that the turn ran with.
        split: `train`, `test` or any other name.
        turn: 1-based number of the user turn.
    """

    id: str
    inputs: Mapping[str, object]
    outputs: Mapping[str, object]
    reference: Reference
    source: ExampleSource
    steps: tuple[str, ...]
    tool_calls: tuple[ExampleCall, ...]
    configurable: Mapping[str, object]
    split: str
    turn: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote. `files` are paths; `n_new` examples were not in the dataset before."""

    dataset: str
    format: str
    n_examples: int
    n_new: int
    files: tuple[str, ...]
    url: str | None = None
    warnings: tuple[str, ...] = ()
