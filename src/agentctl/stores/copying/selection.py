"""Which rows a copy takes: the lineage of a checkpoint, a whole thread, or the least that can still be run.

A copy that can be run needs more than one row: LangGraph takes a stored write for a finished task, loads the newest
row of a subgraph's namespace, and rebuilds delta channels from ancestors. What is taken therefore depends on what the
copy is for. To be *resumed*, a checkpoint brings all its writes and the namespaces below it. To be *re-executed*, it
leaves both behind, or nothing would run again. Where some of its tasks are to run again, it leaves theirs behind.

Source: langgraph 1.2.24, pregel/_loop.py (`_first`, `__enter__`), _internal/_replay.py; langgraph-checkpoint 4.3.2,
checkpoint/base/__init__.py (`get_delta_channel_history`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from agentctl.errors import NotFound, Refused
from agentctl.records.copies import Scope, command
from agentctl.records.rows import CheckpointRow
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import CopyPlan, Reader, RowPick
from agentctl.stores.copying import lacks
from agentctl.stores.keyed import Keyed
from agentctl.stores.reading.ancestors import delta_ancestors, enclosing_ids, reads_sends_of_parent
from agentctl.stores.reading.layout import TASKS, caller_path, keeps_state, node_ns, task_ns


def for_copy(reader: Reader, thread: str, ns: str, id: str, scope: Scope, as_thread: str) -> CopyPlan:
    """Returns the plan that copies a checkpoint's `lineage`, `all` of its thread, or the `point` needed to resume it.

    A lineage is the parent chain with all its writes and, recursively, the rows of every namespace below it. For a
    checkpoint inside a namespace the enclosing chains come too, without the result of the task that it belongs to.

    Raises:
        NotFound: The thread has no such checkpoint.
    """
    rows = _ThreadRows(reader, thread)
    rows.require(ns, id)
    if scope == "point":
        return for_resume(reader, thread, ns, id, as_thread)
    picks = _everything(rows) if scope == "all" else _lineage(rows, ns, id)
    return CopyPlan(thread=thread, as_thread=as_thread, picks=_in_order(picks))


def for_resume(reader: Reader, thread: str, ns: str, id: str, as_thread: str) -> CopyPlan:
    """Returns the least rows from which the checkpoint goes on as it was: finished tasks stay finished.

    The copy is run with `invoke(None)` or `Command(resume=...)` and without a checkpoint id.

    Raises:
        NotFound: The thread has no such checkpoint, or an enclosing one that it names is missing.
    """
    rows = _ThreadRows(reader, thread)
    enclosing = _enclosing(rows, ns, rows.require(ns, id))
    picks = [RowPick(ns, id), *_pick_enclosing(rows, ns, enclosing, for_replay=False)]
    picks += _newest_below(rows, {**enclosing, ns: id}, before=None)
    rows.require_stated(lacks.TO_RESUME, picks)
    return CopyPlan(thread=thread, as_thread=as_thread, picks=_in_order(_with_needed(rows, picks)))


def for_rerun(reader: Reader, thread: str, ns: str, id: str, tasks: Mapping[str, str], as_thread: str) -> CopyPlan:
    """Returns the rows from which some tasks of the checkpoint's step are executed again and the others stay finished.

    Their writes, those of the @task calls that they made, and the namespaces of their subgraphs stay behind, as do
    answers to questions that no task has taken yet. The copy is run without a checkpoint id.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        id: The checkpoint.
        tasks: The tasks to execute again: node names by task id.
        as_thread: Name of the copy.

    Raises:
        NotFound: The thread has no such checkpoint, or an enclosing one that it names is missing.
        Refused: Such a task runs a subgraph that keeps its state between calls: LangGraph would take its old end for
            its result.
    """
    rows = _ThreadRows(reader, thread)
    enclosing = _enclosing(rows, ns, rows.require(ns, id))
    own = RowPick(ns, id, except_tasks=_with_their_calls(rows, ns, id, tasks), except_null_resume=True)
    below = _newest_below(rows, {**enclosing, ns: id}, before=None)
    nodes = {node_ns(_node_names(ns), name) for name in tasks.values()}
    kept = next((pick.ns for pick in below if keeps_state(pick.ns) and _lies_in(pick.ns, nodes)), None)
    if kept is not None:
        raise Refused(
            f"subgraph {kept} below checkpoint {id} keeps its state between calls, so a run of its task alone would"
            " skip it",
            hint=f"replay the whole step, with a stub for the call: {thread}@{id}",
        )
    again = {task_ns(ns, name, task) for task, name in tasks.items()}
    picks = [own, *_pick_enclosing(rows, ns, enclosing, for_replay=True)]
    picks += [pick for pick in below if not _lies_in(pick.ns, again)]
    rows.require_stated(lacks.TO_RESUME, picks)
    rows.require_stated(lacks.TO_REPLAY, [own])
    return CopyPlan(thread=thread, as_thread=as_thread, picks=_in_order(_with_needed(rows, picks)))


def for_replay(reader: Reader, thread: str, ns: str, id: str, as_thread: str) -> CopyPlan:
    """Returns the rows from which the checkpoint's step is executed again.

    Task writes of the checkpoint and the namespaces of its tasks stay behind. `plan.run_from` is the checkpoint id
    for a root checkpoint; a checkpoint inside a namespace is run without an id, so that only what lies after that
    row runs.

    Raises:
        NotFound: The thread has no such checkpoint, or an enclosing one that it names is missing.
        Refused: The checkpoint is inside a namespace and a subgraph below it keeps its state between calls: LangGraph
            would take its old end for its result.
    """
    rows = _ThreadRows(reader, thread)
    enclosing = _enclosing(rows, ns, rows.require(ns, id))
    own = RowPick(ns, id, writes="null_task")
    around = list(_pick_enclosing(rows, ns, enclosing, for_replay=True))
    rows.require_stated(lacks.TO_REPLAY, [own])
    rows.require_stated(lacks.TO_RESUME, around)
    picks = [own, *around]
    below = _newest_below(rows, {**enclosing, ns: id}, before=ns)
    if ns and (skipped := _skipped_on_resume(rows, ns, id, below)):
        raise Refused(
            f"subgraph {skipped} below checkpoint {id} keeps its state between calls, so a replay from inside {ns}"
            " would skip it",
            hint=f"replay the enclosing checkpoint: {thread}@{enclosing['']}",
        )
    return CopyPlan(
        thread=thread,
        as_thread=as_thread,
        picks=_in_order(_with_needed(rows, [*picks, *below])),
        run_from=None if ns else id,
    )


@dataclass(slots=True)
class _ThreadRows:
    """The rows of one thread, read a namespace at a time and at most once."""

    reader: Reader
    thread: str
    _lean: dict[str, Mapping[str, CheckpointRow]] = field(default_factory=dict)
    _full: dict[str, Mapping[str, CheckpointRow]] = field(default_factory=dict)
    _namespaces: tuple[str, ...] | None = None

    def namespaces(self) -> tuple[str, ...]:
        """Returns the namespaces, enclosing ones before those inside them."""
        if self._namespaces is None:
            found = self.reader.namespaces(self.thread)
            self._namespaces = tuple(sorted(found, key=lambda ns: (0 if ns == "" else 1 + ns.count("|"), ns)))
        return self._namespaces

    def lean(self, ns: str) -> Mapping[str, CheckpointRow]:
        """Returns the rows of a namespace by id, newest first, without metadata."""
        if ns not in self._lean:
            self._lean[ns] = {row.id: row for row in self.reader.rows(self.thread, ns, metadata=False)}
        return self._lean[ns]

    def full(self, ns: str) -> Mapping[str, CheckpointRow]:
        """Returns the rows of a namespace by id, newest first, with metadata."""
        if ns not in self._full:
            self._full[ns] = {row.id: row for row in self.reader.rows(self.thread, ns)}
        return self._full[ns]

    def find(self, ns: str, id: str) -> CheckpointRow | None:
        """Returns one row with metadata, or None."""
        if ns in self._full:
            return self._full[ns].get(id)
        return next(iter(self.reader.rows(self.thread, ns, ids=[id])), None)

    def require(self, ns: str, id: str) -> CheckpointRow:
        """Returns one row with metadata, or raises NotFound."""
        row = self.find(ns, id)
        if row is None:
            where = f" in namespace {ns}" if ns else ""
            raise NotFound(
                f"thread {self.thread} has no checkpoint {id}{where}",
                hint="list them with: "
                + command("history", self.reader.info.target(self.thread), *(("--ns", ns) if ns else ())),
            )
        return row

    def require_stated(self, lack: str, picks: Iterable[RowPick]) -> None:
        """Raises Refused where a picked row lacks what a run needs, because its source did not state it."""
        found = (self.find(pick.ns, pick.id) for pick in picks)
        lacks.require(self.reader.info, (row for row in found if row is not None), lack)

    def chain(self, ns: str, id: str) -> Iterator[str]:
        """Yields the id and its ancestors that are stored, newest first; a loop of parents ends it."""
        rows = self.lean(ns)
        seen: set[str] = set()
        at: str | None = id
        while at is not None and at in rows and at not in seen:
            seen.add(at)
            yield at
            at = rows[at].parent


def _skipped_on_resume(rows: _ThreadRows, ns: str, id: str, below: Sequence[RowPick]) -> str | None:
    """Returns the namespace of a subgraph that the first step after `id` would take for finished, or None.

    A run without a checkpoint id is a resume until its first step is over, and a subgraph that has kept its state then
    goes on from its old end. Its namespace names the nodes around it but no tasks.

    Source: `CONFIG_KEY_RESUMING` (langgraph 1.2.24, pregel/_loop.py `_first`, `after_tick`); `recast_checkpoint_ns`
    (_internal/_config.py).
    """
    around = _node_names(ns) + "|"
    kept = [pick.ns for pick in below if keeps_state(pick.ns) and pick.ns.startswith(around)]
    if not kept:
        return None
    from agentctl.stores.reading.steps import StepReader

    due = StepReader(rows.reader, rows.thread, ns).next([id])[id]
    return next((one for one in sorted(kept) if UNKNOWN in due or one.removeprefix(around).split("|")[0] in due), None)


def _node_names(ns: str) -> str:
    """Returns a namespace without its task ids: that of the same graph where it keeps its state."""
    return "|".join(part.partition(":")[0] for part in ns.split("|") if not part.isdigit())


def _lies_in(ns: str, outer: Collection[str]) -> bool:
    return any(ns == one or ns.startswith(one + "|") for one in outer)


def _with_their_calls(rows: _ThreadRows, ns: str, id: str, tasks: Collection[str]) -> frozenset[str]:
    """Returns tasks and the @task calls that they made, at any depth."""
    writes = rows.reader.writes(rows.thread, ns, [id], value_bytes=0)
    paths = {write.task_path for write in writes if write.task_id in tasks and write.task_path}
    calls = {write.task_id for write in writes if not paths.isdisjoint(_callers(write.task_path or ""))}
    return frozenset(tasks) | calls


def _callers(path: str) -> Iterator[str]:
    outer = caller_path(path)
    while outer is not None:
        yield outer
        outer = caller_path(outer)


def _everything(rows: _ThreadRows) -> list[RowPick]:
    """Returns picks of every checkpoint, and of checkpoints that only writes are left of."""
    if isinstance(rows.reader, Keyed):
        return [RowPick(ns, id) for ns, id in rows.reader.row_keys(rows.thread)]
    picks = []
    for ns in rows.namespaces():
        ids = dict.fromkeys(rows.lean(ns))
        ids.update((write.checkpoint_id, None) for write in rows.reader.writes(rows.thread, ns, value_bytes=0))
        picks += [RowPick(ns, id) for id in ids]
    return picks


def _lineage(rows: _ThreadRows, ns: str, id: str) -> list[RowPick]:
    enclosing = _enclosing(rows, ns, rows.require(ns, id))
    tips = {**enclosing, ns: id}
    owners = {outer: _owners(rows, outer, tip, ns) for outer, tip in enclosing.items()}
    picked: dict[str, set[str]] = {}
    picks: list[RowPick] = []
    for at in rows.namespaces():
        if at in tips:
            ids: Iterable[str] = rows.chain(at, tips[at])
        else:
            ids = _closed_under_parents(rows, at, (row.id for row in rows.full(at).values() if _is_below(row, picked)))
        picked[at] = set(ids)
        for one in picked[at]:
            left_out = owners[at] if at in enclosing and one == enclosing[at] else frozenset()
            picks.append(RowPick(at, one, except_tasks=left_out))
    return picks


def _is_below(row: CheckpointRow, picked: Mapping[str, Collection[str]]) -> bool:
    parents = enclosing_ids(row)
    return bool(parents) and all(id in picked.get(ns, ()) for ns, id in parents.items())


def _closed_under_parents(rows: _ThreadRows, ns: str, ids: Iterable[str]) -> set[str]:
    """Adds ancestors in the namespace: a subgraph that keeps its state carries it across its caller's branches."""
    closed: set[str] = set()
    for id in ids:
        for at in rows.chain(ns, id):
            if at in closed:
                break
            closed.add(at)
    return closed


