"""What running a graph from a checkpoint gave, and what was decided from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentctl.records.copies import CopyReport, Place
from agentctl.records.diffs import Diff
from agentctl.records.masking import MaskReport
from agentctl.records.streams import StreamEvent

RunStatus = Literal["done", "interrupted", "blocked", "error", "timeout", "step_limit", "not_run"]
ServedBy = Literal["answered", "recorded", "recorded_again", "stub", "state", "live", "blocked", "escaped"]
Effect = Literal["read", "write", "state"]


@dataclass(frozen=True, slots=True)
class ToolCallReport:
    """One tool call of a run. `id` is the model's call id, '' for a call made directly in a node."""

    name: str
    args: Mapping[str, object]
    id: str
    served_by: ServedBy
    ns: str = ""
    duration_ms: float = 0.0
    idempotency_key: str | None = None
    result: str | None = None
    """What was answered, as text (JSON where it was not text), cut at 64 KiB."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used; token counts are those that the model reported, 0 where it reported none.

    Of the `model_calls`, `recorded` were answered by the recording of the thread, and used nothing.
    """

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    wall_s: float = 0.0
    recorded: int = 0


@dataclass(frozen=True, slots=True)
class SideEffects:
    """Tool calls by how they were served, over all runs of one command.

    `recorded` includes `recorded_again` and substituted answers; `live` are reads that a person allowed.
    """

    recorded: int = 0
    stubbed: int = 0
    live: int = 0
    blocked: int = 0
    escaped: int = 0


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """An item that a run changed in its copy of the memory store; `old` is None for a new one, `new` for a gone one."""

    namespace: tuple[str, ...]
    key: str
    old: object
    new: object


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run. `failed` is the check's answer: True, False, or None while undecided or without a check.

    `nodes` are names in execution order, inner ones with their path (`verify_income|fetch_statements`).
    `waits_before` are the nodes that a breakpoint stopped the run before, with their path too. `blocked_hint` is the
    pasteable `--stub NAME=JSON` for the call that stopped the run.
    """

    thread: str
    status: RunStatus
    nodes: tuple[str, ...]
    tool_calls: tuple[ToolCallReport, ...]
    reply: str | None
    failed: bool | None
    error: str | None
    usage: Usage
    head: str | None = None
    interrupts: tuple[Mapping[str, object], ...] = ()
    waits_before: tuple[str, ...] = ()
    model_ran: bool = False
    blocked_hint: str | None = None
    error_traceback: str | None = None
    memory: tuple[MemoryWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """One tool call whose answer is fixed before a fork runs. `fields` are the changed paths with old and new value.

    `how` is `recorded` for a call that is asked again, beside a changed one of its task, and answered as it was before.
    """

    name: str
    id: str
    how: Literal["substituted", "kept", "recorded"]
    fields: tuple[tuple[str, object, object], ...] = ()
    form: str = ""


@dataclass(frozen=True, slots=True)
class PlannedTool:
    """A tool that may be called and where its answer would come from."""

    name: str
    effect: Effect
    served_by: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What will happen, told before it does."""

    source: Place
    nodes: tuple[str, ...]
    tools: tuple[PlannedTool, ...]
    interrupts: tuple[str, ...]
    configurable: Mapping[str, object]
    model: str
    masked: bool
    graph: str
    isolation: str = "in-process gate"
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunGroup:
    """N runs of one experiment with their tally. `interval` is Wilson 95 % of the failing share, (0, 1) when n = 0."""

    runs: tuple[RunReport, ...]
    n: int
    n_failed: int
    n_undecided: int
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The answer of `replay`. `masking` is what was masked of the source, None where nothing was."""

    source: Place
    plan: Plan
    copies: tuple[CopyReport, ...]
    group: RunGroup
    side_effects: SideEffects
    case: str = ""
    warnings: tuple[str, ...] = ()
    masking: MaskReport | None = None


@dataclass(frozen=True, slots=True)
class ForkReport:
    """The answer of `fork`. `target` is the first debug thread with the forked checkpoint's id."""

    source: Place
    target: Place
    plan: Plan
    copies: tuple[CopyReport, ...]
    as_node: str | None
    next: tuple[str, ...]
    answered: tuple[Answered, ...]
    group: RunGroup
    side_effects: SideEffects
    case: str = ""
    warnings: tuple[str, ...] = ()
    masking: MaskReport | None = None


def answer_words(waiting: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Returns the options of `resume` that answer questions, given as `{"id", ...}` each, with JSON to be filled in."""
    if len(waiting) == 1:
        return "--value", "JSON"
    return tuple(word for asked in waiting for word in ("--map", f"{asked.get('id')}=JSON"))


@dataclass(frozen=True, slots=True)
class WorkflowReport:
    """The answer of `run` and `resume`: a workflow on a thread of its own.

    Attributes:
        target: The thread, with its head after the run.
        workflow: What was run.
        tools: `sandbox` or `production`.
        run: How it ended; None where it was only planned (`--dry-run`).
        side_effects: How its tool calls were served.
        plan: What was told before it began.
        discarded: Questions that new input took the place of, as `{"id", "node", "value"}`.
        events: What it streamed, where the answer carries that.
        case: The case that keeps the evidence.
        commands: What to type next.
        warnings: Warnings.
    """

    target: Place
    workflow: str
    tools: str
    run: RunReport | None
    side_effects: SideEffects
    plan: Plan
    discarded: tuple[Mapping[str, object], ...] = ()
    events: tuple[StreamEvent, ...] = ()
    case: str = ""
    commands: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


VerdictName = Literal[
    "tool_data",
    "state",
    "routing",
    "not_the_cause",
    "model_or_prompt",
    "graph_code",
    "nondeterminism",
    "not_reproduced",
    "inconclusive",
]


@dataclass(frozen=True, slots=True)
class Substitution:
    """One thing that a fork changed. `call` is (name, id) for answers; `path` the state path or node otherwise."""

    form: str
    call: tuple[str, str] | None
    path: str | None


@dataclass(frozen=True, slots=True)
class Cause:
    """What the verdict points at."""

    substituted: tuple[Substitution, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion with its reason in one sentence, and what to try next as pasteable commands."""

    name: VerdictName
    sentence: str
    cause: Cause
    p_value: float | None
    remaining: tuple[float, float] | None = None
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiagnoseReport:
    """The answer of `diagnose`. `diff` is between the first decided replay and the first decided fork run."""

    source: Place
    check: str | None
    replays: ReplayReport
    fork: ForkReport | None
    diff: Diff | None
    verdict: Verdict
    faithfulness: tuple[str, ...]
    commands: tuple[str, ...]
    side_effects: SideEffects
    case: str = ""
    warnings: tuple[str, ...] = field(default_factory=tuple)
    masking: MaskReport | None = None
