"""The audit log for people, pipes and programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps, timestamp
from agentctl.records.audit import Access, AuditListing, CaseEffects, Verification
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.machine import document
from agentctl.render.words import age, count

if TYPE_CHECKING:
    from rich.console import RenderableType

_ACCESSES = (
    Column("n", right=True, style="dim"),
    Column("age", right=True),
    Column("user", shrink_to=8),
    Column("use"),
    Column("profile", style="cyan"),
    Column("ticket", shrink_to=8),
    Column("rows", right=True),
    Column("command", shrink_to=16),
    Column("reason", shrink_to=8),
)
_EFFECTS = (
    Column("case", style="cyan", shrink_to=12),
    Column("calls", right=True),
    Column("recorded", right=True),
    Column("stubbed", right=True),
    Column("live", right=True),
    Column("blocked", right=True),
    Column("escaped", right=True),
    Column("other", right=True),
)


def list_human(listing: AuditListing, now: datetime, width: int) -> Iterable[RenderableType]:
    """Yields one line a read or write, then what is not shown."""
    from rich.text import Text

    if not listing.items:
        yield f"no reads or writes {'of that kind ' if listing.n_total == 0 else ''}in {listing.folder}"
    yield from grid(_ACCESSES, [_cells(item, now) for item in listing.items], width)
    if listing.n_total > len(listing.items):
        yield Text(f"{listing.n_total - len(listing.items):,} more: --limit 0", "dim")
    if listing.n_damaged:
        yield Text(damaged(listing), "yellow")


def damaged(listing: AuditListing) -> str:
    """Returns the sentence on lines that cannot be read."""
    return f"{count(listing.n_damaged, 'line')} of the log cannot be read: agentctl audit verify"


def _cells(item: Access, now: datetime) -> tuple[Cell | str, ...]:
    return (
        str(item.n),
        age(item.at, now),
        item.who.user,
        item.use,
        item.profile,
        item.why.ticket,
        Cell("cut off", "yellow") if item.touched is None else f"{sum(item.touched.n_rows.values()):,}",
        shlex.join(item.command),
        item.why.reason,
    )


def list_plain(listing: AuditListing) -> Iterable[Sequence[str | int | None]]:
    """Yields n, at, user, host, use, profile, store, ticket, reason, command, n_threads, rows by kind, ended_at."""
    for item in listing.items:
        touched = item.touched
        yield (
            item.n,
            timestamp(item.at),
            item.who.user,
            item.who.host,
            item.use,
            item.profile,
            item.store,
            item.why.ticket,
            item.why.reason,
            shlex.join(item.command),
            touched.n_threads if touched else None,
            dumps(touched.n_rows) if touched else None,
            timestamp(item.ended_at),
        )


def list_document(listing: AuditListing) -> dict[str, object]:
    """Returns the JSON document `agentctl.audit/1`."""
    return document(
        "audit",
        {
            "store": str(listing.folder),
            "items": [_access(item) for item in listing.items],
            "n_total": listing.n_total,
            "truncated": listing.n_total > len(listing.items),
            "n_damaged": listing.n_damaged,
        },
    )


def _access(item: Access) -> dict[str, object]:
    touched = item.touched
    return {
        "n": item.n,
        "at": timestamp(item.at),
        "user": item.who.user,
        "host": item.who.host,
        "use": item.use,
        "profile": item.profile,
        "store": item.store,
        "ticket": item.why.ticket,
        "reason": item.why.reason,
        "command": list(item.command),
        "threads": list(touched.threads) if touched else None,
        "checkpoints": list(touched.checkpoints) if touched else None,
        "n_threads": touched.n_threads if touched else None,
        "n_checkpoints": touched.n_checkpoints if touched else None,
        "n_rows": dict(touched.n_rows) if touched else None,
        "ended_at": timestamp(item.ended_at),
    }


def verify_human(found: Verification) -> Iterable[RenderableType]:
    """Yields what is wrong with a log, or that nothing is, and the anchor to keep."""
    from rich.text import Text

    for fault in found.faults:
        where = "" if fault.line is None else f"line {fault.line}: "
        yield Text(f"{fault.kind:<10}{where}{fault.text}", "red")
    entries = count(found.n_entries, "entry", "entries")
    if found.faults:
        yield f"{entries} in {found.folder}, {count(len(found.faults), 'fault')}"
        return
    yield Text(f"whole: {entries} in {found.folder}", "green")
    if found.anchor:
        yield f"anchor {found.anchor}"
        yield Text("keep it where the log's owner cannot write; check it with --anchor", "dim")


def verify_plain(found: Verification) -> Iterable[Sequence[str | int | None]]:
    """Yields kind, line, text of each fault; then `anchor`, number of entries, the anchor, where there is none."""
    for fault in found.faults:
        yield fault.kind, fault.line, fault.text
    if not found.faults:
        yield "anchor", found.n_entries, found.anchor


def verify_document(found: Verification) -> dict[str, object]:
    """Returns the JSON document `agentctl.audit.verify/1`."""
    return document(
        "audit.verify",
        {
            "store": str(found.folder),
            "ok": not found.faults,
            "n_entries": found.n_entries,
            "anchor": found.anchor,
            "faults": [{"kind": fault.kind, "line": fault.line, "text": fault.text} for fault in found.faults],
        },
    )


def effects_human(items: Sequence[CaseEffects], folder: str, width: int) -> Iterable[RenderableType]:
    """Yields one line a case and the sum."""
    from rich.text import Text

    if not items:
        yield f"no cases in {folder}"
        return
    total = _total(items)
    yield from grid(_EFFECTS, [_counted(item) for item in (*items, total)], width)
    if total.n_damaged:
        yield Text(f"{count(total.n_damaged, 'line')} of the ledgers cannot be read", "yellow")


def _counted(item: CaseEffects) -> tuple[Cell | str, ...]:
    escaped = Cell(str(item.escaped), "red bold" if item.escaped else "")
    counts = (item.n_calls, item.recorded, item.stubbed, item.live, item.blocked)
    return (item.case or "all cases", *map(str, counts), escaped, str(item.other))


def effects_plain(items: Sequence[CaseEffects]) -> Iterable[Sequence[str | int | None]]:
    """Yields case, n_calls, recorded, stubbed, live, blocked, escaped, other, n_damaged; the sum last, without case."""
    for item in (*items, _total(items)):
        yield tuple(_effects(item).values())


def effects_document(items: Sequence[CaseEffects], folder: str) -> dict[str, object]:
    """Returns the JSON document `agentctl.audit.effects/1`."""
    total = {key: value for key, value in _effects(_total(items)).items() if key != "case"}
    return document("audit.effects", {"store": folder, "items": [_effects(item) for item in items], "total": total})


def _effects(item: CaseEffects) -> dict[str, str | int]:
    return {
        "case": item.case,
        "n_calls": item.n_calls,
        "recorded": item.recorded,
        "stubbed": item.stubbed,
        "live": item.live,
        "blocked": item.blocked,
        "escaped": item.escaped,
        "other": item.other,
        "n_damaged": item.n_damaged,
    }


def _total(items: Sequence[CaseEffects]) -> CaseEffects:
    """Returns the sum of all cases, as a case without a name."""

    def add(name: str) -> int:
        return sum(getattr(item, name) for item in items)

    return CaseEffects(
        "",
        add("n_calls"),
        add("recorded"),
        add("stubbed"),
        add("live"),
        add("blocked"),
        add("escaped"),
        add("other"),
        add("n_damaged"),
    )
