"""A tour as people read it while it goes on, and its table at the end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentctl.records.tour import Incident, TourItem, TourReport
from agentctl.render.clean import clean, cut
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.machine import document
from agentctl.render.run_documents import effects_object
from agentctl.render.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = (
    Column("workflow", shrink_to=8),
    Column("incident"),
    Column("replays"),
    Column("fork"),
    Column("verdict", style="bold"),
    Column("expected"),
    Column("escaped", right=True),
    Column(""),
)


def opening(project: Path, n_incidents: int, store: str) -> RenderableType:
    """Returns the first line: what is about to happen, and where."""
    what = f"running {count(n_incidents, 'incident')} among ordinary threads for real, against a back office"
    return f"tour of {project}: {what}, into {store} ..."


def seeded(n_threads: int, store: str, warnings: Sequence[str]) -> Iterable[RenderableType]:
    """Yields what production is now; from here on it is only looked at."""
    yield f"{store} holds {count(n_threads, 'thread')}; from here on it is only looked at"
    yield from (f"warning: {warning}" for warning in warnings)
    yield ""


def incident_head(incident: Incident, told: str, width: int) -> Iterable[RenderableType]:
    """Yields an incident's title, its story and what the customer was told."""
    from rich.text import Text

    yield Text(f"{incident.name}: {clean(incident.title)}", "bold")
    yield from textwrap.wrap(clean(incident.story), min(width, 100))
    yield f'told     "{cut(told, max(width, 40) - 11)}"'
    yield ""


def human(report: TourReport, width: int) -> Iterable[RenderableType]:
    """Yields the table, what stayed as it was, and what to type next."""
    from rich.text import Text

    workflows = {item.workflow: None for item in report.items}
    several = len(workflows) > 1
    yield Text(f"{', '.join(workflows)}: {count(len(report.items), 'incident')}", "bold")
    yield from grid(_COLUMNS, [_cells(item, several) for item in report.items], width)
    yield ""
    yield from closing(report)


def closing(report: TourReport) -> Iterable[RenderableType]:
    """Yields what was measured over the whole walk, and what to type next."""
    from rich.text import Text

    yield Text(*_measured("back office", report.backoffice_unchanged, "not called since seeding", "called meanwhile"))
    moved = f"changed: {', '.join(report.changed)}"
    yield Text(*_measured(f"production ({report.store})", report.store_unchanged, "unchanged", moved))
    effects = report.side_effects
    calls = f"{effects.recorded} recorded, {effects.stubbed} stubbed, {effects.escaped} escaped"
    yield Text(*_measured("tool calls", not effects.escaped, calls, calls))
    yield ""
    yield Text("next", "bold")
    yield from (f"  {command}" for command in report.next)


def plain(report: TourReport) -> Iterable[Sequence[str | int | None]]:
    """Yields workflow, incident, store, n, n_failed, fork_n, fork_n_failed, verdict, expected, escaped, problem."""
    for item in report.items:
        tally = (item.n, item.n_failed, item.fork_n, item.fork_n_failed)
        yield item.workflow, item.incident, item.store, *tally, item.verdict, item.expected, item.escaped, item.problem


def as_document(report: TourReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.tour/1`."""
    return document(
        "tour",
        {
            "store": report.store,
            "items": [_object(item) for item in report.items],
            "n_total": len(report.items),
            "truncated": False,
            "side_effects": effects_object(report.side_effects),
            "backoffice_unchanged": report.backoffice_unchanged,
            "store_unchanged": report.store_unchanged,
            "changed": list(report.changed),
            "commands": list(report.next),
            "warnings": list(report.warnings),
        },
    )


def _cells(item: TourItem, several: bool) -> tuple[Cell | str, ...]:
    fork = "-" if item.fork_n_failed is None else f"{item.fork_n_failed} of {item.fork_n} fail"
    return (
        item.workflow if several else "",
        item.incident,
        f"{item.n_failed} of {item.n} fail",
        fork,
        item.verdict or "-",
        item.expected,
        Cell(str(item.escaped), "red bold" if item.escaped else ""),
        Cell(f"! {item.problem}" if item.problem else "", "red bold"),
    )


def _object(item: TourItem) -> dict[str, object]:
    return {
        "workflow": item.workflow,
        "incident": item.incident,
        "store": item.store,
        "n": item.n,
        "n_failed": item.n_failed,
        "fork_n": item.fork_n,
        "fork_n_failed": item.fork_n_failed,
        "verdict": item.verdict,
        "expected": item.expected,
        "escaped": item.escaped,
        "problem": item.problem,
    }


def _measured(what: str, good: bool, well: str, ill: str) -> tuple[str, str]:
    return (f"{what}: {well}", "") if good else (f"{what}: {ill}", "red bold")
