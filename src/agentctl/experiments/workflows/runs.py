"""`run` and `resume`: a workflow on a thread of its own, not a copy.

With sandbox tools they go into a debug store and nowhere else; on any other store they are production, and that takes
three things said at once: write access in the profile, production tools on the command line, and the environment.

A thread is run by one command at a time, and by none that looked at it before another one moved it on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from agentctl.errors import NotFound, Refused, UsageError
from agentctl.experiments.fitting import check_head
from agentctl.experiments.runs.graph_parts import tool_use
from agentctl.experiments.runs.memory import MemoryCopy
from agentctl.experiments.runs.reports import report_run
from agentctl.experiments.runs.resuming import Answered, Answers, never, resume_by_id
from agentctl.experiments.runs.running import Limits, Listener, RunJob, in_event_loop, run_all
from agentctl.experiments.runs.savers import open_memory, open_saver
from agentctl.experiments.workflows.callers import BY, thread_configurable
from agentctl.experiments.workflows.claims import Claim, claim_answers
from agentctl.experiments.workflows.departures import Departure, Stand, depart_with_answers, depart_with_input, taken_on
from agentctl.experiments.workflows.open_calls import asked_in_turn, left_behind
from agentctl.experiments.workflows.thread_locks import Holder, only_run
from agentctl.experiments.workflows.waiting import find_answered
from agentctl.records.copies import Place, command
from agentctl.records.rows import MemoryItem
from agentctl.records.runs import RunReport, ToolCallReport
from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.graph_copies import copied
from agentctl.stores.base import Reader
from agentctl.stores.copying.clock import ids_after
from agentctl.stores.open import open_reader, open_writer

if TYPE_CHECKING:
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

ENVIRONMENT = "AGENTCTL_ENV"
PRODUCTION = "production"

Tools = Literal["sandbox", "production"]
UNSEEN: Final = "unseen"
"""In place of a head's id: whatever the thread's head is."""


@dataclass(frozen=True, slots=True)
class WorkflowStore:
    """Where a workflow runs.

    Attributes:
        url: What opens it; may hold a password.
        name: How messages name it.
        access: What its profile allows.
        is_debug: Whether it is a debug store.
        profile: The profile that reaches it, '' for none.
        schema: Postgres schema of the tables; None takes the search path.
    """

    url: str
    name: str
    access: Literal["read", "write"] = "read"
    is_debug: bool = False
    profile: str = ""
    schema: str | None = None

    def target(self, thread: str) -> str:
        """Returns the text that names a thread of it on the command line."""
        return Place(self.url, thread, None, self.profile).target


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow that is about to run.

    Attributes:
        graph: Its compiled graph, built on the tools that are to run.
        store: Where it runs.
        tools: Which tools its graph was built on.
        policy: What answers sandboxed calls; not used with production tools.
        limits: Limits of the run.
        configurable: Configuration of the run; on a resume it wins over the recorded one.
        metadata: Metadata for the rows that the run writes, such as the thread's owner.
        context: Runtime context of the graph.
        memory: Items of the memory store that a sandboxed run sees a copy of.
        answers: Answers to interrupts that come up on the way, in order or by interrupt id or node.
        name: What it is called.
        claim: The application's own claim of an answer, asked before one is given; None where it has none.
    """

    graph: Pregel[Any, Any, Any, Any]
    store: WorkflowStore
    tools: Tools = "sandbox"
    policy: Policy = field(default_factory=lambda: Policy(mode="sandbox"))
    limits: Limits = field(default_factory=Limits)
    configurable: Mapping[str, object] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    context: object = None
    memory: tuple[MemoryItem, ...] = ()
    answers: Answers = ()
    name: str = ""
    claim: Claim | None = None


def _no_metadata(departure: Departure) -> Mapping[str, str]:
    return {}


