"""What ran, what made a checkpoint and what runs next, from stored rows without the graph.

Equal to `get_state_history` in ids, names, next (as a multiset), errors and interrupts, also where that answer is
not what happened: after a `Command(goto)` on a checkpoint it names the tasks that were due before, not those that ran
(`wrote` of the next checkpoint has these). What cannot be known is `?`: the node that an update was written as, where
the thread had moved on or no task was due for it; who made a checkpoint whose parent is not stored; the first run of
an entrypoint that left no rows.

Rows are trusted as they are. The default durability "async" can store a join as complete that was not, when nodes are
fast; `next` then has the node by the rows, where the graph would not run it.

Source: langgraph 1.2.24, pregel/main.py (`_prepare_state_snapshot`, `bulk_update_state`), pregel/_loop.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from agentctl.records.rows import CheckpointRow, Version, WriteRow
from agentctl.records.threads import UNKNOWN, Task
from agentctl.stores.base import Reader
from agentctl.stores.batches import in_chunks
from agentctl.stores.reading import layout, unpathed
from agentctl.stores.reading.batch import LOOK_BACK, Batch, next_step
from agentctl.stores.reading.due import Bookkeeping, entry_node, read_bookkeeping
from agentctl.stores.reading.lineage import Tree, read_tree
from agentctl.stores.reading.naming import Names
from agentctl.stores.reading.taskrows import (
    CheckpointWrites,
    TaskRows,
    group_writes,
)
from agentctl.stores.reading.taskview import make_task
from agentctl.stores.stated import StatesTasks

if TYPE_CHECKING:
    from agentctl.stores.reading.stated import StatedSteps

AS_NODE: Final = "agentctl_as_node"
"""Metadata in which our own forks keep the node they were written as."""

_IDS_PER_READ: Final = 400


class Step(NamedTuple):
    """One checkpoint and the step that runs from it.

    Attributes:
        row: The checkpoint.
        parent: Its parent, None where it has none or it is not stored.
        tasks: Tasks of the step, Sends first, then nodes by name; those that have no rows yet included.
        wrote: Nodes that made the checkpoint, `?` where rows cannot tell.
        as_node: The node that an update was written as, several joined by `, `; None where unknown or no update.
        channels: State channels that changed with this checkpoint, sorted.
        made_by: Rows of the tasks that made it; empty where none are stored.
        writes: What is stored on it.
    """

    row: CheckpointRow
    parent: CheckpointRow | None
    tasks: tuple[Task, ...]
    wrote: tuple[str, ...]
    as_node: str | None
    channels: tuple[str, ...]
    made_by: tuple[TaskRows, ...]
    writes: CheckpointWrites

    @property
    def next(self) -> tuple[str, ...]:
        """Names of all tasks of the step, finished or not, as in `get_state_history`."""
        return tuple([task.name for task in self.tasks])


class StepReader:
    """Reads steps of one namespace. Work grows with the ids asked for, and one scan of the namespace's ids.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        tree: The namespace's tree where the caller has read it.
        value_bytes: Task results up to this size are read; None reads all. Errors and questions always are.
        results: Whether tasks carry their results, decoded; without them `Task.result` is None.
    """

    def __init__(
        self,
        reader: Reader,
        thread: str,
        ns: str = "",
        *,
        tree: Tree | None = None,
        value_bytes: int | None = None,
        results: bool = True,
    ) -> None:
        self._reader = reader
        self._thread = thread
        self._ns = ns
        self._value_bytes = value_bytes
        self._results = results
        if tree is not None:
            self.tree = tree
        self._namespaces: frozenset[str] | None = None
        self._tip_books: tuple[Bookkeeping, ...] | None = None
        self._names = Names(ns)

    @cached_property
    def tree(self) -> Tree:
        """The namespace's tree."""
        return read_tree(self._reader, self._thread, self._ns)

    def tasks(self, ids: Iterable[str]) -> Mapping[str, tuple[Task, ...]]:
        """Returns the tasks of each stored checkpoint among `ids`."""
        if isinstance(self._reader, StatesTasks):
            return self._stated(self._reader).tasks(tuple(ids))
        return {step.row.id: step.tasks for step in self.steps(ids)}

    def next(self, ids: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the names of the nodes that run from each checkpoint, with multiplicity."""
        return {step.row.id: step.next for step in self.steps(ids)}

    def wrote(self, ids: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the names of the nodes that made each checkpoint, with multiplicity."""
        return {step.row.id: step.wrote for step in self.steps(ids)}

    def steps(self, ids: Iterable[str]) -> Iterator[Step]:
        """Yields the step of each stored checkpoint among `ids`, in that order; a bounded number is held at a time."""
        wanted = [i for i in dict.fromkeys(ids) if i in self.tree.parents]
        if isinstance(self._reader, StatesTasks):
            stated = self._stated(self._reader)
            for chunk in in_chunks(wanted, _IDS_PER_READ):
                yield from stated.steps(chunk, self.tree)
            return
        for chunk in in_chunks(wanted, _IDS_PER_READ):
            batch = self._load(chunk)
            for step_id in chunk:
                if step_id in batch.rows:
                    yield self._step(step_id, batch)

    def namespaces(self) -> frozenset[str]:
        """Returns the thread's namespaces, read once."""
        if self._namespaces is None:
            self._namespaces = frozenset(self._reader.namespaces(self._thread))
        return self._namespaces

    def _stated(self, reader: StatesTasks) -> StatedSteps:
        from agentctl.stores.reading.stated import StatedSteps  # most stores have rows

        return StatedSteps(reader, self._thread, self._ns, value_bytes=self._value_bytes, results=self._results)

    def _load(self, ids: Sequence[str]) -> Batch:
        parents = {parent for i in ids if (parent := self.tree.parents.get(i)) is not None}
        looked_at = set(ids) | parents
        around = self._ancestors(set(ids)) - looked_at
        children = {child for i in (*ids, *parents) for child in self.tree.children.get(i, ())}
        rows = self._reader.rows(self._thread, self._ns, ids=looked_at | around | children)
        writes = self._reader.writes(self._thread, self._ns, looked_at, value_bytes=self._value_bytes)
        if around:
            writes = [*writes, *self._reader.writes(self._thread, self._ns, around, value_bytes=0)]
        grouped = dict(group_writes(self._with_control_values(writes, set(ids))))
        batch = Batch(self.tree, {row.id: row for row in rows}, grouped)
        self._names.learn_from_writes(writes)
        if unpathed.blank(batch):
            self._names.learn_from_namespaces(self.namespaces())
            self._tips()
            unpathed.identify(batch, self._names)
        self._read_books(ids, batch)
        return batch

    def _ancestors(self, ids: Collection[str]) -> set[str]:
        """Returns the ancestors, some way back, of checkpoints; not those that have one of `ids` in between."""
        found: set[str] = set()
        for checkpoint_id in ids:
            at = self.tree.parents.get(checkpoint_id)
            for _ in range(LOOK_BACK):
                if at is None or at in ids or at not in self.tree.parents:
                    break
                found.add(at)
                at = self.tree.parents[at]
        return found

    def _with_control_values(self, writes: Sequence[WriteRow], ids: set[str]) -> Sequence[WriteRow]:
        """Returns the writes with the values of errors and questions that were too large for the asked size."""
        control = (layout.ERROR, layout.INTERRUPT)
        lacking = {
            w.checkpoint_id for w in writes if w.value is None and w.channel in control and w.checkpoint_id in ids
        }
        if not lacking:
            return writes
        read = self._reader.writes(self._thread, self._ns, lacking, channels=control)
        full = {(w.checkpoint_id, w.task_id, w.idx): w for w in read}
        return [full.get((w.checkpoint_id, w.task_id, w.idx), w) for w in writes]

    def _read_books(self, ids: Sequence[str], batch: Batch) -> None:
        """Reads the bookkeeping of the checkpoints for which rows alone are not enough."""
        needed: set[str] = set()
        for checkpoint_id in ids:
            row = batch.rows.get(checkpoint_id)
            if row is None:
                continue
            if batch.due_by_rows(row) is None:
                needed.add(checkpoint_id)
            if batch.makers(row) is None and row.source not in ("input", "fork"):
                parent = batch.parent(row)
                needed |= {checkpoint_id, *([parent.id] if parent else [])}
        books = read_bookkeeping(self._reader, self._thread, self._ns, sorted(needed, reverse=True))
        batch.books.update(books)
        self._names.learn_from_books(books.values())

    def _step(self, checkpoint_id: str, batch: Batch) -> Step:
        row = batch.rows[checkpoint_id]
        makers = batch.makers(row)
        wrote, as_node = self._wrote(row, makers, batch)
        return Step(
            row,
            batch.parent(row),
            self._tasks(row, batch),
            wrote,
            as_node,
            self._channels(row, makers, batch),
            makers.finished if makers else self._update_rows(row, batch),
            batch.writes_on(checkpoint_id),
        )

    def _tasks(self, row: CheckpointRow, batch: Batch) -> tuple[Task, ...]:
        tasks = self._tasks_of(row, batch)
        handlers = [rows for rows in batch.writes_on(row.id).handlers if rows.finished]
        return tuple(self._handled(row, task, handlers) for task in tasks) if handlers else tasks

    def _handled(self, row: CheckpointRow, task: Task, handlers: Iterable[TaskRows]) -> Task:
        """Returns a task with the error handler that took care of its error, if one did."""
        path = layout.parse_task_path(task.path)
        for rows in handlers:
            if task.error is not None and (rows.path.node, rows.path.index) == (path.node, path.index):
                name = self._names.of_handler(row.id, next_step(row), rows, [(task.id, path)])
                return task._replace(handled_by=name)
        return task

    def _tasks_of(self, row: CheckpointRow, batch: Batch) -> tuple[Task, ...]:
        rows = batch.due_by_rows(row)
        if rows is not None:
            return tuple([self._task_of_rows(row, task, batch) for task in rows])
        book = batch.books.get(row.id)
        return tuple(self._due_tasks(row, book, batch)) if book else ()

    def _task_of_rows(self, row: CheckpointRow, task: TaskRows, batch: Batch) -> Task:
        if task.path.kind == "send":
            name = self._send_name(row, task, batch)
        else:
            name = task.path.node or UNKNOWN
            self._names.learn_triggers(row.id, next_step(row), name, task.id)
        return self._task(name, task.id, task.raw_path, task)

    def _due_tasks(self, row: CheckpointRow, book: Bookkeeping, batch: Batch) -> Iterator[Task]:
        """Yields the tasks that a checkpoint's own bookkeeping calls for, with whatever rows they have left."""
        step = next_step(row)
        writes = batch.writes_on(row.id)
        here = {task.id: task for task in (*writes.updates, *writes.step)}
        pulled = {task.path.node: task for task in here.values() if task.path.kind == "pull"}
        for index, name in enumerate(book.due.sends):
            task_id = layout.send_task_id(row.id, self._ns, step, name, index, format=book.format)
            yield self._task(name, task_id, layout.send_path(index), here.get(task_id))
        for due in book.due.nodes:
            name = self._entry(row, pulled, batch) if due == UNKNOWN else due
            if name == UNKNOWN:
                yield Task(id="", name=UNKNOWN, path="", finished=False)
                continue
            stored = pulled.get(name)
            triggers = self._names.triggers(name, book.channel_versions)
            task_id = (
                stored.id if stored else layout.pull_task_id(row.id, self._ns, step, name, triggers, format=book.format)
            )
            yield self._task(name, task_id, layout.pull_path(name), stored or here.get(task_id))

    def _task(self, name: str, task_id: str, path: str, rows: TaskRows | None) -> Task:
        return make_task(name, self._ns, task_id, path, rows, self.namespaces(), results=self._results)

    def _entry(self, row: CheckpointRow, pulled: Mapping[str | None, TaskRows], batch: Batch) -> str:
        """Returns the name of the node that input starts, from any evidence in the namespace."""
        if len(pulled) == 1:
            (name,) = pulled
            return name or UNKNOWN
        called_by = {call.path.node for call in batch.writes_on(row.id).calls if call.path.node}
        if len(called_by) == 1:
            return called_by.pop()
        found = entry_node((*batch.books.values(), *self._tips()))
        return found or UNKNOWN

    def _tips(self) -> tuple[Bookkeeping, ...]:
        """Returns the bookkeeping of the namespace's tips, read once: the names of all nodes that ever ran."""
        if self._tip_books is None:
            books = read_bookkeeping(self._reader, self._thread, self._ns, self.tree.tips)
            self._tip_books = tuple(books.values())
            self._names.learn_from_books(self._tip_books)
        return self._tip_books

    def _send_name(self, row: CheckpointRow, task: TaskRows, batch: Batch) -> str:
        """Returns the node of a Send, whose stored path has only its position: by trying names until the id fits."""
        index, step = task.path.index, next_step(row)
        if index is None:
            return UNKNOWN
        if found := self._names.of_send(row.id, step, index, task.id):
            return found
        self._names.learn_from_namespaces(self.namespaces())
        self._tips()
        if found := self._names.of_send(row.id, step, index, task.id):
            return found
        if row.id not in batch.books:
            batch.books.update(read_bookkeeping(self._reader, self._thread, self._ns, [row.id]))
        sends = batch.books[row.id].due.sends if row.id in batch.books else ()
        return sends[index] if index < len(sends) else UNKNOWN

    def _wrote(
        self, row: CheckpointRow, makers: CheckpointWrites | None, batch: Batch
    ) -> tuple[tuple[str, ...], str | None]:
        """Returns the nodes that made a checkpoint, and for an update the node it was written as."""
        parent = batch.parent(row)
        if makers is not None and parent is not None:
            first = makers.finished[0].path
            if len(makers.finished) == 1 and first.kind == "pull":
                return (first.node or UNKNOWN,), None
            return tuple(self._names_of_makers(parent, makers, batch)), None
        if row.source == "update":
            ours = row.metadata.get(AS_NODE)
            if isinstance(ours, str) and ours:
                return (ours,), ours
            names = self._updated_as(row, batch)
            return names, ", ".join(names) if UNKNOWN not in names else None
        if row.source != "loop":
            return (), None
        if parent is not None and row.step is not None and parent.step == row.step - 1:
            return tuple(task.name for task in self._tasks(parent, batch)) or (UNKNOWN,), None
        if row.parent is not None and parent is None:
            return (UNKNOWN,), None
        return self._ran_between(parent, row, batch), None

    def _names_of_makers(self, parent: CheckpointRow, makers: CheckpointWrites, batch: Batch) -> Iterator[str]:
        for task in makers.finished:
            match task.path.kind:
                case "pull":
                    yield task.path.node or UNKNOWN
                case "send":
                    yield self._send_name(parent, task, batch)
                case "handler":
                    failed = [(t.id, t.path) for t in makers.step if not t.finished]
                    yield self._names.of_handler(parent.id, next_step(parent), task, failed)
                case _:
                    yield task.path.node or UNKNOWN

    def _update_rows(self, row: CheckpointRow, batch: Batch) -> tuple[TaskRows, ...]:
        """Returns the rows of the update that made a checkpoint; later updates of one parent leave none."""
        if row.source != "update" or row.parent is None:
            return ()
        children = self.tree.children.get(row.parent, ())
        return batch.writes_on(row.parent).updates if children and children[0] == row.id else ()

    def _updated_as(self, row: CheckpointRow, batch: Batch) -> tuple[str, ...]:
        updates = self._update_rows(row, batch)
        parent = batch.parent(row)
        if not updates or parent is None:
            return (UNKNOWN,)
        due = {task.id: task.name for task in self._tasks(parent, batch)}
        return tuple(due.get(update.id, UNKNOWN) for update in updates)

    def _ran_between(self, parent: CheckpointRow | None, row: CheckpointRow, batch: Batch) -> tuple[str, ...]:
        """Returns the nodes that a run with durability "exit" ran, in order; how often each ran is not stored."""
        after = batch.books.get(row.id)
        before = batch.books.get(parent.id) if parent else None
        if after is None or (parent is not None and before is None):
            return (UNKNOWN,)
        seen_before = before.versions_seen if before else {}
        ran = {
            node: seen
            for node, seen in after.versions_seen.items()
            if node in after.nodes and node != layout.START and seen_before.get(node) != seen
        }
        dated = sorted((max(map(_sortable, seen.values())), node) for node, seen in ran.items() if seen)
        return tuple(node for _, node in dated) + tuple(sorted(node for node, seen in ran.items() if not seen))

    def _channels(self, row: CheckpointRow, makers: CheckpointWrites | None, batch: Batch) -> tuple[str, ...]:
        """Returns the state channels that changed with a checkpoint, by the rows that made it, else by versions."""
        if makers is not None:
            if len(makers.finished) == 1 and makers.null is None:
                return makers.finished[0].outline.state
            written = {channel for task in makers.finished for channel in task.outline.state}
            if makers.null is not None:
                written |= {w.channel for w in makers.null.writes if layout.is_state_channel(w.channel)}
            return tuple(sorted(written))
        if row.source in ("input", "fork"):
            return ()
        after, before = batch.books.get(row.id), batch.books.get(row.parent or "")
        if after is None or (before is None and row.parent is not None):
            return ()
        old = before.channel_versions if before else {}
        return layout.newer_versions(after.channel_versions, old, format=after.format, nodes=after.nodes)


def _sortable(version: Version) -> str:
    """Returns text that sorts as the version does; text versions are zero-padded by the savers that write them."""
    return version if isinstance(version, str) else f"{float(version):032.16f}"
