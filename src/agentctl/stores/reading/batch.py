"""Rows and writes of a few checkpoints with their surroundings, and what they tell without any state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agentctl.records.rows import CheckpointRow
from agentctl.stores.reading.due import Bookkeeping
from agentctl.stores.reading.forward import agrees, nothing_due
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

    def writes_on(self, checkpoint_id: str) -> CheckpointWrites:
        """Returns what is stored on a checkpoint."""
        return self.writes.get(checkpoint_id, NO_WRITES_STORED)

    def parent(self, row: CheckpointRow) -> CheckpointRow | None:
        """Returns a checkpoint's parent, None where it has none or it is not stored."""
        return self.rows.get(row.parent) if row.parent else None

    def makers(self, row: CheckpointRow) -> CheckpointWrites | None:
        """Returns the writes on the parent if its tasks made the checkpoint and left rows, else None."""
        if row.id not in self._makers:
            self._makers[row.id] = self._find_makers(row)
        return self._makers[row.id]

    def due_by_rows(self, row: CheckpointRow) -> tuple[TaskRows, ...] | None:
        """Returns the tasks of a step as far as rows alone tell, or None where the checkpoint itself must be read."""
        if row.id not in self._due:
            self._due[row.id] = self._find_due(row)
        return self._due[row.id]

    def _find_makers(self, row: CheckpointRow) -> CheckpointWrites | None:
        parent = self.parent(row)
        if parent is None or row.source != "loop" or row.step is None or parent.step != row.step - 1:
            return None
        writes = self.writes_on(parent.id)
        return writes if writes.finished else None

    def _find_due(self, row: CheckpointRow) -> tuple[TaskRows, ...] | None:
        here = self.writes_on(row.id)
        made_by = self.makers(row)
        if here.rerouted:
            return None
        if here.step and self._went_on(row):
            if any(task.path.kind == "unknown" for task in here.step):
                return None
            if row.source == "input":
                return here.step
            return here.step if made_by is not None and agrees(made_by, here) else None
        if not here.step and self.tree.children.get(row.id) and made_by is not None:
            return () if nothing_due(self._stretch(row)) else None
        return None

    def _went_on(self, row: CheckpointRow) -> bool:
        """Says whether the step that runs from a checkpoint was finished and saved."""
        if row.step is None:
            return False
        children = (self.rows.get(child) for child in self.tree.children.get(row.id, ()))
        return any(child is not None and child.source == "loop" and child.step == row.step + 1 for child in children)

    def _stretch(self, row: CheckpointRow) -> list[CheckpointWrites]:
        """Returns the writes of the steps that led to a checkpoint, oldest first, as far as they ran without a fork."""
        found: list[CheckpointWrites] = []
        at: CheckpointRow | None = row
        for _ in range(LOOK_BACK):
            if at is None:
                break
            if at.source != "input":
                made_by = self.makers(at)
                if made_by is None:
                    break
                found.append(made_by)
            at = self.parent(at)
        return found[::-1]


def next_step(row: CheckpointRow) -> int:
    """Returns the number of the step that runs from a checkpoint."""
    return (row.step if row.step is not None else -1) + 1
