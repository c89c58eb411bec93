"""Running a graph from stored checkpoints: many runs at once, each with its own limits, answers and events.

Every run takes the async path, for sync and async graphs alike, on one saver, with durability "sync": the default
stores wrong checkpoints when nodes are fast. What a run gave is read at its own tip, never at "the newest checkpoint".
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agentctl.experiments.runs.resuming import Answers, command_for
from agentctl.experiments.runs.threads import DaemonThreads
from agentctl.records.runs import MemoryWrite, RunStatus, ToolCallReport, Usage
from agentctl.sandbox.calls import Blocked
from agentctl.sandbox.gate import running
from agentctl.sandbox.graph_copies import copied
from agentctl.sandbox.models.desk import ModelBlocked, Served

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

    from agentctl.experiments.runs.events import RunEvents
    from agentctl.sandbox.answers import Desk

T = TypeVar("T")

TIMEOUT_S = 120.0
MAX_STEPS = 50

CHECKPOINTS = "checkpoints"

MACHINERY = ("agentctl/experiments/", "/langgraph/", "/langchain_core/", "/asyncio/", "/concurrent/")
"""Parts of file names whose frames say nothing about why a graph failed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run is stopped: after `timeout_s` seconds in all, or after `max_steps` super-steps without a pause."""

    timeout_s: float = TIMEOUT_S
    max_steps: int = MAX_STEPS


@dataclass(frozen=True, slots=True)
class RunJob:
    """One run to make.

    Attributes:
        thread: Thread to run on, in the saver's store.
        start: Checkpoint id to run from, re-executing its tasks; None continues the thread as it is.
        payload: Input of the graph: None to go on, a mapping of values, or a LangGraph `Command`.
        expected: Nodes (with path) that must start for the run to be evidence, with multiplicity.
        configurable: Recorded configuration to give back to the graph.
        metadata: Metadata for the rows that the run writes.
        answers: What to answer interrupts with; without answers an interrupt ends the run.
    """

    thread: str
    start: str | None = None
    payload: object = None
    expected: tuple[str, ...] = ()
    configurable: Mapping[str, object] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    answers: Answers = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run ended, still with the application's own objects in it.

    `values` are the final channel values; `next` the nodes that would run next; `waits_before` the same with the path
    of those inside a subgraph, where a breakpoint stopped the run; `interrupts` the LangGraph interrupts that wait for
    an answer, each with the node that asks; `model_answers` the recorded ones that stood for a model's; `memory` what
    it wrote to its copy of the memory store.
    """

    job: RunJob
    status: RunStatus
    nodes: tuple[str, ...]
    tool_calls: tuple[ToolCallReport, ...]
    usage: Usage
    head: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    next: tuple[str, ...] = ()
    waits_before: tuple[str, ...] = ()
    interrupts: tuple[tuple[str, Any], ...] = ()
    error: str | None = None
    error_traceback: str | None = None
    blocked_hint: str | None = None
    model_answers: tuple[Served, ...] = ()
    memory: tuple[MemoryWrite, ...] = ()


GraphFor = Callable[[RunJob], "Pregel[Any, Any, Any, Any]"]
DeskFor = Callable[[RunJob], "Desk | None"]
OnCut = Callable[[RunJob, Sequence[ToolCallReport]], None]


class Listener(Protocol):
    """Hears what a run streams, as it happens. What it raises ends the run, and is raised by `run_all`."""

    @property
    def modes(self) -> Sequence[str]:
        """The stream modes of LangGraph to hear."""
        ...

    def hear(self, ns: tuple[str, ...], mode: str, data: Any) -> None:
        """Takes one part: the namespace of the graph that it comes from, its mode, its data."""
        ...


