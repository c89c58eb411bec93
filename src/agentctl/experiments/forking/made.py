"""What a fork is made from and what it is when it is made, and the checks that each kind of fork must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agentctl.codec.messages import coerced_messages, messages_in
from agentctl.errors import Refused
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.forking.forms import Forms, Patch
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.pairing import new_problems
from agentctl.experiments.forking.point import Point
from agentctl.experiments.forking.results import Rows
from agentctl.experiments.forking.scratch import THREAD
from agentctl.experiments.runs.graph_parts import handler_of
from agentctl.records.runs import Answered
from agentctl.records.threads import Task
from agentctl.sandbox.calls import CallKey
from agentctl.sandbox.inert import inert
from agentctl.sandbox.replies import StepAnswer, Substitute
from agentctl.stores.base import CopyPlan, Reader
from agentctl.stores.copying.selection import for_replay, for_rerun, for_resume

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from agentctl.experiments.runs.graph_parts import Graph


@dataclass(frozen=True, slots=True)
class Given:
    """What a fork is made from.

    `graph` is the graph of the target's namespace, None where the root graph does not declare one (a subagent);
    `as_task` the task that `--as-node` names by its id.
    """

    experiment: Experiment
    point: Point
    forms: Forms
    graph: Graph | None
    as_task: Task | None = None

    @property
    def source(self) -> Reader:
        """Where the target lives."""
        return self.experiment.source

    @property
    def target(self) -> Target:
        """The checkpoint that is forked."""
        return self.point.target

    @property
    def waits(self) -> bool:
        """Whether a question waits at the target."""
        return any(task.interrupts and not task.finished for task in self.point.tasks)

    def going_on(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """Returns the nodes that run when tasks go on: a task whose error was caught goes on at its handler.

        Source: langgraph 1.2.24, pregel/_loop.py (`_resume_error_handlers_if_applicable`).
        """
        return tuple(self._goes_on_at(task) for task in tasks)

    def _goes_on_at(self, task: Task) -> str:
        if not task.caught:
            return task.name
        handler = task.handled_by if self.graph is None else handler_of(self.graph, task.name)
        return f"{task.name}|{handler}" if handler else task.name

    def known_graph(self) -> Graph:
        """Returns the graph of the namespace.

        Raises:
            Refused: It is not known.
        """
        if self.graph is None:
            raise Refused(f"the graph of {self.target.ns} cannot be found", hint="fork the checkpoint around it")
        return self.graph

    def resume_plan(self) -> CopyPlan:
        """Returns the rows from which the target goes on as it was."""
        return for_resume(self.source, self.target.thread, self.target.ns, self.target.id, THREAD)

    def rerun_plan(self, tasks: Iterable[Task]) -> CopyPlan:
        """Returns the rows from which some tasks of the target's step run again and the others stay finished."""
        again = {task.id: task.name for task in tasks}
        if not again:
            return self.resume_plan()
        return for_rerun(self.source, self.target.thread, self.target.ns, self.target.id, again, THREAD)

    def replay_plan(self) -> CopyPlan:
        """Returns the rows from which the target's step is executed again."""
        return for_replay(self.source, self.target.thread, self.target.ns, self.target.id, THREAD)


@dataclass(frozen=True, slots=True)
class Made:
    """A fork that is ready to be copied.

    Attributes:
        reader: Where its rows are: the source, or a scratch store that is gone when the block ends.
        plan: Which rows; None for a fork that starts on an empty thread.
        id: The forked checkpoint, None for an empty thread.
        next: Nodes that run next, `?` where rows cannot tell.
        as_node: The node whose result was changed or given.
        answered: Calls whose answers are fixed.
        substituted: The new results, for later calls that are the same.
        in_step: The new results of calls that code of the target's step makes, by task.
        asks: Tools that each run has to ask for a new result, or it shows nothing about it.
        kept: Ids of calls whose recorded answers are in the rows.
        payload: What the run is given: None to go on, or new input.
        warnings: What to know.
    """

    reader: Reader
    plan: CopyPlan | None
    id: str | None
    next: tuple[str, ...]
    as_node: str | None = None
    answered: tuple[Answered, ...] = ()
    substituted: Mapping[CallKey, Substitute] = field(default_factory=dict)
    in_step: tuple[StepAnswer, ...] = ()
    asks: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()
    payload: object = None
    warnings: tuple[str, ...] = ()


def with_rows(plan: CopyPlan, target: Target, rows: Rows) -> CopyPlan:
    """Returns a plan with changed writes of the target."""
    picks = tuple(
        replace(pick, except_tasks=pick.except_tasks | rows.dropped)
        if (pick.ns, pick.id) == (target.ns, target.id)
        else pick
        for pick in plan.picks
    )
    return replace(
        plan, picks=picks, edits={**plan.edits, **rows.edits}, extra_writes=(*plan.extra_writes, *rows.extra)
    )


def values_of(state: StateSnapshot) -> Mapping[str, Any]:
    """Returns the channel values of a state; none for the result of an entrypoint."""
    return state.values if isinstance(state.values, Mapping) else {}


def check_conversation(given: Given, values: Mapping[str, Any], *, changed: bool = False) -> None:
    """Checks that a fork breaks no conversation: each call is answered once, right after it.

    Args:
        given: What the fork was made from; problems that were there before are not the fork's.
        values: Its channel values, the application's objects.
        changed: Whether the conversation was set by hand, other than by results of calls.

    Raises:
        Refused: It does.
    """
    channel = given.point.channel
    if channel is None or channel not in values or not (changed or given.forms.calls or given.forms.update):
        return
    broken = new_problems(given.point.messages, messages_in(inert(values[channel])))
    if broken:
        raise Refused(
            f"the conversation would be broken: {'; '.join(broken)}",
            hint="give every call of a message its result, once: --answer CALL=JSON",
        )


def message_warnings(given: Given) -> Iterator[str]:
    """Yields messages of an update that may be meant as edits of the last one, and are not for lack of its id."""
    channel, update = given.point.channel, given.forms.update or {}
    if channel is None or channel not in update or not given.point.messages:
        return
    last = given.point.messages[-1]
    for message in coerced_messages(update[channel]):
        if message.id is None and message.role == last.role and last.role in ("ai", "human"):
            yield f"the {message.role} message of the update has no id: it comes after {last.id} and replaces nothing"


def artifact_warnings(calls: Sequence[NamedCall]) -> Iterator[str]:
    """Yields the patched calls whose artifact, which the model does not see but nodes may, is as it was."""
    for call in calls:
        if call.has_artifact and any(isinstance(form, Patch) for form in call.forms):
            yield f"the artifact of {call.name}'s result is as it was"