def _enclosing(rows: _ThreadRows, ns: str, row: CheckpointRow) -> dict[str, str]:
    """Returns the checkpoints that enclose a row by namespace, each of which must be stored; empty for the root."""
    if not ns:
        return {}
    enclosing = {outer: id for outer, id in enclosing_ids(row).items() if outer != ns}
    for outer, id in enclosing.items():
        rows.require(outer, id)
    if "" not in enclosing:
        raise NotFound(
            f"checkpoint {row.id} in namespace {ns} does not name the root checkpoint it belongs to",
            hint="copy the whole thread: " + command("copy", rows.reader.info.target(rows.thread), "--only", "all"),
        )
    return enclosing


def _owners(rows: _ThreadRows, outer: str, id: str, ns: str) -> frozenset[str]:
    """Returns the ids of the tasks on checkpoint `id` of namespace `outer` that ran the subgraph of `ns`.

    A per-task namespace carries its task's id. One that keeps its state names only the node, so the task is looked
    for by its path, or by the namespace of a task that ran beside it.
    """
    segment = ns.split("|")[0 if outer == "" else outer.count("|") + 1]
    node, _, task = segment.rpartition(":")
    if node:
        return frozenset({task})
    from agentctl.stores.reading.steps import StepReader

    tasks = StepReader(rows.reader, rows.thread, outer).tasks([id])[id]
    return frozenset(one.id for one in tasks if one.name == segment)


