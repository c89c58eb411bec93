"""What a thread is doing, from the tasks of its head."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.records.threads import Task, ThreadStatus


def status_of(tasks: Sequence[Task]) -> ThreadStatus:
    """Returns a thread's status from its head's tasks.

    `error` where an unfinished one raised and nothing handled it, `interrupted` where one asks, `pending` where others
    wait (stopped before a node, or killed: rows do not tell which), else `done`.
    """
    open_tasks = [task for task in tasks if not task.settled]
    if any(task.error is not None for task in open_tasks):
        return "error"
    if any(task.interrupts for task in open_tasks):
        return "interrupted"
    return "pending" if tasks else "done"


def first_error(tasks: Sequence[Task]) -> str | None:
    """Returns the first stored error of a step that nothing handled, also where a later attempt succeeded.

    Where every error was handled, the first of them.
    """
    errors = sorted((task.handled_by is not None, place) for place, task in enumerate(tasks) if task.error is not None)
    return tasks[errors[0][1]].error if errors else None
