"""Cases for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import timestamp
from agentctl.records.cases import CaseSummary, CaseView, DebugThread
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.machine import document
from agentctl.render.words import age, count

if TYPE_CHECKING:
    from rich.console import RenderableType

_CASES = (
    Column("case", style="cyan"),
    Column("state"),
    Column("opened", right=True, style="dim"),
    Column("runs", right=True),
    Column("calls", right=True),
    Column("escaped", right=True),
    Column("thread", shrink_to=12),
    Column("reason or conclusion", shrink_to=16),
)


def list_human(items: Sequence[CaseSummary], folder: str, now: datetime, width: int) -> Iterable[RenderableType]:
    """Yields one line a case."""
    if not items:
        yield f"no cases in {folder}"
        return
    yield from grid(_CASES, [_cells(item, now) for item in items], width)


def _cells(item: CaseSummary, now: datetime) -> tuple[Cell | str, ...]:
    case = item.case
    return (
        case.name,
        Cell(case.state, "green" if case.state == "open" else "dim"),
        age(case.opened_at, now),
        str(item.n_runs),
        str(item.n_calls),
        Cell(str(item.n_escaped), "red bold" if item.n_escaped else ""),
        case.source.target if case.source else "",
        case.conclusion or case.reason,
    )


def list_plain(items: Sequence[CaseSummary]) -> Iterable[Sequence[str | int | None]]:
    """Yields name, state, opened_at, n_runs, n_calls, n_escaped, n_threads, folder."""
    for item in items:
        case = item.case
        opened_at = timestamp(case.opened_at)
        yield (
            case.name,
            case.state,
            opened_at,
            item.n_runs,
            item.n_calls,
            item.n_escaped,
            item.n_threads,
            str(case.folder),
        )


def list_document(items: Sequence[CaseSummary], folder: str) -> dict[str, object]:
    """Returns the JSON document `agentctl.cases/1`."""
    listed = [_summary(item) for item in items]
    return document("cases", {"store": folder, "items": listed, "n_total": len(listed), "truncated": False})


def view_human(
    view: CaseView, now: datetime, width: int, *, dry_run: bool = False, kept: Collection[DebugThread] = ()
) -> Iterable[RenderableType]:
    """Yields what a case holds, its debug threads and its reports; with `dry_run`, which threads closing deletes.

    `kept` are those that closing leaves.
    """
    from rich.text import Text

    case = view.summary.case
    yield Text(f"{case.name}  {case.state}  opened {age(case.opened_at, now)} ago", "bold")
    yield f"folder   {case.folder}"
    if case.source:
        yield f"thread   {case.source.target}"
    if case.reason:
        yield f"reason   {case.reason}"
    if case.conclusion:
        yield f"found    {case.conclusion}"
    escaped = view.summary.n_escaped
    yield Text(
        f"ledger   {count(view.summary.n_runs, 'run')}, {count(view.summary.n_calls, 'call')}, {escaped} escaped",
        "red bold" if escaped else "",
    )
    if view.n_damaged:
        yield Text(f"         {count(view.n_damaged, 'line')} of the ledger cannot be read", "yellow")
    for thread in view.threads:
        gone = "  deleted" if thread.deleted_at else ""
        if not gone and (dry_run or kept):
            gone = "  protected, stays" if thread in kept else "  would be deleted" if dry_run else ""
        place = f"{thread.profile}::{thread.thread}" if thread.profile else thread.thread
        yield Text(f"debug    {place}{gone}", "dim" if thread.deleted_at else "")
    for report in view.reports:
        yield f"report   {report}"


def view_plain(view: CaseView) -> Iterable[Sequence[str | int | None]]:
    """Yields kind and value: case, folder, state, runs, calls, escaped, one row a debug thread and a report."""
    summary = view.summary
    yield "case", summary.case.name
    yield "folder", str(summary.case.folder)
    yield "state", summary.case.state
    yield "runs", summary.n_runs
    yield "calls", summary.n_calls
    yield "escaped", summary.n_escaped
    for thread in view.threads:
        yield "thread", thread.thread, thread.store, timestamp(thread.deleted_at)
    for report in view.reports:
        yield "report", str(report)


def view_document(view: CaseView, *, dry_run: bool = False) -> dict[str, object]:
    """Returns the JSON document `agentctl.case/1`."""
    threads = [
        {
            "store": thread.store,
            "thread": thread.thread,
            "profile": thread.profile,
            "kind": thread.kind,
            "at": timestamp(thread.at),
            "deleted_at": timestamp(thread.deleted_at),
        }
        for thread in view.threads
    ]
    return document(
        "case",
        {
            **_summary(view.summary),
            "threads": threads,
            "reports": [str(path) for path in view.reports],
            "n_damaged": view.n_damaged,
            "dry_run": dry_run,
        },
    )


def _summary(item: CaseSummary) -> dict[str, object]:
    case = item.case
    return {
        "case": case.name,
        "folder": str(case.folder),
        "state": case.state,
        "opened_at": timestamp(case.opened_at),
        "closed_at": timestamp(case.closed_at),
        "reason": case.reason,
        "conclusion": case.conclusion,
        "source": case.source.target if case.source else None,
        "n_runs": item.n_runs,
        "n_calls": item.n_calls,
        "n_escaped": item.n_escaped,
        "n_threads": item.n_threads,
    }
