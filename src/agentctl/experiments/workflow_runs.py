"""`run` and `resume`: a workflow on a thread of its own, not a copy.

With sandbox tools they go into a debug store and nowhere else; on any other store they are production, and that takes
three things said at once: write access in the profile, production tools on the command line, and the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agentctl.errors import NotFound, Refused, UsageError
from agentctl.experiments.experiment import memory_store, recorded_configurable
from agentctl.experiments.reports import inert, report_run
from agentctl.experiments.resuming import Answers, check_resume, resume_by_id
from agentctl.experiments.running import Limits, RunJob, in_event_loop, run_all
from agentctl.experiments.savers import open_saver
from agentctl.records.copies import Place, command
from agentctl.records.rows import MemoryItem
from agentctl.records.runs import RunReport
from agentctl.sandbox.answers import Desk, Policy
from agentctl.stores.copying.clock import ids_after

if TYPE_CHECKING:
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

ENVIRONMENT = "AGENTCTL_ENV"
PRODUCTION = "production"

Tools = Literal["sandbox", "production"]


@dataclass(frozen=True, slots=True)
class WorkflowStore:
    """Where a workflow runs.

    Attributes:
        url: What opens it; may hold a password.
        name: How messages name it.
        access: What its profile allows.
        is_debug: Whether it is a debug store.
        profile: The profile that reaches it, '' for none.
    """

    url: str
    name: str
    access: Literal["read", "write"] = "read"
    is_debug: bool = False
    profile: str = ""

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
    env: Mapping[str, str] | None = None,
) -> RunReport:
    """Starts a thread with input, gives a finished one its next input, or goes on with a stopped one (`value` None).

    Args:
        workflow: The workflow.
        thread: Thread id.
        value: Input of the graph, or None to go on where the thread stopped.
        discard_interrupt: Whether input may be given to a thread where a question waits, which is then lost.
        env: The environment.

    Raises:
        Refused: It may not run there, or a question waits on the thread.
        NotFound: There is nothing to go on with.
    """
    check_allowed(workflow.store, workflow.tools, env)
    state = _state(workflow, thread)
    waiting = _waiting(state)
    if value is None:
        if state is None or not state.next:
            raise NotFound(f"{thread} has nothing to go on with", hint="give it input: --input FILE")
        if waiting:
            raise Refused(
                f"{thread} waits for an answer",
                hint=_resume(workflow, thread),
                candidates=waiting,
            )
    elif waiting and not discard_interrupt:
        raise Refused(
            f"{thread} waits for an answer, and new input would discard the question",
            hint=f"answer it: {_resume(workflow, thread)}; or discard it: --discard-interrupt",
            candidates=waiting,
        )
    return _go(workflow, RunJob(thread, payload=value, **_given(workflow, state)), state)


def resume_workflow(
    workflow: Workflow,
    thread: str,
    *,
    value: object = None,
    by_id: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
) -> RunReport:
    """Answers the questions that wait on a thread and runs on. None is an answer like any other.

    Args:
        workflow: The workflow.
        thread: Thread id.
        value: The answer, where one question waits and `by_id` is None.
        by_id: Answers by interrupt id; questions left out go on waiting.
        env: The environment.

    Raises:
        Refused: It may not run there, nothing waits, or one answer was given to several questions.
        UsageError: An id is not waiting there.
        NotFound: There is no such thread.
    """
    check_allowed(workflow.store, workflow.tools, env)
    if by_id is not None and not by_id:
        raise UsageError("no answer is given", hint="--value JSON, or --map ID=JSON")
    state = _state(workflow, thread)
    if state is None:
        raise NotFound(
            f"there is no thread {thread} in {workflow.store.name}",
            hint=f"agentctl threads {workflow.store.profile}::" if workflow.store.profile else "agentctl threads",
        )
    waiting = _waiting(state)
    answers = check_resume(waiting, value, by_id, thread=thread, target=workflow.store.target(thread))
    asking = tuple(str(question["node"]) for question in waiting if question["id"] in answers)
    job = RunJob(thread, payload=resume_by_id(answers), expected=asking, **_given(workflow, state))
    return _go(workflow, job, state)


def _resume(workflow: Workflow, thread: str) -> str:
    return command("resume", workflow.store.target(thread), "--value", "JSON")


def _given(workflow: Workflow, state: StateSnapshot | None) -> dict[str, Any]:
    recorded = recorded_configurable(state.metadata or {}) if state is not None else {}
    return {
        "configurable": {**recorded, **workflow.configurable},
        "metadata": workflow.metadata,
        "answers": workflow.answers,
    }


def _go(workflow: Workflow, job: RunJob, state: StateSnapshot | None) -> RunReport:
    if state is not None:
        ids_after(state.config["configurable"]["checkpoint_id"])
    sandboxed = workflow.tools == "sandbox"
    graph = workflow.graph
    if sandboxed and (graph.store is not None or workflow.memory):
        graph = graph.copy(update={"store": memory_store(workflow.memory)})
    with _sandbox(workflow.graph) if sandboxed else nullcontext():
        (ended,) = run_all(
            [job],
            open_saver=lambda: open_saver(workflow.store.url),
            graph_for=lambda job: graph,
            desk_for=lambda job: Desk(workflow.policy) if sandboxed else None,
            limits=workflow.limits,
            context=workflow.context,
        )
    return report_run(ended, None)


def _sandbox(graph: Pregel[Any, Any, Any, Any]) -> AbstractContextManager[object]:
    from agentctl.sandbox.injection import sandboxed

    return sandboxed(graph)


def _state(workflow: Workflow, thread: str) -> StateSnapshot | None:
    """Returns the thread's state, None where the thread does not exist."""

    async def read() -> StateSnapshot | None:
        async with open_saver(workflow.store.url) as saver:
            graph = workflow.graph.copy(update={"checkpointer": saver})
            state: StateSnapshot = await graph.aget_state({"configurable": {"thread_id": thread}})
        return state if state.metadata is not None else None

    return in_event_loop(read())


def _waiting(state: StateSnapshot | None) -> list[dict[str, object]]:
    """Returns the questions that wait, as `{"id", "node", "value"}`."""
    return [
        {"id": question.id, "node": task.name, "value": inert(question.value)}
        for task in (state.tasks if state is not None else ())
        for question in task.interrupts
    ]