def _not_kept(calls: Sequence[ToolCallReport]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Watch:
    """Who gives a command and follows its run.

    Attributes:
        who: The person, as others are told.
        listener: Hears what the run streams.
        on_start: Called before anything is written; returns metadata for the rows of the run.
        on_cut: Called with the tool calls of a run that is cut off before its end.
        now: The clock, UTC.
    """

    who: str = "somebody"
    listener: Listener | None = None
    on_start: Callable[[Departure], Mapping[str, str]] = _no_metadata
    on_cut: Callable[[Sequence[ToolCallReport]], None] = _not_kept
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def check_allowed(store: WorkflowStore, tools: Tools, env: Mapping[str, str] | None = None) -> None:
    """Refuses a run that may not happen where it is asked for.

    Args:
        store: Where.
        tools: With which tools.
        env: The environment; the process's own by default.

    Raises:
        Refused: It may not, with what would allow it.
    """
    environment = (os.environ if env is None else env).get(ENVIRONMENT)
    if store.is_debug and tools == PRODUCTION:
        raise Refused(
            f"{store.name} is a debug store, and production tools would have real effects from it",
            hint="leave --tools production out",
        )
    if store.is_debug:
        return
    if tools == "sandbox":
        raise Refused(
            f"{store.name} is no debug store, and sandbox tools would leave results in it that never happened",
            hint="debug::THREAD is in the debug store; real effects need --tools production",
        )
    if store.access != "write":
        raise Refused(f"{store.name} has access: read", hint="its profile needs access: write in agentctl.yaml")
    if environment != PRODUCTION:
        raise Refused(
            f"{ENVIRONMENT} is {environment or 'not set'}, and production tools run in production only",
            hint=f"export {ENVIRONMENT}={PRODUCTION}",
        )


def run_workflow(
    workflow: Workflow,
    thread: str,
    value: object,
    *,
    discard_interrupt: bool = False,
    seen: str | None = UNSEEN,
    env: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> RunReport:
    """Starts a thread with input, gives a finished one its next input, or goes on with a stopped one (`value` None).

    Args:
        workflow: The workflow.
        thread: Thread id.
        value: Input of the graph, or None to go on where the thread stopped.
        discard_interrupt: Whether input may be given to a thread that waits, whose question is then lost.
        seen: Id of the head that the command was given for, None for a thread that did not exist.
        env: The environment.
        watch: Who gives the command and follows the run.

    Raises:
        Refused: It may not run there, a question waits, or somebody else runs the thread or moved it on.
        NotFound: There is nothing to go on with.
    """
    watch = watch or Watch()
    check_allowed(workflow.store, workflow.tools, env)
    if workflow.store.is_debug:
        _make(workflow.store)
    with _alone(workflow, thread, "run", watch):
        stand = read_stand(workflow, thread, seen=seen)
        departure = departure_with_input(workflow, thread, value, stand, discard_interrupt)
        return _go(workflow, departure, RunJob(thread, payload=value, **_given(workflow, stand.snapshot)), watch)


def resume_workflow(
    workflow: Workflow,
    thread: str,
    *,
    value: object = None,
    by_id: Mapping[str, object] | None = None,
    seen: str | None = UNSEEN,
    answered: Answered = never,
    env: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> RunReport:
    """Answers the questions that wait on a thread and runs on. None is an answer like any other.

    Args:
        workflow: The workflow.
        thread: Thread id.
        value: The answer, where one question waits and `by_id` is None.
        by_id: Answers by interrupt id; questions left out go on waiting.
        seen: Id of the head that the command was given for.
        answered: Tells who answered a question that does not wait any more.
        env: The environment.
        watch: Who gives the command and follows the run.

    Raises:
        Refused: It may not run there, nothing waits, one answer was given to several questions, or somebody else runs
            the thread or moved it on.
        UsageError: An id is not waiting there.
        NotFound: There is no such thread.
    """
    watch = watch or Watch()
    check_allowed(workflow.store, workflow.tools, env)
    with _alone(workflow, thread, "resume", watch):
        stand = read_stand(workflow, thread, seen=seen)
        departure = departure_with_answers(workflow, thread, value, by_id, stand, answered)
        payload = resume_by_id(departure.answers)
        job = RunJob(thread, payload=payload, expected=departure.nodes, **_given(workflow, stand.snapshot))

        def claim() -> None:
            if workflow.claim is not None:
                hint = command("show", workflow.store.target(thread))
                claim_answers(workflow.claim, thread, departure.answers, job.configurable, hint=hint)

        return _go(workflow, departure, job, watch, before=claim)


def departure_with_input(workflow: Workflow, thread: str, value: object, stand: Stand, discard: bool) -> Departure:
    """Returns what `run` would begin with; see `depart_with_input`."""
    target = workflow.store.target(thread)
    departure = depart_with_input(stand, thread, value, discard=discard, target=target, workflow=workflow.name)
    return replace(departure, warnings=tuple(left_behind(stand))) if departure.has_input else departure


def departure_with_answers(
    workflow: Workflow,
    thread: str,
    value: object,
    by_id: Mapping[str, object] | None,
    stand: Stand,
    answered: Answered = never,
) -> Departure:
    """Returns what `resume` would begin with; see `depart_with_answers`.

    Raises:
        NotFound: There is no such thread.
        UsageError: There is no answer.
    """
    if by_id is not None and not by_id:
        raise UsageError("no answer is given", hint="--value JSON, or --map ID=JSON")
    if stand.snapshot is None:
        raise NotFound(
            f"there is no thread {thread} in {workflow.store.name}",
            hint=f"agentctl threads {workflow.store.profile}::" if workflow.store.profile else "agentctl threads",
        )
    target = workflow.store.target(thread)
    departure = depart_with_answers(
        stand, thread, value, by_id, target=target, workflow=workflow.name, answered=answered
    )
    return replace(departure, warnings=tuple(asked_in_turn(stand, tool_use(workflow.graph).nodes)))


def read_stand(workflow: Workflow, thread: str, *, seen: str | None = UNSEEN) -> Stand:
    """Returns where a thread stands. The store must exist.

    Args:
        workflow: The workflow.
        thread: Thread id.
        seen: Id of the head that it must have, None for a thread that must not exist.

    Raises:
        Refused: Its head is another one, or has values that the graph would not be given as they were.
    """

    async def read() -> StateSnapshot | None:
        async with open_saver(workflow.store.url, schema=workflow.store.schema, setup=False) as saver:
            graph = copied(workflow.graph, checkpointer=saver)
            state: StateSnapshot = await graph.aget_state({"configurable": {"thread_id": thread}})
        return state if state.metadata is not None else None

    snapshot = in_event_loop(read())
    with _reading(workflow.store) as reader:
        stand = Stand(snapshot, find_answered(reader, thread))
        if stand.head is not None:
            check_head(reader, thread, stand.head, workflow.graph)
    if seen not in (UNSEEN, stand.head):
        target, by = workflow.store.target(thread), taken_on(stand.snapshot)
        raise Refused(
            f"{target} is not what this command was given for any more: it was taken on{by}; nothing was run",
            hint=command("show", target),
        )
    return stand


def _answered(store: WorkflowStore, thread: str) -> frozenset[str]:
    with _reading(store) as reader:
        return find_answered(reader, thread)


def _reading(store: WorkflowStore) -> AbstractContextManager[Reader]:
    return closing(open_reader(store.url, profile=store.profile, schema=store.schema))


def _make(store: WorkflowStore) -> None:
    """Makes a debug store where it is missing; one that is missing elsewhere stays an error."""
    writer = open_writer(store.url, profile=store.profile, schema=store.schema)
    try:
        writer.setup()
    finally:
        writer.close()


def _alone(workflow: Workflow, thread: str, verb: str, watch: Watch) -> AbstractContextManager[None]:
    holder = Holder(watch.who, verb, watch.now())
    return only_run(workflow.store.url, thread, holder, target=workflow.store.target(thread))


def _given(workflow: Workflow, state: StateSnapshot | None) -> dict[str, Any]:
    return {
        "configurable": configurable_of(workflow, state),
        "metadata": workflow.metadata,
        "answers": workflow.answers,
    }


def configurable_of(workflow: Workflow, state: StateSnapshot | None) -> dict[str, object]:
    """Returns the configuration of a run: what the thread recorded but for who called then, and what was given."""
    recorded = thread_configurable(state.metadata or {}) if state is not None else {}
    return {**recorded, **workflow.configurable}


def _nothing() -> None:
    return None


def _go(
    workflow: Workflow, departure: Departure, job: RunJob, watch: Watch, *, before: Callable[[], None] = _nothing
) -> RunReport:
    """Runs; `before` is called last of all before that, and may refuse."""
    job = replace(job, metadata={**job.metadata, BY: watch.who, **watch.on_start(departure)})
    if departure.head is not None:
        ids_after(departure.head)
    sandboxed, store = workflow.tools == "sandbox", workflow.store
    graph = workflow.graph
    memory = MemoryCopy.of(workflow.memory) if sandboxed and (graph.store is not None or workflow.memory) else None
    if memory is not None:
        graph = copied(graph, store=memory.store)
    before()
    own_memory = sandboxed or graph.store is not None
    with _sandbox(workflow.graph) if sandboxed else nullcontext():
        (ended,) = run_all(
            [job],
            open_saver=lambda: open_saver(store.url, schema=store.schema, setup=False),
            graph_for=lambda job: graph,
            desk_for=lambda job: Desk(workflow.policy) if sandboxed else None,
            limits=workflow.limits,
            context=workflow.context,
            listener=watch.listener,
            on_cut=lambda job, calls: watch.on_cut(calls),
            open_memory=nullcontext if own_memory else lambda: open_memory(store.url, schema=store.schema),
        )
    if memory is not None:
        ended = replace(ended, memory=memory.writes())
    run, answered = report_run(ended, None), _answered(store, job.thread)
    return replace(run, interrupts=tuple(asked for asked in run.interrupts if asked["id"] not in answered))


def _sandbox(graph: Pregel[Any, Any, Any, Any]) -> AbstractContextManager[object]:
    from agentctl.sandbox.injection import sandboxed

    return sandboxed(graph)
