"""A thread's checkpoints as a list, newest first, from stored rows."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from agentctl.records.threads import History, HistoryRow, Listing, Task
from agentctl.stores.base import Reader
from agentctl.stores.reading import summary
from agentctl.stores.reading.lineage import Tree, no_checkpoints, read_tree
from agentctl.stores.reading.notes import Notes, of_head
from agentctl.stores.reading.status import first_error, status_of
from agentctl.stores.reading.steps import Step, StepReader
from agentctl.stores.reading.taskview import readable_value
from agentctl.stores.stated import is_cut

VALUE_BYTES: Final = 16 * 1024
"""Writes larger than this are named in summaries, not read."""
_CHANGED_VALUE_BYTES: Final = 64 * 1024
"""Values of an update's channels up to this size are compared with those before it."""


def read_history(
    reader: Reader,
    thread: str,
    *,
    ns: str = "",
    all_namespaces: bool = False,
    limit: int | None = None,
    among: Collection[str] | None = None,
) -> History:
    """Returns a thread's checkpoints, newest first.

    Reads ids and parents of all checkpoints, which draws the branches, and metadata and small writes of those listed.
    State is read for tips, for updates whose rows tell nothing, and where a task left no rows; a bounded number at a
    time, so memory does not grow with the state.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace to list.
        all_namespaces: List every namespace of the thread, merged by time; `head` and `status` are the root's.
        limit: At most this many checkpoints; None for all.
        among: Only these checkpoints of `ns`, such as those of a range; None for all.

    Raises:
        NotFound: The thread or the namespace has no checkpoints.
    """
    listing = list_history(reader, thread, ns=ns, all_namespaces=all_namespaces, limit=limit, among=among)
    items = tuple(listing.rows)
    return History(
        store=listing.store,
        thread=thread,
        head=listing.head,
        status=listing.status,
        items=items,
        n_total=listing.n_total,
        n_branches=listing.n_branches,
        truncated=listing.truncated,
        notes=listing.notes(),
        all_ids=listing.all_ids,
    )


def list_history(
    reader: Reader,
    thread: str,
    *,
    ns: str = "",
    all_namespaces: bool = False,
    limit: int | None = None,
    among: Collection[str] | None = None,
) -> Listing:
    """Returns the same with rows that are read one by one, so that a long list is never held.

    Raises:
        NotFound: The thread or the namespace has no checkpoints.
    """
    page = _page(reader, thread, ns, all_namespaces, limit, among)
    tree, all_ids, head = page.trees[page.main], page.notes.ids, page.head
    head_tasks = StepReader(reader, thread, page.main, tree=tree, value_bytes=0, results=False).tasks([head])[head]
    n_total = len(all_ids) if among is None else sum(i in among for i in all_ids)
    return Listing(
        store=str(reader.info),
        thread=thread,
        head=head,
        status=status_of(head_tasks),
        rows=_rows(reader, thread, page),
        n_total=n_total,
        n_branches=len(set(tree.branches().values())),
        truncated=len(page.listed) < n_total or any(is_cut(reader, thread, name) for name in page.trees),
        notes=partial(_notes, reader, thread, page),
        all_ids=all_ids,
    )


def _notes(reader: Reader, thread: str, page: _Page) -> tuple[str, ...]:
    """Returns the notes on the rows that have been read."""
    notes, tree = page.notes, page.trees[page.main]
    about_head = of_head(reader, thread, tree, notes.edits, notes.seen, notes) if page.main == "" else None
    return ((about_head,) if about_head else ()) + notes.lines()


def iter_history(
    reader: Reader,
    thread: str,
    *,
    ns: str = "",
    all_namespaces: bool = False,
    limit: int | None = None,
    among: Collection[str] | None = None,
) -> Iterator[HistoryRow]:
    """Yields the same rows one by one, each read when it is asked for but for the ids: whoever stops early pays less.

    Raises:
        NotFound: The thread or the namespace has no checkpoints.
    """
    yield from _rows(reader, thread, _page(reader, thread, ns, all_namespaces, limit, among))


@dataclass(frozen=True, slots=True)
class _Page:
    """What is listed: the trees of its namespaces, the namespace whose head counts, and (namespace, id) by age."""

    trees: Mapping[str, Tree]
    main: str
    head: str
    listed: tuple[tuple[str, str], ...]
    notes: Notes


