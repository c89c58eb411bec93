"""Making a fork: from a target and its forms to the rows that a copy consists of, checked before anything is written.

Three kinds of copy, by what a form changes:

- A result of the target's own step (`--answer`, `--patch`, `--update` as a task that runs there): a resume copy whose
  stored writes are edited or completed. Nothing of the step runs again.
- State at the target (`--set`, a result that is in the state already, `--memory`, nothing at all): a replay copy with
  writes of no task. The step runs again with the new state.
- A new checkpoint after it (`--goto`, `--as-node`): an update made on a scratch copy, and the copy taken from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agentctl.codec.messages import messages_in
from agentctl.errors import Ambiguous, Blocked, GraphFailed, Refused
from agentctl.experiments.calls import NamedCall, name_calls, pending_sends
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.forms import Forms
from agentctl.experiments.functional import returned_rows
from agentctl.experiments.graph_parts import (
    check_names,
    going_to,
    inner_graph,
    is_functional,
    nodes_of,
    routes_by_command,
    tool_node_names,
)
from agentctl.experiments.pairing import new_problems
from agentctl.experiments.point import Point
from agentctl.experiments.reports import inert
from agentctl.experiments.results import Rows, answered_of, pending_rows, recorded_rows, substitutes, task_rows
from agentctl.experiments.running import node_path
from agentctl.experiments.scratch import THREAD, Scratch, scratch_copy
from agentctl.experiments.state_values import (
    answered_in,
    assigned,
    null_writes,
    refuse_without_conversation,
    replacement,
    verify_set,
)
from agentctl.experiments.values_diff import same
from agentctl.records.messages import Message
from agentctl.records.runs import Answered
from agentctl.records.threads import UNKNOWN, Task
from agentctl.sandbox.calls import CallKey
from agentctl.sandbox.replies import Substitute
from agentctl.stores.base import CopyPlan, Reader
from agentctl.stores.copying.selection import for_copy, for_replay, for_resume
from agentctl.stores.reading.layout import END
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from agentctl.experiments.graph_parts import Graph


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
    kept: frozenset[str] = frozenset()
    payload: object = None
    warnings: tuple[str, ...] = ()


@contextmanager
def make_fork(experiment: Experiment, point: Point, forms: Forms) -> Iterator[Made]:
    """Makes a fork and checks it; nothing is written but to a scratch store, which is gone when the block ends.

    Raises:
        UsageError: A form names a node, channel or field that is not there.
        NotFound: A form names a call that is not there.
        Ambiguous: A form names several calls or tasks.
        Refused: The fork would not mean what it says.
    """
    yield from _Maker(experiment, point, forms).make()


class _Maker:
    def __init__(self, experiment: Experiment, point: Point, forms: Forms) -> None:
        self._experiment = experiment
        self._source = experiment.source
        self._point = point
        self._target = point.target
        self._forms = forms
        self._path = node_path(self._target.ns)
        self._graph = inner_graph(experiment.graph, self._path)

    def make(self) -> Iterator[Made]:
        forms, graph = self._forms, self._graph
        if graph is None:
            self._refuse_state_forms()
        else:
            check_names(graph, forms)
            self._refuse_lost_routes(graph)
        if forms.new_input is not None and not forms.assigns and not forms.calls:
            yield self._with_input()
            return
        if forms.calls and graph is not None and is_functional(graph) and not self._point.pairing.pairs:
            yield self._with_returned()
            return
        calls = name_calls(
            self._source, self._point, forms, self._experiment.recording, tool_node_names(self._experiment.graph)
        )
        in_step = tuple(call for call in calls if call.where != "answered")
        in_state = tuple(call for call in calls if call.where == "answered")
        task = self._updated_task()
        if in_step or task is not None:
            yield from self._with_results(in_step, in_state, task)
        elif forms.goto is not None or forms.as_node is not None:
            yield from self._with_update(in_state)
        elif forms.resume and not forms.assigns and not in_state and self._waits():
            yield self._resumed()
        else:
            yield self._with_state(in_state)

    # Results of the target's own step.

    def _with_results(
        self, calls: Sequence[NamedCall], in_state: Sequence[NamedCall], task: Task | None
    ) -> Iterator[Made]:
        if self._forms.goto is not None:
            raise Refused(
                "--goto leaves the target's own step behind, so a result in it would not be used",
                hint="fork the checkpoint after that step, or leave --goto out",
            )
        plan = for_resume(self._source, self._target.thread, self._target.ns, self._target.id, THREAD)
        rows = recorded_rows(self._point, calls)
        waiting = [call for call in calls if call.where == "pending"]
        by_desk = bool(waiting) and self._graph is None
        if task is not None or (waiting and not by_desk):
            kept = _changed(plan, self._target, Rows(dropped=frozenset({task.id}) if task else frozenset()))
            with scratch_copy(self._source, kept, self._experiment.graph) as scratch:
                if task is not None:
                    update = self._update_values(scratch, in_state)
                    rows += replace(task_rows(scratch, self._point, [(task, update)]), dropped=frozenset({task.id}))
                else:
                    rows += pending_rows(scratch, self._point, waiting)
        plan = _changed(plan, self._target, rows)
        wanted: Mapping[str, Any] = {}
        if task is None and (self._forms.assigns or in_state):
            plan, wanted = self._with_null_writes(plan, in_state, None)
        done = {write.task_id for write in rows.extra}
        left = tuple(one.name for one in self._point.tasks if not one.finished and one.id not in done)
        next_, state = self._after_results(plan, left)
        self._check(state, wanted)
        owners = {call.owner.name for call in calls if call.owner} | self._writers(calls)
        as_node = task.name if task else (owners.pop() if len(owners) == 1 else None)
        yield Made(
            reader=self._source,
            plan=plan,
            id=self._target.id,
            next=next_,
            as_node=as_node,
            answered=tuple(answered_of(call) for call in (*calls, *in_state)),
            substituted=substitutes((*calls, *in_state)),
            kept=frozenset() if by_desk else frozenset(call.id for call in calls if call.id),
            warnings=tuple(self._artifact_warnings(calls)),
        )

    def _after_results(self, plan: CopyPlan, left: tuple[str, ...]) -> tuple[tuple[str, ...], StateSnapshot | None]:
        """Returns what runs next on a copy, and its state with all finished tasks' results in it."""
        if self._graph is None or self._target.ns:
            return left or self._recorded_next(), None
        with scratch_copy(self._source, plan, self._experiment.graph) as scratch:
            if left:
                return left, scratch.state()
            settled = scratch.settle()
            return tuple(settled.next), settled

    def _recorded_next(self) -> tuple[str, ...]:
        """Returns what ran next in the source: a changed result leaves the routes of its step as they were."""
        steps = StepReader(self._source, self._target.thread, self._target.ns)
        children = read_tree(self._source, self._target.thread, self._target.ns).children.get(self._target.id, ())
        nexts = [step.next for step in steps.steps(sorted(children)) if step.row.source == "loop"]
        return nexts[0] if nexts else (UNKNOWN,)

    def _writers(self, calls: Sequence[NamedCall]) -> set[str]:
        ids = {call.write.task_id for call in calls if call.substituted and call.write is not None}
        return {task.name for task in self._point.tasks if task.id in ids}

    def _updated_task(self) -> Task | None:
        """Returns the one task of the target's step that `--as-node` gives a result for, if there is one.

        Raises:
            Ambiguous: Several tasks of the step are of that node.
        """
        if self._forms.as_node is None or self._forms.goto is not None:
            return None
        found = [task for task in self._point.tasks if task.name == self._forms.as_node]
        if len(self._point.tasks) < 2 or not found:
            return None
        if len(found) > 1:
            raise Ambiguous(
                f"{len(found)} tasks of {self._forms.as_node} run at {self._target.id}, and an update is of one",
                hint="change what they are given with --set, or a call's result with --answer",
                candidates=[{"task": task.id, "finished": task.finished} for task in found],
            )
        return found[0]

    def _with_returned(self) -> Made:
        """Returns a fork in which @task calls of the functional API returned something else."""
        rows, answered = returned_rows(self._source, self._point, self._forms)
        plan = for_resume(self._source, self._target.thread, self._target.ns, self._target.id, THREAD)
        return Made(
            reader=self._source,
            plan=_changed(plan, self._target, rows),
            id=self._target.id,
            next=self._point.next,
            answered=answered,
        )

    # State at the target.

    def _with_state(self, in_state: Sequence[NamedCall]) -> Made:
        target, forms = self._target, self._forms
        plan = for_replay(self._source, target.thread, target.ns, target.id, THREAD)
        self._refuse_stale_sends()
        wanted: Mapping[str, Any] = {}
        if forms.assigns or in_state:
            plan, wanted = self._with_null_writes(plan, in_state, target.id)
            with scratch_copy(self._source, plan, self._experiment.graph) as scratch:
                self._check(scratch.state(target.ns, target.id), wanted)
        done = [task.name for task in self._point.tasks if task.finished]
        again = done if done and self._point.unfinished else []
        return Made(
            reader=self._source,
            plan=plan,
            id=target.id,
            next=self._point.next,
            answered=tuple(answered_of(call) for call in in_state),
            substituted=substitutes(in_state),
            payload=forms.new_input.value if forms.new_input else None,
            warnings=tuple(f"finished in the source, and run again here: {name}" for name in again),
        )

    def _with_null_writes(
        self, plan: CopyPlan, in_state: Sequence[NamedCall], id: str | None
    ) -> tuple[CopyPlan, Mapping[str, Any]]:
        """Returns the plan with writes that set the state, and the values that the channels are to hold."""
        if self._graph is None:
            refuse_without_conversation(in_state)
        graph, target = self._require_graph(), self._target
        with scratch_copy(self._source, plan, self._experiment.graph) as scratch:
            current = _values(scratch.state(target.ns, target.id))
        wanted = self._wanted(current, in_state)
        edits, extra = null_writes(graph, target.ns, target.id, wanted, current, self._point.writes)
        return replace(plan, edits={**plan.edits, **edits}, extra_writes=(*plan.extra_writes, *extra)), wanted

    def _wanted(self, current: Mapping[str, Any], in_state: Sequence[NamedCall]) -> dict[str, Any]:
        wanted = assigned(current, self._forms.assigns)
        if in_state and self._point.channel is not None:
            channel = self._point.channel
            wanted[channel] = answered_in(wanted.get(channel, current.get(channel, [])), in_state)
        return wanted

    def _refuse_stale_sends(self) -> None:
        """Refuses to set what pending Sends carry already: the nodes would be given the old value.

        Raises:
            Refused: A Send carries it.
        """
        sends = pending_sends(self._source, self._point) if self._forms.assigns else ()
        for assign in self._forms.assigns:
            old = self._point.values.get(assign.channel)
            if any(_carries(send, assign.channel, old) for send in sends):
                raise Refused(
                    f"the Sends that run at {self._target.id} carry {assign.channel} already, with its old value",
                    hint=f"set it where they are made: fork {self._point.row.parent or 'an earlier checkpoint'}",
                )

    # A new checkpoint.

    def _with_update(self, in_state: Sequence[NamedCall]) -> Iterator[Made]:
        target, forms = self._target, self._forms
        graph = self._require_graph()
        if target.ns and forms.goto is not None:
            raise Refused(
                "--goto works on the root graph",
                hint="fork the enclosing checkpoint, or use --as-node in the namespace",
            )
        plan = for_replay(self._source, target.thread, target.ns, target.id, THREAD)
        with scratch_copy(self._source, plan, self._experiment.graph) as scratch:
            current = _values(scratch.state(target.ns, target.id))
            wanted = self._wanted(current, in_state)
            made = self._update(scratch, graph, wanted, current)
            state = scratch.state(target.ns, made)
            next_ = () if forms.goto == END else tuple(state.next)
            if forms.goto not in (None, END) and next_ != (forms.goto,):
                raise Refused(
                    f"{forms.as_node or target.id} does not lead to {forms.goto} alone: next would be "
                    f"{', '.join(next_) or 'empty'}",
                    hint="leave --as-node out" if forms.as_node else "choose another checkpoint",
                )
            self._check(state, wanted)
            yield Made(
                reader=scratch.writer,
                plan=for_copy(scratch.writer, THREAD, target.ns, made, "all", THREAD),
                id=made,
                next=next_,
                as_node=forms.as_node,
                answered=tuple(answered_of(call) for call in in_state),
                substituted=substitutes(in_state),
                warnings=tuple(self._left_behind()),
            )

    def _update(self, scratch: Scratch, graph: Graph, wanted: Mapping[str, Any], current: Mapping[str, Any]) -> str:
        """Makes the update and returns its checkpoint."""
        from langgraph.types import Command, StateUpdate

        forms, target = self._forms, self._target
        values = {name: replacement(graph, name, value, current) for name, value in wanted.items()}
        if forms.as_node is None:
            routed = replace(scratch, graph=going_to(graph, values, forms.goto))
            return routed.update([StateUpdate(None, "__start__")], target.ns, target.id)
        values = {**(forms.update or {}), **values}
        update: Any = values if forms.goto is None else Command(update=values, goto=forms.goto)
        return scratch.update([StateUpdate(update, forms.as_node)], target.ns, target.id)

    def _update_values(self, scratch: Scratch, in_state: Sequence[NamedCall]) -> dict[str, Any]:
        """Returns the node result that `--update` and `--set` give."""
        current = _values(scratch.state(self._target.ns, self._target.id))
        wanted = self._wanted(current, in_state)
        graph = self._require_graph()
        replaced = {name: replacement(graph, name, value, current) for name, value in wanted.items()}
        return {**(self._forms.update or {}), **replaced}

    def _left_behind(self) -> Iterator[str]:
        """Yields what to know about finished tasks whose results a new checkpoint does not have."""
        done = [task.name for task in self._point.tasks if task.finished and task.name != self._forms.as_node]
        if done and self._forms.as_node is not None:
            yield f"recorded results at {self._target.id} are not in this branch: {', '.join(done)}"

    def _refuse_lost_routes(self, graph: Graph) -> None:
        """Refuses an update as a node that decides where to go, which a plain update does not say.

        Raises:
            Refused: The node routes by Command and no `--goto` is given.
        """
        node = self._forms.as_node
        if node is not None and self._forms.goto is None and routes_by_command(graph, node):
            ends = graph.builder.nodes[node].ends  # type: ignore[attr-defined]
            raise Refused(
                f"{node} says itself where to go, by Command, so an update as {node} leads nowhere",
                hint=f"say where: --goto {' | '.join(ends)}",
            )

    # Without changes of rows.

    def _resumed(self) -> Made:
        target = self._target
        plan = for_resume(self._source, target.thread, target.ns, target.id, THREAD)
        left = tuple(task.name for task in self._point.unfinished)
        return Made(reader=self._source, plan=plan, id=target.id, next=left)

    def _with_input(self) -> Made:
        """Returns a fork with new input: from the target, or in place of the input that the target holds."""
        assert self._forms.new_input is not None
        target, payload = self._target, self._forms.new_input.value
        if target.ns:
            raise Refused("a namespace is given its input by the graph around it", hint="fork the root checkpoint")
        warnings = []
        if self._waits():
            warnings.append(f"the question that waits at {target.id} is discarded")
        start: str | None = target.id
        if self._point.row.source == "input":
            start = self._point.row.parent
        if start is None:
            return Made(reader=self._source, plan=None, id=None, next=(), payload=payload)
        plan = for_replay(self._source, target.thread, "", start, THREAD)
        return Made(reader=self._source, plan=plan, id=start, next=(), payload=payload, warnings=tuple(warnings))

    def _waits(self) -> bool:
        return any(task.interrupts and not task.finished for task in self._point.tasks)

    # Checks.

    def _check(self, state: StateSnapshot | None, wanted: Mapping[str, Any]) -> None:
        """Checks the state of a fork: it holds what was set, and no call of the conversation lost its answer.

        Raises:
            Refused: It does not.
        """
        if state is None:
            return
        values = _values(state)
        verify_set(wanted, values)
        channel = self._point.channel
        if channel is None or channel not in values:
            return
        broken = new_problems(self._point.messages, _inert_messages(values[channel]))
        if broken and (self._forms.calls or channel in wanted or self._forms.update):
            raise Refused(
                f"the conversation would be broken: {'; '.join(broken)}",
                hint="give every call of a message its result, once: --answer CALL=JSON",
            )

    def _refuse_state_forms(self) -> None:
        """Refuses forms that need the graph of a namespace which the root graph does not declare.

        Raises:
            Refused: One is given.
        """
        forms = self._forms
        if forms.assigns or forms.update is not None or forms.as_node or forms.goto or forms.new_input:
            raise Refused(
                f"the graph of {self._target.ns} is run by a tool or a node and cannot be found from outside, so only "
                "results of calls can be changed in it",
                hint="use --answer or --patch, or fork the checkpoint around it",
            )

    def _require_graph(self) -> Graph:
        if self._graph is None:
            raise Refused(f"the graph of {self._target.ns} cannot be found", hint="fork the checkpoint around it")
        return self._graph

    def _artifact_warnings(self, calls: Sequence[NamedCall]) -> Iterator[str]:
        for call in calls:
            raw = self._point.messages[call.pair.answers[-1]].raw if call.pair.answers else None
            if raw is not None and raw.get("artifact") is not None:
                yield f"the artifact of {call.name}'s result is as it was"