def run_all(
    jobs: Sequence[RunJob],
    *,
    open_saver: Callable[[], Any],
    graph_for: GraphFor,
    desk_for: DeskFor,
    limits: Limits,
    context: object = None,
    on_end: Callable[[Ended], None] | None = None,
    listener: Listener | None = None,
    on_cut: OnCut | None = None,
    open_memory: Callable[[], Any] = nullcontext,
) -> tuple[Ended, ...]:
    """Runs all jobs at the same time on one saver and returns how each ended, in the order of `jobs`.

    Args:
        jobs: The runs, each on a thread of its own.
        open_saver: Gives an async context manager around the one saver.
        graph_for: Gives the compiled graph of a run; its checkpointer is replaced.
        desk_for: Gives the desk that answers a run's tool calls; None lets them run, unseen.
        limits: Limits of each run.
        context: The graph's runtime context, for graphs that have a context schema.
        on_end: Called as each run ends, for progress.
        listener: Hears what the runs stream, inner graphs included.
        on_cut: Called with the tool calls so far of a run that is cut off before its end.
        open_memory: Gives an async context manager around the memory store of all runs; one around None leaves the
            graph's own.

    Raises:
        KeyboardInterrupt: Ctrl-C; the runs are cancelled and the saver is closed first.
    """

    async def all_of_them() -> tuple[Ended, ...]:
        try:
            async with open_saver() as saver, open_memory() as memory, asyncio.TaskGroup() as group:
                tasks = [group.create_task(_one(job, saver, memory)) for job in jobs]
        except BaseExceptionGroup as raised:
            raise raised.exceptions[0] from None
        return tuple(task.result() for task in tasks)

    async def _one(job: RunJob, saver: BaseCheckpointSaver[str], memory: object) -> Ended:
        own = {} if memory is None else {"store": memory}
        graph = copied(graph_for(job), checkpointer=saver, cache=None, **own)
        ended = await run_one(job, graph, desk_for(job), limits, context, listener, on_cut)
        if on_end is not None:
            on_end(ended)
        return ended

    return in_event_loop(all_of_them())


def in_event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs async work in a new event loop whose sync nodes get a thread each; Ctrl-C cancels the work."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(DaemonThreads())
        return runner.run(work)


async def run_one(
    job: RunJob,
    graph: Pregel[Any, Any, Any, Any],
    desk: Desk | None,
    limits: Limits,
    context: object = None,
    listener: Listener | None = None,
    on_cut: OnCut | None = None,
) -> Ended:
    """Runs one job to its end. Whatever the graph raises becomes a status.

    What cuts the run off gets out: cancellation, and what the listener raised.

    Must be the body of a task of its own: the desk is found through a context variable.
    """
    from agentctl.experiments.runs.events import RunEvents

    events = RunEvents()
    drive = _Drive(job, graph, events, limits, context, listener)

    def calls_so_far() -> tuple[ToolCallReport, ...]:
        return desk.calls if desk else events.calls

    began = time.perf_counter()
    failure: BaseException | None = None
    timed_out = False
    with running(desk) if desk else nullcontext(), untraced():
        try:
            async with asyncio.timeout(limits.timeout_s) as deadline:
                await drive.to_the_end()
        except BaseException as error:
            cut = drive.not_heard or error
            if drive.not_heard is not None or _cuts_off(error):
                if on_cut is not None:
                    on_cut(job, calls_so_far())
                raise cut from None
            failure, timed_out = error, deadline.expired()
        wall_s = time.perf_counter() - began
        calls = calls_so_far()
        snapshot, waits_before = None, tuple[str, ...]()
        try:
            snapshot = await drive.snapshot()
            waits_before = await drive.breakpoints(snapshot)
        except Exception as error:
            snapshot, failure = None, failure or error
    blocked = desk.blocked if desk else None
    recorded = desk.models.served if desk and desk.models else None
    status = "blocked" if blocked else _status(job, events.nodes, snapshot, calls, failure, timed_out)
    shown = failure if status == "error" else None
    return Ended(
        job=job,
        status=status,
        nodes=events.nodes,
        tool_calls=calls,
        usage=events.usage(wall_s) if recorded is None else Usage(len(recorded), wall_s=wall_s, recorded=len(recorded)),
        head=drive.tip,
        values=_values(snapshot),
        next=tuple(snapshot.next) if snapshot else (),
        waits_before=waits_before if status == "interrupted" else (),
        interrupts=_asked(snapshot),
        error=_one_line(shown) if shown else _why(status, job, events.nodes, limits, blocked),
        error_traceback=their_traceback(shown) if shown else None,
        blocked_hint=blocked.hint if blocked else None,
        model_answers=recorded or (),
    )