def _page(
    reader: Reader, thread: str, ns: str, all_namespaces: bool, limit: int | None, among: Collection[str] | None
) -> _Page:
    names = sorted(reader.namespaces(thread)) if all_namespaces else [ns]
    trees = {name: read_tree(reader, thread, name) for name in names}
    main = "" if all_namespaces and "" in trees else ns if ns in trees else next(iter(trees), ns)
    tree = trees.get(main)
    if tree is None or tree.head is None:
        raise no_checkpoints(reader, thread, main)
    newest_first = _newest_first(trees)
    wanted = newest_first if among is None else (place for place in newest_first if place[1] in among)
    return _Page(
        trees, main, tree.head, tuple(islice(wanted, limit)), Notes(i for each in trees.values() for i in each.ids)
    )


def _newest_first(trees: Mapping[str, Tree]) -> Iterator[tuple[str, str]]:
    """Yields (namespace, id) of all checkpoints, newest first."""
    lists = [[(checkpoint_id, ns) for checkpoint_id in tree.ids] for ns, tree in sorted(trees.items())]
    return ((ns, checkpoint_id) for checkpoint_id, ns in heapq.merge(*lists, reverse=True))


def _rows(reader: Reader, thread: str, page: _Page) -> Iterator[HistoryRow]:
    """Yields the rows of the listed checkpoints, in their order."""
    by_ns: dict[str, Iterator[HistoryRow]] = {}
    for ns, tree in page.trees.items():
        ids = [checkpoint_id for name, checkpoint_id in page.listed if name == ns]
        by_ns[ns] = _namespace_rows(reader, thread, ns, tree, ids, page.notes)
    if len(by_ns) == 1:
        yield from by_ns[page.main]
        return
    found = (next(by_ns[ns], None) for ns, _ in page.listed)
    yield from (row for row in found if row is not None)


def _namespace_rows(
    reader: Reader, thread: str, ns: str, tree: Tree, ids: Sequence[str], notes: Notes
) -> Iterator[HistoryRow]:
    branches = tree.branches()
    head = tree.head if ns == "" else None
    reading = StepReader(reader, thread, ns, tree=tree, value_bytes=VALUE_BYTES, results=False)
    for step in reading.steps(ids):
        notes.take(step, tree)
        row = step.row
        # Most steps ended without an error or a question.
        stopped = [task for task in step.tasks if task.error is not None or task.interrupts]
        yield HistoryRow(
            row.id,
            row.parent,
            ns,
            row.step,
            row.source,
            row.at,
            step.wrote,
            step.next,
            step.channels,
            tuple([interrupt for task in stopped for interrupt in task.interrupts]),
            first_error(stopped) if stopped else None,
            branches[row.id],
            row.id == head,
            _summary(reader, step, stopped),
            step.as_node,
        )


def _summary(reader: Reader, step: Step, stopped: Sequence[Task]) -> str:
    """Returns one line: what made the checkpoint, then what the tasks of its own step that stopped left open."""
    match step.row.source:
        case "input":
            made = summary.of_input(step.writes.step)
        case "fork":
            made = "run again from here"
        case "update" | "loop" if not step.made_by:
            made = _change(reader, step)
        case _:
            made = summary.of_writes(step.made_by)
    return "; ".join(part for part in (made, summary.of_tasks(stopped)) if part) if stopped else made


def _change(reader: Reader, step: Step) -> str:
    """Returns what an update or an unstored run changed, from small values of the channels that got a new version."""
    from agentctl.codec.delta import snapshot_value  # few histories have an update: the others start faster without

    row = step.row
    if not step.channels:
        return ""
    ids = [row.id] if row.parent is None else [row.id, row.parent]
    values: dict[str, dict[str, object]] = {}
    for stored in reader.stored(row.thread, row.ns, ids, channels=step.channels, value_bytes=_CHANGED_VALUE_BYTES):
        values[stored.row.id] = {
            channel: snapshot_value(readable_value(value)) for channel, value in stored.values.items()
        }
    after, before = values.get(row.id, {}), values.get(row.parent or "", {})
    parts = [
        summary.of_change(channel, before.get(channel), after[channel]) if channel in after else f"{channel} changed"
        for channel in step.channels
    ]
    return ", ".join(parts)
