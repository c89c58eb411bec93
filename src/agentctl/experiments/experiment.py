"""What is the same for all runs of one command, and running them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from agentctl.experiments.runs.memory import MemoryCopy
from agentctl.experiments.runs.observed import Check
from agentctl.experiments.runs.resuming import Answers
from agentctl.experiments.runs.running import Ended, Limits, RunJob, run_all
from agentctl.experiments.runs.savers import open_saver
from agentctl.records.copies import MASKED, Place
from agentctl.records.messages import CallSite
from agentctl.records.rows import MemoryItem
from agentctl.records.runs import Plan
from agentctl.revisions.heads import ORIGIN
from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.graph_copies import copied
from agentctl.sandbox.models.desk import HINT, Changes, ModelDesk, unstored
from agentctl.sandbox.models.recorder import answers_stored
from agentctl.sandbox.models.recording import ModelRecording
from agentctl.sandbox.recordings import Recording
from agentctl.stores.base import Reader, Writer

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

NOT_CONFIGURATION = frozenset(
    {"source", "step", "parents", "writes", "thread_id", "run_id", "run_attempt", "checkpoint_id", "checkpoint_ns",
     "checkpoint_map", "counters_since_delta_snapshot", "created_by", "graph_version_info"}
)  # fmt: skip
"""Metadata that is LangGraph's bookkeeping of one run, never configuration to give back."""

CASE = "agentctl_case"
"""Metadata of a debug thread that says which case it was made for; closing the case deletes no other."""

IN_PROCESS = "in-process gate"
"""What keeps effects in where an experiment runs in the process of its command."""

_INTERNAL = ("__", "langgraph_", "ls_", "lc_", "agentctl_")


@dataclass(frozen=True, slots=True)
class Target:
    """One checkpoint of one thread. `profile` and `store` are how messages name where it is.

    `call` is the tool call that named it, where one did: a form that names that tool then means this call.
    """

    thread: str
    id: str
    ns: str = ""
    store: str = ""
    profile: str = ""
    call: CallSite | None = None

    @property
    def place(self) -> Place:
        """The target as a record."""
        return Place(self.store, self.thread, self.id, self.profile)


