"""Forks that change a result of the target's own step: a resume copy whose stored writes are edited or completed.

Nothing of the step runs again, but for tasks whose own code asked for a changed result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentctl.errors import Ambiguous, Refused
from agentctl.experiments.forking.functional import returned_rows
from agentctl.experiments.forking.made import (
    Given,
    Made,
    artifact_warnings,
    check_conversation,
    message_warnings,
    values_of,
    with_rows,
)
from agentctl.experiments.forking.making_reruns import answered_by, step_answers, tasks_again
from agentctl.experiments.forking.making_state import wanted_values, with_null_writes
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.point import Point
from agentctl.experiments.forking.results import Rows, pending_rows, recorded_rows, substitutes, task_rows
from agentctl.experiments.forking.scratch import Scratch, scratch_copy
from agentctl.experiments.forking.state_values import replacement
from agentctl.records.copies import command
from agentctl.records.threads import UNKNOWN, Task
from agentctl.revisions.shortids import match_id
from agentctl.stores.base import CopyPlan
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot


def from_results(given: Given, calls: Sequence[NamedCall], in_state: Sequence[NamedCall], task: Task | None) -> Made:
    """Returns a fork with changed results.

    Args:
        given: What it is made from.
        calls: Calls of the target's step, kept siblings included.
        in_state: Calls whose results are in the target's state already.
        task: The task that `--update` or `--set` gives a result for, or None.

    Raises:
        Refused: `--goto` was asked too, or the conversation would be broken.
    """
    if given.forms.goto is not None:
        raise Refused(
            "--goto leaves the target's own step behind, so a result in it would not be used",
            hint="fork the checkpoint after that step, or leave --goto out",
        )
    by_desk = given.graph is None and any(call.where == "pending" for call in calls)
    again = tasks_again(given, calls, task)
    rows = recorded_rows(given.point, calls)
    if task is not None:
        rows += _updated(given, in_state, task)
    elif not by_desk:
        rows += _completed(given, calls)
    plan = with_rows(given.rerun_plan(again), given.target, rows)
    if task is None and (given.forms.assigns or in_state):
        plan = with_null_writes(given, plan, in_state)
    done = {write.task_id for write in rows.extra}
    left = given.going_on(one for one in given.point.tasks if one in again or not (one.finished or one.id in done))
    next_, state = _after(given, plan, left)
    if state is not None:
        check_conversation(given, values_of(state))
    everything = (*calls, *in_state)
    return Made(
        reader=given.source,
        plan=plan,
        id=given.target.id,
        next=next_,
        as_node=task.name if task else _owner(given, calls),
        answered=tuple(answered_by(everything, again)),
        substituted=substitutes(everything),
        in_step=step_answers(given, calls, again),
        asks=tuple(call.name for call in calls if call.substituted and (call.by_the_run or by_desk)),
        kept=frozenset() if by_desk else frozenset(_in_rows(calls, again)),
        warnings=(*artifact_warnings(everything), *message_warnings(given), *_unforeseen(given, calls, again)),
    )


def _in_rows(calls: Sequence[NamedCall], again: Sequence[Task]) -> Iterator[str]:
    """Yields the ids of the calls whose answers are in the copied rows."""
    running = {one.id for one in again}
    for call in calls:
        is_asked = call.where in ("asked", "unstored") or (call.owner is not None and call.owner.id in running)
        if call.id and not is_asked:
            yield call.id


def _unforeseen(given: Given, calls: Sequence[NamedCall], again: Sequence[Task]) -> Iterator[str]:
    """Yields the tasks that run again although it is not known that they make the call."""
    if any(call.where == "unstored" for call in calls) and len(again) > 1:
        for one in again:
            yield f"finished in the source, and run again here: {one.name}"


def from_returned(given: Given) -> Made:
    """Returns a fork in which @task calls of the functional API returned something else."""
    rows, answered = returned_rows(given.source, given.point, given.forms)
    return Made(
        reader=given.source,
        plan=with_rows(given.resume_plan(), given.target, rows),
        id=given.target.id,
        next=given.point.next,
        answered=answered,
    )


def task_by_id(point: Point, text: str | None) -> Task | None:
    """Returns the task of the target's step that a text names by its id, or by the end of it; None where none is."""
    found = [] if text is None else match_id(text, [task.id for task in point.tasks if task.id])
    return next((task for task in point.tasks if [task.id] == list(found)), None)


