"""Steps as a store states them: tasks and what runs next are shown as stated, and only who wrote is worked out.

Not stated, and so `?`: the node that an update was written as. Where a server cannot find the graph of a namespace,
such as a subgraph that a node called through its own code, it states no tasks at all; these are `?` too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from xxhash import xxh3_128_digest

from agentctl.records.rows import CheckpointRow, WriteRow
from agentctl.records.threads import UNKNOWN, Task
from agentctl.stores.reading import layout
from agentctl.stores.reading.lineage import Tree
from agentctl.stores.reading.steps import AS_NODE, Step
from agentctl.stores.reading.taskrows import (
    NO_WRITES_STORED,
    CheckpointWrites,
    TaskRows,
    checkpoint_writes,
    task_rows,
)
from agentctl.stores.reading.taskview import make_task
from agentctl.stores.stated import StatedTask, StatesTasks

_CONTROL = (layout.ERROR, layout.INTERRUPT)
_UNKNOWN_TASK = Task(id="", name=UNKNOWN, path="", finished=False)


@dataclass(frozen=True, slots=True)
class StatedSteps:
    """Reads steps of one namespace of a store that states them.

    Attributes:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        value_bytes: Task results up to this size are read; None reads all. Errors and questions always are.
        results: Whether tasks carry their results.
    """

    reader: StatesTasks
    thread: str
    ns: str
    value_bytes: int | None
    results: bool

    def tasks(self, ids: Sequence[str]) -> Mapping[str, tuple[Task, ...]]:
        """Returns the tasks of each checkpoint that there is."""
        read = self._read(ids)
        return {i: read.tasks(i, results=self.results) for i in ids if i in read.stated}

    def steps(self, ids: Sequence[str], tree: Tree) -> list[Step]:
        """Returns the step of each checkpoint, in order.

        Args:
            ids: Checkpoints of the tree.
            tree: The namespace's tree.
        """
        parents = {parent for i in ids if (parent := tree.parents.get(i)) in tree.parents and parent is not None}
        children = {child for i in (*ids, *parents) for child in tree.children.get(i, ())}
        rows = {row.id: row for row in self.reader.rows(self.thread, self.ns, ids={*ids, *parents, *children})}
        read = self._read({*ids, *parents})
        updated = self._updated([rows[i] for i in ids if i in rows and rows[i].source == "update"])
        return [self._step(rows[i], rows, read, tree, updated) for i in ids if i in rows]

    def _step(
        self,
        row: CheckpointRow,
        rows: Mapping[str, CheckpointRow],
        read: _Read,
        tree: Tree,
        updated: Mapping[str, tuple[str, ...]],
    ) -> Step:
        parent = rows.get(row.parent or "")
        went_on = any(_follows(rows[child], row) for child in tree.children.get(row.id, ()) if child in rows)
        made_by = read.writes_on(parent.id) if parent is not None and _follows(row, parent) else NO_WRITES_STORED
        wrote, as_node = self._wrote(row, parent, read)
        return Step(
            row=row,
            parent=parent,
            tasks=read.tasks(row.id, results=self.results, went_on=went_on),
            wrote=wrote,
            as_node=as_node,
            channels=updated.get(row.id) or _written(made_by),
            made_by=made_by.finished,
            writes=read.writes_on(row.id),
        )

    def _wrote(
        self, row: CheckpointRow, parent: CheckpointRow | None, read: _Read
    ) -> tuple[tuple[str, ...], str | None]:
        if row.source == "update":
            ours = row.metadata.get(AS_NODE)
            return ((ours,), ours) if isinstance(ours, str) and ours else ((UNKNOWN,), None)
        if row.source != "loop":
            return (), None
        if parent is None or not _follows(row, parent):
            return (UNKNOWN,), None
        made = [task.name for task in read.tasks(parent.id, results=False, went_on=True) if task.finished]
        return tuple(made) or (UNKNOWN,), None

    def _updated(self, rows: Sequence[CheckpointRow]) -> Mapping[str, tuple[str, ...]]:
        """Returns which channels each update changed: what it wrote is not stated, so values are compared."""
        ids = sorted({id for row in rows for id in (row.id, row.parent) if id is not None}, reverse=True)
        digests: dict[str, dict[str, bytes]] = {}
        for stored in self.reader.stored(self.thread, self.ns, ids):
            digests[stored.row.id] = {name: xxh3_128_digest(value.data) for name, value in stored.values.items()}
        return {row.id: _differing(digests.get(row.id, {}), digests.get(row.parent or "", {})) for row in rows}

    def _read(self, ids: Collection[str]) -> _Read:
        stated = self.reader.stated(self.thread, self.ns, ids)
        writes = self.reader.writes(self.thread, self.ns, ids, value_bytes=self.value_bytes)
        lacking = {w.checkpoint_id for w in writes if w.value is None and w.channel in _CONTROL}
        if lacking:
            control = self.reader.writes(self.thread, self.ns, lacking, channels=_CONTROL)
            writes = [*(w for w in writes if w.checkpoint_id not in lacking or w.channel not in _CONTROL), *control]
        by_task: dict[tuple[str, str], list[WriteRow]] = {}
        for write in writes:
            by_task.setdefault((write.checkpoint_id, write.task_id), []).append(write)
        return _Read(self.ns, stated, by_task)


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of some checkpoints: their tasks, and the writes of each."""

    ns: str
    stated: Mapping[str, tuple[StatedTask, ...]]
    writes: Mapping[tuple[str, str], Sequence[WriteRow]]

    def rows(self, checkpoint_id: str, task: StatedTask) -> TaskRows | None:
        found = self.writes.get((checkpoint_id, task.id))
        return task_rows(task.id, task.path, sorted(found, key=lambda write: write.idx)) if found else None

    def writes_on(self, checkpoint_id: str) -> CheckpointWrites:
        found = [self.rows(checkpoint_id, task) for task in self.stated.get(checkpoint_id, ())]
        return checkpoint_writes([rows for rows in found if rows is not None])

    def tasks(self, checkpoint_id: str, *, results: bool, went_on: bool = False) -> tuple[Task, ...]:
        """Returns the tasks of a checkpoint, `?` where its step ran and none is stated.

        Args:
            checkpoint_id: Which.
            results: Whether tasks carry their results.
            went_on: Whether a later checkpoint came of them, so that those without an error have ended.
        """
        tasks = self.stated.get(checkpoint_id, ())
        if not tasks:
            return (_UNKNOWN_TASK,) if went_on else ()
        return tuple(self._task(checkpoint_id, task, results=results, went_on=went_on) for task in tasks)

    def _task(self, checkpoint_id: str, stated: StatedTask, *, results: bool, went_on: bool) -> Task:
        rows = self.rows(checkpoint_id, stated)
        task = make_task(stated.name, self.ns, stated.id, stated.path, rows, ("",), results=results)
        finished = stated.finished or (went_on and task.error is None)
        has_begun = finished or task.error is not None or bool(task.interrupts)
        return task._replace(finished=finished, ns=stated.ns if has_begun else None)


def _follows(row: CheckpointRow, parent: CheckpointRow) -> bool:
    """Says whether a step of a run led from one checkpoint to the other."""
    return row.source == "loop" and row.step is not None and parent.step == row.step - 1


def _written(made_by: CheckpointWrites) -> tuple[str, ...]:
    return tuple(sorted({channel for task in made_by.finished for channel in task.outline.state}))


def _differing(after: Mapping[str, bytes], before: Mapping[str, bytes]) -> tuple[str, ...]:
    return tuple(sorted(name for name in after if after[name] != before.get(name)))
