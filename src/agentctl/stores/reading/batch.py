"""Rows and writes of a few checkpoints with their surroundings, and what they tell without any state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agentctl.records.rows import CheckpointRow
from agentctl.stores.reading.due import Bookkeeping
from agentctl.stores.reading.forward import Waiting, agrees
from agentctl.stores.reading.lineage import Tree
from agentctl.stores.reading.taskrows import NO_WRITES_STORED, CheckpointWrites, TaskRows

LOOK_BACK: Final = 16
"""How many ancestors are looked at for triggers that still wait."""


@dataclass(slots=True)
class Batch:
    """What was read for one chunk of ids.

    Attributes:
        tree: The namespace's tree.
        rows: Checkpoints by id: the chunk, their parents and children, some ancestors.
        writes: Writes by checkpoint: of the chunk, the parents and the ancestors.
        books: Bookkeeping by checkpoint; grows while more is needed.
    """

    tree: Tree
    rows: Mapping[str, CheckpointRow]
    writes: dict[str, CheckpointWrites]
    books: dict[str, Bookkeeping] = field(default_factory=dict)
    _makers: dict[str, CheckpointWrites | None] = field(default_factory=dict)
    _due: dict[str, tuple[TaskRows, ...] | None] = field(default_factory=dict)
    _waiting: dict[str, Waiting] = field(default_factory=dict)
    _steps: dict[str, int | None] = field(init=False)
    _sources: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = {row.id: row.step for row in self.rows.values()}
        self._sources = {row.id: row.source for row in self.rows.values()}

    def writes_on(self, checkpoint_id: str) -> CheckpointWrites:
        """Returns what is stored on a checkpoint."""
        return self.writes.get(checkpoint_id, NO_WRITES_STORED)

    def parent(self, row: CheckpointRow) -> CheckpointRow | None:
        """Returns a checkpoint's parent, None where it has none or it is not stored."""
        return self.rows.get(row.parent) if row.parent else None

    def makers(self, row: CheckpointRow) -> CheckpointWrites | None:
        """Returns the writes on the parent if its tasks made the checkpoint and left rows, else None."""
        try:
            return self._makers[row.id]
        except KeyError:
            found = self._makers[row.id] = self._find_makers(row)
            return found

    def due_by_rows(self, row: CheckpointRow) -> tuple[TaskRows, ...] | None:
        """Returns the tasks of a step as far as rows alone tell, or None where the checkpoint itself must be read."""
        try:
            return self._due[row.id]
        except KeyError:
            found = self._due[row.id] = self._find_due(row)
            return found

    def _find_makers(self, row: CheckpointRow) -> CheckpointWrites | None:
        step = self._steps[row.id]
        if row.parent not in self._steps or step is None or self._sources[row.id] != "loop":
            return None
        if self._steps[row.parent] != step - 1:
            return None
        writes = self.writes.get(row.parent)
        return writes if writes is not None and writes.finished else None

    def _find_due(self, row: CheckpointRow) -> tuple[TaskRows, ...] | None:
        here = self.writes_on(row.id)
        if here.null is not None and here.rerouted:
            return None
        made_by = self.makers(row)
        if here.step and self._went_on(row):
            if "unknown" in [task.path.kind for task in here.step]:
                return None
            if self._sources[row.id] == "input":
                return here.step
            return here.step if made_by is not None and agrees(made_by, here) else None
        if not here.step and self.tree.children.get(row.id) and made_by is not None:
            return () if self._waiting_at(row).nothing_due else None
        return None

    def _went_on(self, row: CheckpointRow) -> bool:
        """Says whether the step that runs from a checkpoint was finished and saved."""
        step = self._steps[row.id]
        if step is None:
            return False
        children = self.tree.children.get(row.id, ())
        went_on = [self._steps.get(child) == step + 1 and self._sources[child] == "loop" for child in children]
        return True in went_on

    def _waiting_at(self, row: CheckpointRow) -> Waiting:
        """Returns the triggers that wait at a checkpoint, as far as its lineage was read; parents may lead back."""
        chain: dict[str, CheckpointRow] = {}
        at: CheckpointRow | None = row
        while at is not None and at.id not in self._waiting and at.id not in chain:
            chain[at.id] = at
            at = self.parent(at)
        waiting = self._waiting.get(at.id, Waiting(certain=False)) if at is not None else Waiting()
        for step in reversed(chain.values()):
            if self._sources[step.id] != "input" and not self._is_cut_off(step):
                made_by = self.makers(step)
                waiting = waiting.after(made_by) if made_by is not None else Waiting(certain=False)
            self._waiting[step.id] = waiting
        return waiting

    def _is_cut_off(self, row: CheckpointRow) -> bool:
        """Says whether a checkpoint's parent is stored and was not read."""
        return row.parent in self.tree.parents and row.parent not in self.rows


def next_step(row: CheckpointRow) -> int:
    """Returns the number of the step that runs from a checkpoint."""
    return (row.step if row.step is not None else -1) + 1
