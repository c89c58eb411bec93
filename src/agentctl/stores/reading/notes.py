"""Sentences that a history needs beside its rows: what a reader would otherwise take for granted wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from agentctl.records.rows import CheckpointRow
from agentctl.records.threads import UNKNOWN
from agentctl.revisions.heads import edited_head, is_edit
from agentctl.revisions.shortids import short_ids
from agentctl.stores.base import Reader
from agentctl.stores.reading.lineage import Tree
from agentctl.stores.reading.steps import Step

REASON: Final = "agentctl_reason"
"""Metadata in which our own forks keep why they were made."""

_MAX_OF_A_KIND: Final = 3
_MAX_ROWS_READ: Final = 500


class Notes:
    """Collects notes while the steps of a history go by; keeps a few of each kind and counts the rest.

    Args:
        ids: Every id of the thread that is shown, for the short forms.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = tuple(ids)
        self._short: Mapping[str, str] | None = None
        self._lines: dict[str, list[str]] = {
            "missing": [], "dangling": [], "clocks": [], "half_done": [], "damaged": [],
        }  # fmt: skip
        self._dropped: dict[str, int] = dict.fromkeys(self._lines, 0)
        self.edits: dict[str, CheckpointRow] = {}
        self.seen: set[str] = set()

    def take(self, step: Step, tree: Tree) -> None:
        """Notes what one step calls for."""
        row = step.row
        if row.ns == "":
            self.seen.add(row.id)
            if is_edit(row):
                self.edits[row.id] = row
        if row.metadata_error is not None:
            self._add("damaged", f"the metadata of {self.short(row.id)} cannot be read: {row.metadata_error}")
        missing = steps_missing(step)
        if missing:
            where = f"step {row.step} ({self.short(row.id)})" if row.step is not None else self.short(row.id)
            parent = "" if row.parent else ", no parent"
            self._add("missing", f"{where}{parent}: {missing} steps not stored (durability exit, or pruned)")
        if step.parent is None and (parent_id := tree.dangling(row.id)) is not None:
            self._add("dangling", f"the parent of {self.short(row.id)} is not stored here: {parent_id}")
        if row.parent is not None and row.parent in tree.parents and row.id < row.parent:
            self._add("clocks", f"{self.short(row.id)} came after its parent {self.short(row.parent)}: clocks differed")
        if line := half_done(step, went_on=bool(tree.children.get(row.id))):
            self._add("half_done", f"{self.short(row.id)}: {line}")

    def short(self, checkpoint_id: str) -> str:
        """Returns the short form of an id, the id itself where it is not of this thread."""
        if self._short is None:
            self._short = short_ids(self.ids)
        return self._short.get(checkpoint_id, checkpoint_id)

    def lines(self) -> tuple[str, ...]:
        """Returns the notes, those that the rows were newest for first."""
        found: list[str] = []
        for kind, lines in self._lines.items():
            found += lines
            if self._dropped[kind]:
                found.append(f"and {self._dropped[kind]} more like the last")
        return tuple(found)

    def _add(self, kind: str, line: str) -> None:
        if len(self._lines[kind]) < _MAX_OF_A_KIND:
            self._lines[kind].append(line)
        else:
            self._dropped[kind] += 1


def steps_missing(step: Step) -> int:
    """Returns how many steps of a run with durability "exit" came before this row and are not stored."""
    if step.made_by:
        return 0
    row = step.row
    if row.source != "loop" or row.step is None:
        return 0
    if row.parent is None:
        return row.step + 1
    if step.parent is None:
        return 0
    before = step.parent.step if step.parent.step is not None else -2
    return max(0, row.step - max(before, -2) - 1)


def half_done(step: Step, *, went_on: bool) -> str | None:
    """Returns what to know of a step that stopped after some of its tasks had finished, or None.

    A task without stored writes may have acted all the same: its effects come before its writes. A failed task whose
    error was handled does not run again, and its handler does.

    Source: langgraph 1.2.24, pregel/_loop.py (`_resume_error_handlers_if_applicable`).
    """
    if went_on or not step.tasks:
        return None
    done = [task.name for task in step.tasks if task.finished]
    handlers = [task.handled_by for task in step.tasks if not task.finished and task.handled_by is not None]
    failed = [task.name for task in step.tasks if not task.settled and task.error is not None]
    silent = [t.name for t in step.tasks if not (t.settled or t.error is not None or t.interrupts or t.name == UNKNOWN)]
    if not (failed or ((done or handlers) and silent)):
        return None
    kept = f"{_counted(done)} finished and will not run again; " if done else ""
    handled = f"{_counted(handlers)} ran, and runs again when the thread goes on; " if handlers else ""
    return f"{kept}{handled}{_counted(failed + silent)} did not finish and may already have run outside"


def _counted(names: Iterable[str]) -> str:
    """Returns names with how often each comes: `read (3), watch`."""
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in Counter(names).items())


def of_head(
    reader: Reader, thread: str, tree: Tree, edits: Mapping[str, CheckpointRow], seen: Collection[str], notes: Notes
) -> str | None:
    """Returns the note for a head that descends from an edit: which head there was without it.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        tree: The root namespace's tree.
        edits: Update and fork rows among the listed ones.
        seen: Ids of the listed rows.
        notes: For short ids.
    """
    if tree.head is None:
        return None
    known = {**edits, **_edits_at_branchings(reader, thread, tree, seen)}
    found = edited_head(tree.parents, tree.head, known.keys())
    if found is None or found.last_head is None:
        return None
    row = known[found.edit]
    reason = row.metadata.get(REASON)
    why = f", {reason}" if isinstance(reason, str) and reason else ""
    kind = "an update" if row.source == "update" else "a fork"
    return (
        f"the head descends from {kind} ({notes.short(row.id)}{why}); the customer saw {notes.short(found.last_head)}"
    )


def _edits_at_branchings(reader: Reader, thread: str, tree: Tree, seen: Collection[str]) -> Mapping[str, CheckpointRow]:
    """Reads the rows, not listed themselves, where branches begin: edits that split the thread are among them."""
    ids = list(islice(_branch_starts(tree, seen), _MAX_ROWS_READ))
    return {row.id: row for row in reader.rows(thread, ids=ids) if is_edit(row)} if ids else {}


def _branch_starts(tree: Tree, seen: Collection[str]) -> Iterator[str]:
    for children in tree.children.values():
        if len(children) > 1:
            yield from (child for child in children if child not in seen)
