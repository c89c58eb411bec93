"""A thread's history for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import timestamp
from agentctl.records.threads import History, HistoryRow, Listing
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.gutter import gutter
from agentctl.render.machine import document
from agentctl.render.words import age, count, names, short_ids

if TYPE_CHECKING:
    from rich.console import RenderableType

_NS_DIGITS = 8
"""Of a task's id, which a namespace ends in; `--ns` takes a beginning."""


def _columns(with_ns: bool) -> tuple[Column, ...]:
    """Returns the columns; beside a namespace the others give way further, so that lines fit into 80 columns."""
    wrote, next_, happened = (8, 6, 16) if with_ns else (10, 8, 24)
    return (
        Column(""),
        Column("id", style="cyan"),
        Column("ns", shrink_to=14),
        Column("step", right=True),
        Column("when", right=True, style="dim"),
        Column("wrote", shrink_to=wrote),
        Column("next", shrink_to=next_),
        Column("what happened", shrink_to=happened),
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
        ((_key(row.ns, row.id), None if row.parent is None else _key(row.ns, row.parent)) for row in history.items),
        next((_key(row.ns, row.id) for row in history.items if row.is_head), None),
    )
    yield from grid(
        _columns(any(row.ns for row in history.items)),
        [
            (
                Cell(lane, "green" if row.branch == 0 else "yellow"),
                ids[row.id],
                _short_ns(row.ns),
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


def _key(ns: str, id: str) -> str:
    return f"{ns}\0{id}"


def _short_ns(ns: str) -> str:
    """Returns a namespace with as much of its task's id as tells it from others: `tools:6da29bda`."""
    name, colon, id = ns.rpartition(":")
    return f"{name}{colon}{id[:_NS_DIGITS]}" if colon else ns


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


def as_document(history: Listing) -> dict[str, object]:
    """Returns the JSON document `agentctl.history/1`, whose rows and notes are read while it is written."""
    return document(
        "history",
        {
            "store": history.store,
            "thread": history.thread,
            "head": history.head,
            "status": history.status,
            "items": map(_item, history.rows),
            "n_total": history.n_total,
            "n_branches": history.n_branches,
            "truncated": history.truncated,
            "notes": _notes(history),
        },
    )


def _notes(history: Listing) -> Iterator[str]:
    yield from history.notes()


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
