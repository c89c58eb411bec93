"""Rows without a task path (files older than that column, LangGraph.js): which task they belong to."""

from __future__ import annotations

from typing import Final

from agentctl.records.rows import CheckpointRow
from agentctl.stores.reading import layout
from agentctl.stores.reading.batch import Batch, next_step
from agentctl.stores.reading.naming import Names
from agentctl.stores.reading.taskrows import CheckpointWrites, TaskRows, checkpoint_writes, task_rows

_MAX_UPDATES: Final = 32
"""How many updates of one super-step are recognised."""


def blank(batch: Batch) -> list[str]:
    """Returns the checkpoints on which tasks of an unknown kind are stored."""
    return [i for i, writes in batch.writes.items() if any(task.path.kind == "unknown" for task in writes.step)]


def identify(batch: Batch, names: Names) -> None:
    """Finds kind and node of such tasks, in place, by trying known names until LangGraph's id function fits."""
    for checkpoint_id in blank(batch):
        row = batch.rows.get(checkpoint_id)
        if row is not None:
            batch.writes[checkpoint_id] = _identified(row, batch.writes[checkpoint_id], names)


def _identified(row: CheckpointRow, writes: CheckpointWrites, names: Names) -> CheckpointWrites:
    tasks: list[TaskRows] = []
    calls: list[TaskRows] = list(writes.calls)
    updates: list[TaskRows] = list(writes.updates)
    input_id = layout.derived_id(row.id, layout.INPUT)
    update_ids = _update_ids(row.id)
    for task in writes.step:
        if task.path.kind != "unknown":
            tasks.append(task)
        elif task.id in update_ids:
            updates.append(task)
        elif task.id == input_id:
            continue
        elif (path := names.identify(row.id, next_step(row), task.id)) is not None:
            tasks.append(task_rows(task.id, _path_text(path), task.writes))
        elif any(write.channel == layout.RETURN for write in task.writes):
            calls.append(task)
        else:
            tasks.append(task)
    tasks.sort(key=lambda task: (task.path.kind != "send", task.path.index or 0, task.path.node or ""))
    return checkpoint_writes(tasks, writes.handlers, updates, calls, writes.null)


def _update_ids(checkpoint_id: str) -> frozenset[str]:
    """Returns the ids of updates written as a node that was not due.

    Source: langgraph 1.2.24, pregel/main.py (`_update_task_id`).
    """
    names = (layout.INTERRUPT, *(f"{layout.INTERRUPT}:{i}" for i in range(1, _MAX_UPDATES)))
    return frozenset(layout.derived_id(checkpoint_id, name) for name in names)


def _path_text(path: layout.TaskPath) -> str:
    return layout.send_path(path.index or 0) if path.kind == "send" else layout.pull_path(path.node or "")
