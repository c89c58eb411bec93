"""Results that code of a node asked for: which tasks of the target's step run again, and what they are answered.

A node works with what a tool gave it, so changing a stored message would change nothing it made of it. Its task runs
again from the target, every other finished task of the step stays finished, and the gate answers its calls: those that
the fork changes with their new result, all others from the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentctl.errors import Refused, UsageError
from agentctl.experiments.forking.forms import Answer
from agentctl.experiments.forking.made import Given
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.pairing import describe
from agentctl.experiments.forking.results import answered_of
from agentctl.records.runs import Answered
from agentctl.records.threads import Task
from agentctl.sandbox.replies import StepAnswer, Substitute
from agentctl.stores.reading.layout import parse_task_path


def tasks_again(given: Given, calls: Sequence[NamedCall], updated: Task | None) -> tuple[Task, ...]:
    """Returns the finished tasks that run again because a call of theirs is changed.

    That is the task that made the call. Where no row tells which task did, it is every task of the step, unless some
    have not finished: then these ask.

    Args:
        given: What the fork is made from.
        calls: Its calls.
        updated: The task that `--update` or `--set` gives a result for, or None.

    Raises:
        Refused: It cannot be told which node made a call, or it was an error handler.
        UsageError: The task is given a result too.
    """
    changed = [call for call in calls if call.substituted and call.by_the_run]
    again = {task.id: task for call in changed if call.where == "made" for task in (_maker(given, call),)}
    if any(call.where == "unstored" for call in changed) and not given.point.unfinished:
        again.update((task.id, task) for task in given.point.tasks)
    if updated is not None and (updated.id in again or any(call.where != "made" for call in changed)):
        names = ", ".join(call.name for call in changed)
        raise UsageError(
            f"--as-node {updated.name} stands for the node's own run, which would have to ask for {names}",
            hint="give the node's result, or the tool's",
        )
    return tuple(task for task in given.point.tasks if task.id in again)


def step_answers(given: Given, calls: Sequence[NamedCall], again: Sequence[Task]) -> tuple[StepAnswer, ...]:
    """Returns what the tasks that run are answered, for the calls that the fork changes.

    A call that a task made is known by its id, so it is answered even where its arguments come out differently; one
    that no row holds is every call of that tool which the step makes.
    """
    running = frozenset(task.id for task in (*again, *given.point.unfinished))
    found = []
    for call in calls:
        if call.substituted and call.where == "made" and call.owner is not None and call.id:
            answer = Substitute(call.content, call.status)
            found.append(StepAnswer(call.name, frozenset({call.owner.id}), answer, call.id))
        elif call.substituted and call.where == "unstored":
            (form,) = (form for form in call.forms if isinstance(form, Answer))
            found.append(StepAnswer(call.name, running, Substitute(call.content, call.status, value=form.content)))
    return tuple(found)


def answered_by(calls: Sequence[NamedCall], again: Sequence[Task]) -> Iterator[Answered]:
    """Yields what is said of each call: changed, kept with its task, or asked again and answered as recorded."""
    running = {task.id for task in again}
    for call in calls:
        if call.where == "made" and not call.substituted and call.owner is not None and call.owner.id in running:
            yield Answered(call.name, call.id, "recorded")
        else:
            yield answered_of(call)


def _maker(given: Given, call: NamedCall) -> Task:
    task = call.owner
    kind = parse_task_path(task.path).kind if task is not None else "unknown"
    if task is None or kind == "handler":
        by = "an error handler" if kind == "handler" else "a task whose node rows do not tell"
        raise Refused(
            f"{describe(call.pair.call)} was made by {by} at {given.target.id}, which cannot be run again by itself",
            hint=f"run the whole step again with the answer as a stub: replay --tools sandbox --stub {call.name}=JSON",
        )
    return task