class _Drive:
    """Takes a run from stop to stop, answering interrupts, and keeps its tip."""

    def __init__(
        self,
        job: RunJob,
        graph: Pregel[Any, Any, Any, Any],
        events: RunEvents,
        limits: Limits,
        context: object,
        listener: Listener | None,
    ) -> None:
        self._job = job
        self._graph: Any = graph
        self._listener = listener
        self._context = context
        self._config: dict[str, Any] = {
            "configurable": {**job.configurable, "thread_id": job.thread},
            "metadata": dict(job.metadata),
            "callbacks": [events],
        }
        self._max_steps = limits.max_steps
        self.tip: str | None = job.start
        self.not_heard: BaseException | None = None

    async def to_the_end(self) -> None:
        """Runs until nothing is next or a stop has no answer left.

        A thread that is continued where questions already wait gets the first answers at once.
        """
        payload, start, n_answered = self._job.payload, self._job.start, 0
        if payload is None and start is None and (waiting := _asked(await self.snapshot())):
            payload, n_answered = command_for(waiting, self._job.answers, 0) or (None, 0)
        while True:
            await self._segment(payload, start)
            state = await self.snapshot()
            if state is None or not state.next:
                return
            command = command_for(_asked(state), self._job.answers, n_answered)
            if command is None:
                return
            payload, n_used = command
            start, n_answered = None, n_answered + n_used

    async def _segment(self, payload: object, start: str | None) -> None:
        configurable = {**self._config["configurable"], **({"checkpoint_id": start} if start else {})}
        stream = self._graph.astream(
            payload,
            {
                **self._config,
                "configurable": configurable,
                "recursion_limit": recursion_limit(self._max_steps, payload, start),
            },
            context=self._context,
            stream_mode=list(dict.fromkeys((CHECKPOINTS, *(self._listener.modes if self._listener else ())))),
            subgraphs=self._listener is not None,
            durability="sync",
        )
        async with aclosing(stream):
            async for part in stream:
                ns, mode, data = part if self._listener else ((), *part)
                if mode == CHECKPOINTS and not ns:
                    self.tip = data["config"]["configurable"]["checkpoint_id"]
                if self._listener and mode in self._listener.modes:
                    self._tell(ns, mode, data)
        if self.not_heard is not None:
            raise self.not_heard

    def _tell(self, ns: tuple[str, ...], mode: str, data: Any) -> None:
        """Lets the listener hear a part; when it fails, the graph is stopped where it waits next, as on Ctrl-C."""
        task = asyncio.current_task()
        if self._listener is None or task is None or self.not_heard is not None:
            return
        try:
            self._listener.hear(ns, mode, data)
        except BaseException as error:
            self.not_heard = error
            task.cancel()

    async def snapshot(self) -> StateSnapshot | None:
        """Returns the state at the run's own tip, with the writes of finished tasks in it; None where nothing ran."""
        here = {"configurable": {"thread_id": self._job.thread}}
        state: StateSnapshot = await self._graph.aget_state(here)
        if self.tip is not None and state.config["configurable"].get("checkpoint_id") != self.tip:
            pinned = {"configurable": {"thread_id": self._job.thread, "checkpoint_id": self.tip}}
            state = await self._graph.aget_state(pinned)
        self.tip = state.config["configurable"].get("checkpoint_id")
        return state if state.metadata is not None else None

    async def breakpoints(self, state: StateSnapshot | None) -> tuple[str, ...]:
        """Returns the nodes that a state without a question waits before, with their path inside subgraphs."""
        if state is None or not state.next or _asked(state):
            return ()
        deep: StateSnapshot = await self._graph.aget_state(state.config, subgraphs=True)
        return tuple(_innermost(deep))


def _innermost(state: Any) -> Iterator[str]:
    """Yields the unfinished nodes of a state, those inside a subgraph that has begun in place of the node around."""
    left = Counter(state.next)
    for task in state.tasks:
        if not left[task.name]:
            continue
        left[task.name] -= 1
        inner = list(_innermost(task.state)) if hasattr(task.state, "tasks") else []
        yield from (f"{task.name}|{name}" for name in inner) if inner else (task.name,)