@dataclass(frozen=True, slots=True)
class DebugStore:
    """Where copies go and runs happen.

    Attributes:
        url: Opens it, and may hold a password.
        writer: It, open for writing.
        profile: The name that reaches it.
        schema: Postgres schema of its tables; None takes the search path.
        names: Gives names for threads that are about to be made; None looks for free ones in the store itself.
        is_scratch: Whether the store is gone when this process ends, so that nothing in it has to reach the disk.
    """

    url: str
    writer: Writer
    profile: str = "debug"
    schema: str | None = None
    names: Callable[[Literal["replay", "fork"], int], tuple[str, ...]] | None = None
    is_scratch: bool = False

    def place(self, thread: str, id: str | None = None) -> Place:
        """A thread of it as a record."""
        return Place(self.writer.info.url, thread, id, self.profile)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything that replays and forks of one command share.

    Attributes:
        source: Where the target lives; only read.
        debug: Where its copies go and are run.
        graph: The application's compiled graph.
        graph_name: How the graph was named, for the plan.
        policy: Where answers to tool calls come from, a fork's own answers aside.
        recording: What the tools answered in the whole source thread.
        models: What its models answered from the target on, where that stands for every model; None lets models run.
        limits: Limits of each run.
        check: What failing means, or None.
        answers: Answers to interrupts, in order or by interrupt id or node.
        configurable: Configuration given on the command line; it wins over the recorded one.
        context: Runtime context of the graph.
        memory: Items of the memory store that each run sees a copy of; None takes those beside the checkpoints.
        drop: Channels that the graph has no more, whose values runs go on without.
        reason: Why, for the metadata of everything written; '' for none.
        case: Name of the case that this belongs to.
        masked: Whether the personal data of the source thread is masked: by its reader, or in its rows already.
        on_plan: Called with the plan before anything is copied or run.
        on_threads: Called with the debug threads and `replay` or `fork` before they are made.
        on_end: Called as each run ends.
    """

    source: Reader
    debug: DebugStore
    graph: Pregel[Any, Any, Any, Any]
    graph_name: str = ""
    policy: Policy = field(default_factory=Policy)
    recording: Recording = field(default_factory=Recording)
    models: ModelRecording | None = None
    limits: Limits = field(default_factory=Limits)
    check: Check | None = None
    answers: Answers = ()
    configurable: Mapping[str, object] = field(default_factory=dict)
    context: object = None
    memory: Sequence[MemoryItem] | None = None
    drop: Collection[str] = ()
    reason: str = ""
    case: str = ""
    masked: bool = False
    isolation: str = IN_PROCESS
    on_plan: Callable[[Plan], None] | None = None
    on_threads: Callable[[Sequence[Place], str], None] | None = None
    on_end: Callable[[Ended], None] | None = None


def recorded_configurable(metadata: Mapping[str, object]) -> dict[str, object]:
    """Returns the configuration that a checkpoint's metadata recorded: its scalars, but for LangGraph's own.

    Source: `get_checkpoint_metadata` (langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py), which stores the
    scalars of `configurable` in the metadata of every checkpoint, beside the run's own metadata.
    """
    return {
        key: value
        for key, value in metadata.items()
        if isinstance(value, str | int | float | bool)
        and key not in NOT_CONFIGURATION
        and not key.startswith(_INTERNAL)
    }


def provenance(
    target: Target, op: str, reason: str, *, as_node: str | None = None, case: str = "", masked: bool = False
) -> dict[str, str]:
    """Returns the flat metadata that says where a copy came from, what was done, why, for which case, and if masked."""
    facts = {ORIGIN: target.place.target, "agentctl_op": op}
    if masked:
        facts[MASKED] = "true"
    if target.ns:
        facts["agentctl_origin_ns"] = target.ns
    if reason:
        facts["agentctl_reason"] = reason
    if as_node:
        facts["agentctl_as_node"] = as_node
    if case:
        facts[CASE] = case
    return facts


def run_jobs(
    experiment: Experiment, jobs: Sequence[RunJob], *, policy: Policy, after: str | None, kept: Iterable[str] = ()
) -> tuple[Ended, ...]:
    """Runs jobs on the debug store with every tool call answered by the policy.

    Args:
        experiment: The experiment.
        jobs: The runs.
        policy: The policy in force, a fork's answers included.
        after: Checkpoint of the source thread from which the runs start, for the place in the recording.
        kept: Call ids whose recorded answers are already in the copied rows.
    """
    from agentctl.sandbox.injection import sandboxed
    from agentctl.sandbox.models.gate import install as gate_models
    from agentctl.stores.copying.clock import ids_after

    debug = experiment.debug
    changes = Changes(experiment.configurable, policy.retold)
    if experiment.models is not None:
        gate_models()

    def desk_for(job: RunJob) -> Desk:
        models = ModelDesk(experiment.models, changes) if experiment.models is not None else None
        return Desk(policy, experiment.recording.cursor(after, kept=frozenset(kept)), models=models)

    items = experiment.source.memory() if experiment.memory is None else experiment.memory

    memory = {job.thread: MemoryCopy.of(items) for job in jobs} if items or experiment.graph.store is not None else {}

    def graph_for(job: RunJob) -> Pregel[Any, Any, Any, Any]:
        return copied(experiment.graph, store=memory[job.thread].store) if memory else experiment.graph

    for job in jobs:
        for row in debug.writer.rows(job.thread, metadata=False)[:1]:
            ids_after(row.id)
    with sandboxed(experiment.graph):
        all_ended = run_all(
            jobs,
            open_saver=lambda: open_saver(debug.url, schema=debug.schema, is_scratch=debug.is_scratch),
            graph_for=graph_for,
            desk_for=desk_for,
            limits=experiment.limits,
            context=experiment.context,
            on_end=experiment.on_end,
        )
    if experiment.models is not None:
        all_ended = tuple(_as_recorded(experiment, ended) for ended in all_ended)
    return tuple(replace(ended, memory=memory[ended.job.thread].writes()) if memory else ended for ended in all_ended)


def _as_recorded(experiment: Experiment, ended: Ended) -> Ended:
    """Returns how a run ended: one in which an answer was not for what was asked is blocked."""
    if ended.status not in ("done", "interrupted") or not ended.model_answers:
        return ended
    problem = unstored(ended.model_answers, answers_stored(experiment.debug.writer, ended.job.thread))
    return ended if problem is None else replace(ended, status="blocked", error=problem, blocked_hint=HINT)
