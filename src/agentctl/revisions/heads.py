"""Whether a thread's head is what the application left, or descends from an edit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from agentctl.records.rows import CheckpointRow

EDITS: Final = ("update", "fork")
"""Sources of checkpoints that no run of the graph made on its own.

Source: langgraph 1.2.24, pregel/main.py (`update_state` writes source `update`, a run from an older checkpoint writes
source `fork`).
"""


ORIGIN: Final = "agentctl_origin"
"""Metadata of what an experiment wrote: the checkpoint, as a target, that its thread was copied from."""


def is_edit(row: CheckpointRow) -> bool:
    """Returns whether somebody edited the thread with this checkpoint.

    In a thread that an experiment made, its own `update` and `fork` rows are what the thread is for.
    """
    if row.source not in EDITS:
        return False
    origin = row.metadata.get(ORIGIN)
    return not isinstance(origin, str) or origin.rpartition("@")[0].endswith(row.thread)


@dataclass(frozen=True, slots=True)
class EditedHead:
    """The head descends from an edit.

    Attributes:
        edit: Id of the newest edit on the head's lineage.
        last_head: Id of the last head without such a row: what the customer saw. None where the thread began with it.
    """

    edit: str
    last_head: str | None


def find_edit(rows: Sequence[CheckpointRow], head: str) -> EditedHead | None:
    """Returns the edit that the head descends from, or None.

    Args:
        rows: Every row of one namespace with its metadata, in any order.
        head: Full id of the head.
    """
    return edited_head({row.id: row.parent for row in rows}, head, {row.id for row in rows if is_edit(row)})


def edited_head(parents: Mapping[str, str | None], head: str, edits: Collection[str]) -> EditedHead | None:
    """Returns the edit that the head descends from, or None.

    The last head without an edit is the newest checkpoint that descends from no edit at all. Where all do, since the
    application itself began with one, it is the newest that does not descend from the edit that is named.

    Args:
        parents: The parent of every checkpoint of one namespace, by id.
        head: Full id of the head.
        edits: Ids of its `update` and `fork` rows.
    """
    edit = next((id for id in _chain(parents, head) if id in edits), None)
    if edit is None:
        return None
    newest_first = sorted(parents, reverse=True)
    for marked in (frozenset(edits), frozenset((edit,))):
        below = _descendants(parents, marked)
        if (last := next((id for id in newest_first if id not in below), None)) is not None:
            return EditedHead(edit, last)
    return EditedHead(edit, None)


def _descendants(parents: Mapping[str, str | None], marked: Set[str]) -> Set[str]:
    """Returns the marked ids and all that descend from them; ids need not grow along a lineage (clocks differ)."""
    known: dict[str, bool] = {}
    for start in parents:
        path: list[str] = []
        id: str | None = start
        while id is not None and id in parents and id not in known and id not in marked:
            known[id] = False
            path.append(id)
            id = parents[id]
        below = id is not None and (id in marked or known.get(id, False))
        known.update(dict.fromkeys(path, below))
    return marked | {id for id, below in known.items() if below}


def _chain(parents: Mapping[str, str | None], tip: str) -> list[str]:
    """Returns the parent chain, newest first; a parent that is not stored ends it."""
    chain: list[str] = []
    id: str | None = tip
    while id is not None and id in parents and len(chain) < len(parents):
        chain.append(id)
        id = parents[id]
    return chain