def _pick_enclosing(rows: _ThreadRows, ns: str, enclosing: Mapping[str, str], *, for_replay: bool) -> Iterator[RowPick]:
    for outer, id in enclosing.items():
        owners = _owners(rows, outer, id, ns)
        yield RowPick(outer, id, except_tasks=owners, except_null_resume=for_replay)


def _newest_below(rows: _ThreadRows, fixed: Mapping[str, str], *, before: str | None) -> list[RowPick]:
    """Returns the newest row of every namespace below fixed checkpoints, recursively.

    Args:
        rows: The thread.
        fixed: The checkpoint that each of some namespaces stands at.
        before: A namespace whose fixed checkpoint is executed again: what its tasks made is left out, and a subgraph
            that keeps its state stands where it stood before that checkpoint. None leaves nothing out.
    """
    at = dict(fixed)
    picks: list[RowPick] = []
    for ns in rows.namespaces():
        if ns in at:
            continue
        if keeps_state(ns):
            ids = _state_rows(rows, ns, at, before)
        else:
            ids = _task_rows(rows, ns, at, before)
        if ids:
            at[ns] = ids[0]
            picks += [RowPick(ns, id) for id in ids]
    return picks


def _task_rows(rows: _ThreadRows, ns: str, at: Mapping[str, str], before: str | None) -> list[str]:
    for row in rows.full(ns).values():
        parents = enclosing_ids(row)
        if before in parents:
            continue
        if parents and all(at.get(outer) == id for outer, id in parents.items()):
            return [row.id]
    return []