def recursion_limit(max_steps: int, payload: object, start: str | None) -> int:
    """Returns LangGraph's limit under which at most `max_steps` super-steps run; at least 1, as LangGraph asks.

    With input the limit is the number of steps; from a checkpoint named by id one more runs, and where a thread is
    continued two more do, since these steps are counted from the one after the checkpoint.

    Source: langgraph 1.2.24, pregel/_loop.py (`stop = step + recursion_limit + 1`).
    """
    more = 1 if start else 2 if payload is None or type(payload).__name__ == "Command" else 0
    return max(1, max_steps - more)


def _cuts_off(error: BaseException) -> bool:
    """Returns whether a run is to end now: this task was asked to stop, not the graph raising a CancelledError."""
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, KeyboardInterrupt | SystemExit)
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _status(
    job: RunJob,
    nodes: Sequence[str],
    snapshot: StateSnapshot | None,
    calls: Sequence[ToolCallReport],
    failure: BaseException | None,
    timed_out: bool,
) -> RunStatus:
    """Decides how a run ended. A blocked call comes first: whatever it raised or hung afterwards follows from it."""
    from langgraph.errors import GraphRecursionError

    if any(call.served_by == "blocked" for call in calls):
        return "blocked"
    if timed_out:
        return "timeout"
    if isinstance(failure, GraphRecursionError):
        return "step_limit"
    if failure is not None:
        return "error"
    pending = tuple(snapshot.next) if snapshot else ()
    waits_at_breakpoint = set(pending) if pending and not _asked(snapshot) else set()
    if [node for node in missing_nodes(job.expected, nodes) if node not in waits_at_breakpoint]:
        return "not_run"
    return "interrupted" if pending else "done"


def node_path(ns: str) -> str:
    """Returns the node names of a checkpoint namespace: `a:<task>|1|b:<task>` is `a|b`.

    A number alone tells apart the subgraphs that one task runs; a subgraph with a history of its own has no task id.
    """
    return "|".join(part.partition(":")[0] for part in ns.split("|") if part and not part.isdigit())


def missing_nodes(expected: Sequence[str], started: Sequence[str]) -> tuple[str, ...]:
    """Returns the planned nodes that did not start, with multiplicity."""
    left = list(started)
    missing = []
    for node in expected:
        if node in left:
            left.remove(node)
        else:
            missing.append(node)
    return tuple(missing)


def _why(status: RunStatus, job: RunJob, nodes: Sequence[str], limits: Limits, blocked: Blocked | None) -> str | None:
    """Returns one line about a run that did not end by itself."""
    match status:
        case "blocked":
            return str(blocked) if isinstance(blocked, ModelBlocked) else None
        case "not_run":
            return f"did not start: {', '.join(missing_nodes(job.expected, nodes))}"
        case "timeout":
            return f"no end within {limits.timeout_s:g} s"
        case "step_limit":
            return f"no end within {limits.max_steps} steps"
        case _:
            return None


def _asked(snapshot: StateSnapshot | None) -> tuple[tuple[str, Any], ...]:
    """Returns (node, interrupt) for every question that waits for an answer, in the order of the tasks."""
    if snapshot is None:
        return ()
    return tuple((task.name, question) for task in snapshot.tasks for question in task.interrupts)


def _values(snapshot: StateSnapshot | None) -> Mapping[str, object]:
    """Returns the channel values; a functional-API result, which has no channel name, as `__end__`."""
    if snapshot is None:
        return {}
    if isinstance(snapshot.values, Mapping):
        return snapshot.values
    return {"__end__": snapshot.values}


def _one_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def their_traceback(error: BaseException) -> str:
    """Returns the traceback as text without the frames of agentctl, LangGraph and the event loop."""
    shown = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = shown
    while part is not None:
        own = [frame for frame in part.stack if not any(name in frame.filename for name in MACHINERY)]
        part.stack = traceback.StackSummary.from_list(own or list(part.stack))
        part = part.__cause__ or part.__context__
    return "".join(shown.format())


def untraced() -> AbstractContextManager[object]:
    """Keeps runs out of LangSmith: an experiment sends nobody the prompts that it replays."""
    from langsmith import tracing_context

    return tracing_context(enabled=False)
