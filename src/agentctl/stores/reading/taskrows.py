"""Stored writes grouped by the task that made them.

Source: langgraph 1.2.24, pregel/_task_status.py: a task has finished if and only if it has an output write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from agentctl.records.rows import NULL_TASK, WriteRow
from agentctl.stores.reading.layout import (
    BRANCH,
    CONTROL,
    INTERRUPT,
    TASKS,
    TaskPath,
    is_route,
    is_state_channel,
    parse_task_path,
)

_UPDATE_PATH = f"~{INTERRUPT}, "
_by_idx = attrgetter("idx")


class Outline(NamedTuple):
    """What a task's rows tell but for ids and values: the same for most steps of a thread, so worked out once.

    Attributes:
        path: What its stored path says.
        has_control: Whether there are writes that are no output.
        state: State channels it wrote to, sorted.
        asked: Nodes that its writes make run by an edge.
        n_sends: How many Sends it wrote.
    """

    path: TaskPath
    has_control: bool
    state: tuple[str, ...]
    asked: frozenset[str]
    n_sends: int


@lru_cache(maxsize=1024)
def _outline(raw_path: str, channels: tuple[str, ...]) -> Outline:
    output = [channel for channel in channels if channel not in CONTROL]
    return Outline(
        path=parse_task_path(raw_path),
        has_control=len(output) < len(channels),
        state=tuple(sorted({channel for channel in output if is_state_channel(channel)})),
        asked=frozenset(channel[len(BRANCH) :] for channel in output if channel.startswith(BRANCH)),
        n_sends=output.count(TASKS),
    )


class TaskRows(NamedTuple):
    """All writes of one task on one checkpoint, in the order of their idx (control writes come first).

    Attributes:
        id: Task id.
        path: What its stored path says.
        raw_path: That path as stored, '' where it is blank.
        writes: All its rows.
        output: Those that are output: state, routes, return values, the marker for "wrote nothing".
        outline: What they tell but for ids and values.
    """

    id: str
    path: TaskPath
    raw_path: str
    writes: tuple[WriteRow, ...]
    output: tuple[WriteRow, ...]
    outline: Outline

    @property
    def finished(self) -> bool:
        """Whether the task ran to its end. One that failed after writing something counts as finished too."""
        return bool(self.output)


def task_rows(task_id: str, raw_path: str, writes: Iterable[WriteRow]) -> TaskRows:
    """Returns a task's rows with its output sorted out.

    Args:
        task_id: Task id.
        raw_path: Its path as stored.
        writes: Its rows in the order of their idx.
    """
    ordered = tuple(writes)
    outline = _outline(raw_path, tuple([write.channel for write in ordered]))
    output = tuple([w for w in ordered if w.channel not in CONTROL]) if outline.has_control else ordered
    return TaskRows(task_id, outline.path, raw_path, ordered, output, outline)


class CheckpointWrites(NamedTuple):
    """The writes stored on one checkpoint, by task.

    Attributes:
        step: Tasks of the step itself: nodes run by a Send, by an edge, or with an unknown path.
        handlers: Error handlers that ran in the step.
        updates: Rows of `update_state` calls on this checkpoint, by position. An update written as a node that was due
            has that task's id, so the task may be in `step` too.
        calls: @task calls made by the step's tasks.
        null: Writes of no task: answers to questions, `Command` updates and gotos.
        finished: Finished tasks and handlers of the step.
    """

    step: tuple[TaskRows, ...] = ()
    handlers: tuple[TaskRows, ...] = ()
    updates: tuple[TaskRows, ...] = ()
    calls: tuple[TaskRows, ...] = ()
    null: TaskRows | None = None
    finished: tuple[TaskRows, ...] = ()

    @property
    def rerouted(self) -> bool:
        """Whether a `Command(goto)` was given here: the tasks that ran are then not those that were due."""
        return self.null is not None and any(is_route(write.channel) for write in self.null.writes)


def checkpoint_writes(
    step: Iterable[TaskRows],
    handlers: Iterable[TaskRows] = (),
    updates: Iterable[TaskRows] = (),
    calls: Iterable[TaskRows] = (),
    null: TaskRows | None = None,
) -> CheckpointWrites:
    """Returns a checkpoint's writes with the finished tasks picked out."""
    tasks, handled = tuple(step), tuple(handlers)
    finished = tuple(task for task in (*tasks, *handled) if task.output)
    return CheckpointWrites(tasks, handled, tuple(updates), tuple(calls), null, finished)


NO_WRITES_STORED = CheckpointWrites()


def group_writes(writes: Iterable[WriteRow]) -> Mapping[str, CheckpointWrites]:
    """Returns the writes of each checkpoint that has any, by checkpoint id."""
    grouped: dict[str, list[WriteRow]] = {}
    for write in writes:
        grouped.setdefault(write.checkpoint_id, []).append(write)
    return {checkpoint_id: _sorted_out(stored) for checkpoint_id, stored in grouped.items()}


def _sorted_out(writes: Sequence[WriteRow]) -> CheckpointWrites:
    first = writes[0]
    task_id, path = first.task_id, first.task_path
    if task_id != NULL_TASK and not [w for w in writes if w.task_id != task_id or w.task_path != path]:
        task = task_rows(task_id, path or "", sorted(writes, key=_by_idx))
        if task.path.kind == "pull":
            return CheckpointWrites(step=(task,), finished=(task,) if task.output else ())
    by_task: dict[str, list[WriteRow]] = {}
    for write in writes:
        by_task.setdefault(write.task_id, []).append(write)
    return _by_kind(by_task)


def _by_kind(tasks: Mapping[str, Sequence[WriteRow]]) -> CheckpointWrites:
    kinds: dict[str, list[TaskRows]] = {}
    null: TaskRows | None = None
    for task_id, writes in tasks.items():
        ordered = sorted(writes, key=_by_idx)
        if task_id == NULL_TASK:
            null = task_rows(task_id, ordered[0].task_path or "", ordered)
            continue
        by_update = [write for write in ordered if (write.task_path or "").startswith(_UPDATE_PATH)]
        if by_update:
            kinds.setdefault("update", []).append(task_rows(task_id, by_update[0].task_path or "", by_update))
        if len(by_update) < len(ordered):
            own_path = next((w.task_path for w in ordered if w.task_path and w not in by_update), "")
            task = task_rows(task_id, own_path, ordered)
            kinds.setdefault(task.path.kind, []).append(task)
    return checkpoint_writes(
        step=(
            *sorted(kinds.get("send", ()), key=_by_index),
            *sorted(kinds.get("pull", ()), key=_by_node),
            *kinds.get("unknown", ()),
        ),
        handlers=kinds.get("handler", ()),
        updates=sorted(kinds.get("update", ()), key=_by_index),
        calls=kinds.get("call", ()),
        null=null,
    )


def _by_index(task: TaskRows) -> int:
    return task.path.index or 0


def _by_node(task: TaskRows) -> str:
    return task.path.node or ""
