"""A thread's history for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import timestamp
from agentctl.records.threads import History, HistoryRow
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.gutter import gutter
from agentctl.render.machine import document
from agentctl.render.words import age, count, names, short_ids

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = (
    Column(""),
    Column("id", style="cyan"),
    Column("ns", shrink_to=8),
    Column("step", right=True),
    Column("when", right=True, style="dim"),
    Column("wrote", shrink_to=10),
    Column("next", shrink_to=8),
    Column("what happened", shrink_to=24),
)


def human(history: History, now: datetime, width: int) -> Iterable[RenderableType]:
    """Yields the header line, the notes and one flat line a checkpoint, branches in the gutter."""
    ids = short_ids({*history.all_ids, *(row.id for row in history.items)})
    branches = f", {count(history.n_branches, 'branch', 'branches')}" if history.n_branches > 1 else ""
    head = f"head {ids.get(history.head, history.head)}: {history.status}"
    yield (f"{history.thread}  {history.store}  {count(history.n_total, 'checkpoint')}{branches}  {head}")
    for note in history.notes:
        yield f"note: {note}"
    lanes = gutter(
        (f"{row.ns}\0{row.id}", None if row.parent is None else f"{row.ns}\0{row.parent}") for row in history.items
    )
    yield from grid(
        _COLUMNS,
        [
            (
                Cell(lane, "green" if row.branch == 0 else "yellow"),
                ids[row.id],
                row.ns,
                "?" if row.step is None else str(row.step),
                age(row.at, now),
                wrote(row),
                names(row.next),
                Cell(row.summary, "red" if row.error else "yellow" if row.interrupts else ""),
            )
            for lane, row in zip(lanes, history.items, strict=True)
        ],
        width,
    )
    if history.truncated:
        yield f"{len(history.items)} of {count(history.n_total, 'checkpoint')} shown; all: --limit 0"


def wrote(row: HistoryRow) -> str:
    """Returns who made a checkpoint: its nodes, `input`, `fork`, or `update as NODE`."""
    if row.source == "update":
        return f"update as {row.as_node or '?'}"
    if row.source in ("input", "fork") and not row.wrote:
        return row.source
    return names(row.wrote)


def plain(rows: Iterable[HistoryRow]) -> Iterable[Sequence[str | int | None]]:
    """Yields id, parent, ns, step, source, at, wrote, next, branch, summary; lists are comma-separated."""
    for row in rows:
        yield (
            row.id,
            row.parent,
            row.ns,
            row.step,
            row.source,
            timestamp(row.at),
            ",".join(row.wrote),
            ",".join(row.next),
            row.branch,
            row.summary,
        )


def as_document(history: History) -> dict[str, object]:
    """Returns the JSON document `agentctl.history/1`."""
    return document(
        "history",
        {
            "store": history.store,
            "thread": history.thread,
            "head": history.head,
            "status": history.status,
            "items": [_item(row) for row in history.items],
            "n_total": history.n_total,
            "n_branches": history.n_branches,
            "truncated": history.truncated,
            "notes": list(history.notes),
        },
    )


def _item(row: HistoryRow) -> dict[str, object]:
    return {
        "id": row.id,
        "parent": row.parent,
        "ns": row.ns,
        "step": row.step,
        "source": row.source,
        "at": timestamp(row.at),
        "wrote": list(row.wrote),
        "next": list(row.next),
        "channels": list(row.channels),
        "interrupts": [{"id": asked.id, "value": asked.value, "node": asked.node} for asked in row.interrupts],
        "error": row.error,
        "branch": row.branch,
        "is_head": row.is_head,
        "summary": row.summary,
        "as_node": row.as_node,
    }