def _state_rows(rows: _ThreadRows, ns: str, at: Mapping[str, str], before: str | None) -> list[str]:
    """Returns the rows that a subgraph with kept state stands at, newest first.

    More than one only where the fixed checkpoint is an update or a fork: LangGraph then looks for the newest row
    older than that checkpoint's parent first, and for the newest row at later visits.

    Source: langgraph 1.2.24, pregel/_loop.py `_first` (`replay_bound`), _internal/_replay.py.
    """
    lineages = {outer: list(rows.chain(outer, id)) for outer, id in at.items() if not keeps_state(outer)}
    if before is not None and before in lineages:
        lineages[before] = lineages[before][1:]
    found = _newest_on(rows, ns, lineages)
    if found is None:
        return []
    ids = [found]
    if before is not None and before in lineages and lineages[before]:
        fixed = rows.find(before, at[before])
        if fixed is not None and fixed.source in ("update", "fork"):
            lineages[before] = lineages[before][1:]
            earlier = _newest_on(rows, ns, lineages)
            ids += [earlier] if earlier is not None and earlier != found else []
    return ids


def _newest_on(rows: _ThreadRows, ns: str, lineages: Mapping[str, Sequence[str]]) -> str | None:
    known = {outer: frozenset(ids) for outer, ids in lineages.items()}
    for row in rows.full(ns).values():
        parents = enclosing_ids(row)
        relevant = [id in known[outer] for outer, id in parents.items() if outer in known]
        if relevant and all(relevant):
            return row.id
    return None