def updated_task(given: Given) -> Task | None:
    """Returns the one task of a parallel step that `--as-node` gives a result for, None where there is no such task.

    Raises:
        Ambiguous: Several tasks of the step are of that node.
    """
    if given.forms.as_node is None or given.forms.goto is not None or len(given.point.tasks) < 2:
        return None
    if given.as_task is not None:
        return given.as_task
    found = [task for task in given.point.tasks if task.name == given.forms.as_node]
    if len(found) > 1:
        raise Ambiguous(
            f"{len(found)} tasks of {given.forms.as_node} run at {given.target.id}, and an update is of one",
            hint=f"name one by its id: --as-node {found[0].id}",
            candidates=[{"task": task.id, "finished": task.finished} for task in found],
        )
    return found[0] if found else None


def _completed(given: Given, calls: Sequence[NamedCall]) -> Rows:
    """Returns the writes that answer pending calls, in place of the error or the question that their tasks left."""
    owners = frozenset(call.owner.id for call in calls if call.where == "pending" and call.owner is not None)
    if not owners:
        return Rows()
    plan = with_rows(given.resume_plan(), given.target, Rows(dropped=owners))
    with scratch_copy(given.source, plan, given.experiment.graph) as scratch:
        return replace(pending_rows(scratch, given.point, calls), dropped=owners)


def _updated(given: Given, in_state: Sequence[NamedCall], task: Task) -> Rows:
    """Returns the writes of a task with the given result, in place of those that it has."""
    dropped = frozenset({task.id})
    plan = with_rows(given.resume_plan(), given.target, Rows(dropped=dropped))
    with scratch_copy(given.source, plan, given.experiment.graph) as scratch:
        result = _result(given, scratch, in_state)
        return replace(task_rows(scratch, given.point, [(task, result)]), dropped=dropped)


def _result(given: Given, scratch: Scratch, in_state: Sequence[NamedCall]) -> Mapping[str, Any]:
    """Returns the node result that `--update` and `--set` give."""
    current = values_of(scratch.state(given.target.ns, given.target.id))
    wanted = wanted_values(given, current, in_state)
    replaced = {name: replacement(given.known_graph(), name, value, current) for name, value in wanted.items()}
    return {**(given.forms.update or {}), **replaced}


def _after(given: Given, plan: CopyPlan, left: tuple[str, ...]) -> tuple[tuple[str, ...], StateSnapshot | None]:
    """Returns what runs next on a copy, and its state with all finished tasks' results in it where that is known."""
    if given.target.ns:
        return left or _recorded_next(given), None
    with scratch_copy(given.source, plan, given.experiment.graph) as scratch:
        state = scratch.state()
        _require_finished(given, state, left)
        if left:
            return left, state
        settled = scratch.settle()
        return tuple(settled.next), settled


def _require_finished(given: Given, state: StateSnapshot, left: tuple[str, ...]) -> None:
    """Refuses stored writes that LangGraph takes for those of no task: it would run their nodes again beside them.

    Writes belong to a task by an id that is made of the checkpoint, the node and what made it run. LangGraph.js makes
    other ids than Python, and a node that another channel leads to now has another one.
    """
    again = Counter(state.next) - Counter(name.partition("|")[0] for name in left)
    if again:
        target = given.target
        raise Refused(
            f"the writes stored on checkpoint {target.id} are not those of {', '.join(sorted(again))} to this graph:"
            " their task ids are of LangGraph.js or of another version of it, so it would run again beside a changed"
            " result",
            hint="let it run again and give the tool's result to it: "
            + command("fork", target.place.target, "--stub", "TOOL=JSON"),
        )


def _recorded_next(given: Given) -> tuple[str, ...]:
    """Returns what ran next in the source: a changed result leaves the routes of its step as they were."""
    target = given.target
    children = read_tree(given.source, target.thread, target.ns).children.get(target.id, ())
    steps = StepReader(given.source, target.thread, target.ns).steps(sorted(children))
    return next((step.next for step in steps if step.row.source == "loop"), (UNKNOWN,))


def _owner(given: Given, calls: Sequence[NamedCall]) -> str | None:
    """Returns the node whose tasks own the calls, None where several do."""
    written_by = {call.write.task_id for call in calls if call.substituted and call.write is not None}
    names = {task.name for task in given.point.tasks if task.id in written_by}
    names |= {call.owner.name for call in calls if call.owner and (call.substituted or call.where == "pending")}
    return names.pop() if len(names) == 1 else None
