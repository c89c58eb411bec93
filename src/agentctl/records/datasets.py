"""Dataset examples: what a user said, what the agent did, and what would have been right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentctl.records.masking import MaskReport
from agentctl.records.rows import MemoryItem

CallKind = Literal["message", "command", "handoff", "partial"]


@dataclass(frozen=True, slots=True)
class ExampleSource:
    """Where an example comes from: store (no secrets), thread, the checkpoint that ends the turn, its branch's tip."""

    store: str
    thread: str
    checkpoint: str
    branch: str


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """One recorded tool call.

    Attributes:
        name: Tool name.
        args: Arguments.
        id: Call id, '' where the model gave none.
        ns: Namespace that the call was made in.
        result: The whole answering message, or None where the call was never answered.
        before: True for a call of an earlier turn: part of the recording, not of this turn.
        inside: True for a call that a subagent made while the tool call that started it waited.
        kind: `message`; `command` where the tool wrote more than its message; `partial` where more was written and it
            cannot be told by which of several calls.
        writes: All channel writes of a `command`, in order.
        goto: Nodes that the task of the call led to.
        shared: Whether that task answered other calls too.
    """

    name: str
    args: object
    id: str
    ns: str
    result: Mapping[str, object] | None
    before: bool = False
    inside: bool = False
    kind: CallKind = "message"
    writes: tuple[tuple[str, object], ...] = ()
    goto: tuple[str, ...] = ()
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """What is right.

    Attributes:
        reply: The expected final reply where one is known.
        tool_calls: The expected calls as `{name, args}`.
        check: What failing means, as `--check` texts: its negation must hold. Where it is given it alone decides.
        state: The expected final state, for graphs that keep no messages.
        source: Where the reference was taken from.
    """

    reply: str | None = None
    tool_calls: tuple[Mapping[str, object], ...] = ()
    check: tuple[str, ...] = ()
    source: str | None = None
    state: Mapping[str, object] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing that could be found wrong."""
        return self.reply is None and not self.tool_calls and not self.check and self.state is None


@dataclass(frozen=True, slots=True)
class Rerun:
    """How an example runs again, as a person said.

    Attributes:
        configurable: Wins over the recorded configuration.
        stubs: Answers to calls that the recording does not hold, by tool name.
        memory: What the memory store holds when it runs.
    """

    configurable: Mapping[str, object] = field(default_factory=dict)
    stubs: Mapping[str, object] = field(default_factory=dict)
    memory: tuple[MemoryItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """One user turn. Messages in it are `{"type", "data"}` with every stored field; other values are inert.

    Attributes:
        id: Stable: the same turn of the same thread always gives the same id.
        inputs: `input`: what the graph was given, None where the store does not hold it; `messages`: the conversation
            up to and with the user's message; `state`: the other channels before the turn.
        outputs: `messages` that the turn added, `reply`, and `state`: the other channels at its end.
        reference: What is right.
        source: Provenance.
        steps: Node names in execution order, inner ones with their path (`tools|model`).
        tool_calls: The turn's calls and those before it.
        configurable: Recorded configurable values that the turn ran with.
        split: `train`, `test` or any other name.
        turn: 1-based number of the user turn.
        n_earlier: How many of the input messages were there before the turn.
        channel: The channel that holds the messages, '' for graphs that keep none.
        answers: What was answered to the turn's interrupts, in order.
        rerun: How it runs again, as a person said.
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
    n_earlier: int = 0
    channel: str = ""
    answers: tuple[object, ...] = ()
    rerun: Rerun = field(default_factory=Rerun)


@dataclass(frozen=True, slots=True)
class BadResult:
    """A tool result that a fork corrected: `result` and `corrected` are contents, `field` the changed path."""

    tool: str
    id: str
    args: object
    result: object
    field: str
    corrected: object


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
    dry_run: bool = False
    masked: bool = False
    masking: MaskReport | None = None