def _changed(plan: CopyPlan, target: Target, rows: Rows) -> CopyPlan:
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


def _values(state: StateSnapshot) -> Mapping[str, Any]:
    return state.values if isinstance(state.values, Mapping) else {}


def _inert_messages(value: Any) -> tuple[Message, ...]:
    return messages_in(inert(value))


def _carries(send: object, channel: str, old: object) -> bool:
    """Returns whether a Send's argument is or has the value of a channel, or is an item of it."""
    arg = send.get("arg", send) if isinstance(send, Mapping) else send
    if isinstance(arg, Mapping) and channel in arg:
        return True
    if same(arg, old):
        return True
    return isinstance(old, list) and any(same(arg, item) for item in old)


def as_nodes_with_next(
    experiment: Experiment, target: Target, values: Mapping[str, Any]
) -> Mapping[str, Sequence[str]]:
    """Returns, for each node as which the target could be updated to go on, what would run next."""
    from langgraph.types import StateUpdate

    graph = experiment.graph
    if target.ns or is_functional(graph):
        return {}
    plan = for_replay(experiment.source, target.thread, "", target.id, THREAD)
    found: dict[str, Sequence[str]] = {}
    with scratch_copy(experiment.source, plan, graph) as scratch:
        for node in nodes_of(graph):
            try:
                made = scratch.update([StateUpdate(dict(values), node)], "", target.id)
            except (Refused, GraphFailed, Blocked):
                continue
            if then := tuple(scratch.state("", made).next):
                found[node] = then
    return found
