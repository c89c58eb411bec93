"""Whether a thread's head is what the application left, or descends from an edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from agentctl.records.rows import CheckpointRow


@dataclass(frozen=True, slots=True)
class EditedHead:
    """The head descends from an edit.

    Attributes:
        edit: The newest `update` or `fork` row on the head's lineage.
        last_head: Id of the last head without such a row: what the customer saw. None where the thread began with it.
    """

    edit: CheckpointRow
    last_head: str | None


def find_edit(rows: Sequence[CheckpointRow], head: str) -> EditedHead | None:
    """Returns the edit that the head descends from, or None.

    Args:
        rows: Every row of one namespace with its metadata, in any order.
        head: Full id of the head.

    The last head without an edit is the newest row that descends from no `update` or `fork` row at all. Where all
    do, since the application itself began with one, it is the newest that does not descend from `edit`.

    Source: langgraph 1.2.24, pregel/main.py (`update_state` writes source `update`, a run from an older checkpoint
    writes source `fork`).
    """
    by_id = {row.id: row for row in rows}
    edit = next((row for row in _chain(by_id, head) if _is_edit(row)), None)
    if edit is None:
        return None
    edits = frozenset(row.id for row in rows if _is_edit(row))
    newest_first = sorted(by_id, reverse=True)
    for marked in (edits, frozenset((edit.id,))):
        below = _descendants(by_id, marked)
        if (last := next((id for id in newest_first if id not in below), None)) is not None:
            return EditedHead(edit, last)
    return EditedHead(edit, None)


def _descendants(by_id: Mapping[str, CheckpointRow], marked: Set[str]) -> Set[str]:
    """Returns the marked ids and all that descend from them; ids need not grow along a lineage (clocks differ)."""
    known: dict[str, bool] = {}
    for start in by_id:
        path: list[str] = []
        id: str | None = start
        while id is not None and id in by_id and id not in known and id not in marked:
            known[id] = False
            path.append(id)
            id = by_id[id].parent
        below = id is not None and (id in marked or known.get(id, False))
        known.update(dict.fromkeys(path, below))
    return marked | {id for id, below in known.items() if below}


def _is_edit(row: CheckpointRow) -> bool:
    return row.source in ("update", "fork")


def _chain(by_id: Mapping[str, CheckpointRow], tip: str) -> list[CheckpointRow]:
    """Returns the parent chain, newest first; a parent that is not stored ends it."""
    chain: list[CheckpointRow] = []
    row = by_id.get(tip)
    while row is not None and len(chain) < len(by_id):
        chain.append(row)
        row = by_id.get(row.parent) if row.parent else None
    return chain
