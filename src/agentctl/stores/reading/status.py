"""What a thread is doing, from the tasks of its head."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.records.threads import Task, ThreadStatus


def status_of(tasks: Sequence[Task]) -> ThreadStatus:
    """Returns a thread's status from its head's tasks.

    `error` where an unfinished one raised, `interrupted` where one asks, `pending` where others wait (stopped before a
    node, or killed: rows do not tell which), else `done`.
    """
    open_tasks = [task for task in tasks if not task.finished]
    if any(task.error is not None for task in open_tasks):
        return "error"
    if any(task.interrupts for task in open_tasks):
        return "interrupted"
    return "pending" if tasks else "done"


def first_error(tasks: Sequence[Task]) -> str | None:
    """Returns the first stored error of a step, also where a later attempt succeeded."""
    return next((task.error for task in tasks if task.error is not None), None)