def _with_needed(rows: _ThreadRows, picks: Sequence[RowPick]) -> list[RowPick]:
    """Adds the ancestors that picked rows read when they are loaded: delta channels, Sends of old formats."""
    needed = list(picks)
    for pick in picks:
        needed += _delta_ancestors(rows, pick)
        needed += _sends_parent(rows, pick)
    return needed


def _delta_ancestors(rows: _ThreadRows, pick: RowPick) -> Iterator[RowPick]:
    """Yields what the delta channels of a picked row are rebuilt from, each with only the writes to these channels."""
    row = rows.find(pick.ns, pick.id)
    if row is not None:
        for id, channels in delta_ancestors(rows.reader, row, islice(rows.chain(pick.ns, pick.id), 1, None)):
            yield RowPick(pick.ns, id, channels=channels)


def _sends_parent(rows: _ThreadRows, pick: RowPick) -> Iterator[RowPick]:
    """Yields the parent whose writes hold the pending Sends of a checkpoint in an old format."""
    row = rows.lean(pick.ns).get(pick.id)
    if row is None or row.parent is None or row.parent not in rows.lean(pick.ns):
        return
    if reads_sends_of_parent(rows.reader, row):
        yield RowPick(pick.ns, row.parent, channels=frozenset({TASKS}))


def _in_order(picks: Iterable[RowPick]) -> tuple[RowPick, ...]:
    """Merges picks of the same row and sorts them: root namespace first, then by namespace, oldest first."""
    merged: dict[tuple[str, str], RowPick] = {}
    for pick in picks:
        key = (pick.ns, pick.id)
        merged[key] = _union(merged[key], pick) if key in merged else pick
    return tuple(merged[key] for key in sorted(merged))


def _union(first: RowPick, second: RowPick) -> RowPick:
    """Returns the pick that takes the row as what it was picked for first, and channels that any other use needs.

    A row picked for itself keeps its own rule: its writes to a channel are pending work, not history, unless both
    uses are histories.
    """
    if first.channels is None or second.channels is None:
        return first if first.channels is None else second
    return replace(first, channels=first.channels | second.channels)
