"""What `prune` would take away, or took away, for people, pipes and programs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from agentctl.codec.jsontext import timestamp
from agentctl.records.prunes import Compaction, LostTurn, PruneTally, Removed, ThreadPrune
from agentctl.render.clean import clean
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.machine import document
from agentctl.render.words import age, count, size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_INDENT: Final = "  "
_WIDEST: Final = 120
_TURNS_OF_ONE: Final = 20
_TURNS_OF_MANY: Final = 3
"""So many turns of a thread are told: of the only one, and of each of several."""
_TURN_COLUMNS: Final = (
    Column("", right=True),
    Column("", shrink_to=12),
    Column("", right=True, style="dim"),
    Column("", style="dim"),
)


def human(
    threads: Iterable[ThreadPrune],
    tally: PruneTally,
    *,
    applied: bool,
    alone: bool,
    now: datetime,
    notes: Sequence[str],
    next_command: str,
    width: int,
) -> Iterator[RenderableType]:
    """Yields each thread as it is looked at, then what goes in all.

    Args:
        threads: Those that something is told of.
        tally: Counts them while they are asked for.
        applied: Whether it was carried out.
        alone: Whether one thread was named.
        now: The time that ages are counted to.
        notes: What to know before it is carried out.
        next_command: What carries it out.
        width: Columns of the terminal.
    """
    told = _TURNS_OF_ONE if alone else _TURNS_OF_MANY
    for thread in threads:
        yield from _thread(thread, applied, told, now, width)
    yield from totals(tally, applied=applied)
    for note in notes:
        yield from _wrapped(f"note: {note}", width, "")
    if not applied and tally.n_pruned:
        yield f"next: {next_command}"


def totals(tally: PruneTally, *, applied: bool) -> Iterator[str]:
    """Yields what was looked at and what goes in all."""
    parts = [
        f"{n:,} {words}"
        for n, words in (
            (tally.n_pruned, "pruned" if applied else "to prune"),
            (tally.n_unchanged, "with nothing to prune"),
            (tally.n_passed, "too young"),
            (tally.n_skipped, "skipped"),
            (tally.n_overtaken, "written to meanwhile"),
            (tally.n_faulty, "with faults"),
        )
        if n
    ]
    yield f"{count(tally.n_threads, 'thread')} looked at" + (f": {', '.join(parts)}" if parts else "")
    if tally.goes.n_rows:
        yield f"{'gone' if applied else 'would go'}: {_removed(tally.goes)}"
    if tally.compaction is not None:
        yield _compaction(tally.compaction)


def _thread(thread: ThreadPrune, applied: bool, n_told: int, now: datetime, width: int) -> Iterator[RenderableType]:
    yield _title(thread, applied, now)
    if thread.reason:
        yield from _wrapped(thread.reason, width, _INDENT)
    if thread.action == "thin" and thread.lost:
        n_turns = count(len(thread.lost), "turn")
        yield f"{_INDENT}{'no longer forkable' if applied else 'stops being forkable'}: {n_turns}"
        yield from _turns(thread.lost, n_told, width)
    if thread.n_lost_beside:
        yield f"{_INDENT}and {count(thread.n_lost_beside, 'checkpoint')} on branches beside"
    for text in (*(f"note: {note}" for note in thread.notes), *(f"fault: {fault}" for fault in thread.faults)):
        yield from _wrapped(text, width, _INDENT)


def _title(thread: ThreadPrune, applied: bool, now: datetime) -> Text:
    from rich.text import Text

    name = clean(thread.thread)
    text = Text(name, no_wrap=True, overflow="ignore", end="")
    text.stylize("bold", 0, len(name))
    if thread.action == "skip":
        text.append("  skipped", style="yellow")
    elif thread.outcome == "overtaken":
        text.append("  written to meanwhile", style="yellow")
    elif not thread.goes.n_rows:
        text.append("  nothing to prune", style="dim")
    else:
        verb = ("deleted" if applied else "delete") if thread.action == "delete" else ("lost" if applied else "loses")
        text.append(f"  {verb} ", style="red" if thread.action == "delete" else "")
        text.append(_removed(thread.goes, of=thread.n_checkpoints if thread.action == "thin" else None))
    text.append(f"  {age(thread.updated_at, now)}", style="dim")
    if thread.status:
        text.append(f"  {thread.status}", style="dim")
    return text


def _turns(turns: Sequence[LostTurn], n_told: int, width: int) -> Iterator[Text | str]:
    rows = [
        (
            f"{_INDENT}{_INDENT}{turn.number}",
            " ".join(turn.text.split()) or "(no message)",
            Cell(f"{turn.n_lost:,} of {turn.n_checkpoints:,}"),
            "its end stays" if turn.end_stays else "",
        )
        for turn in turns[:n_told]
    ]
    yield from grid(_TURN_COLUMNS, rows, min(width, _WIDEST), header=False)
    if len(turns) > n_told:
        yield f"{_INDENT}{_INDENT}and {len(turns) - n_told:,} more, to {turns[-1].number}; all: --json"


def _removed(removed: Removed, *, of: int | None = None) -> str:
    checkpoints = count(removed.n_checkpoints, "checkpoint")
    if of is not None:
        checkpoints = f"{removed.n_checkpoints:,} of {count(of, 'checkpoint')}"
    parts = [checkpoints, count(removed.n_writes, "write")]
    if removed.n_blobs:
        parts.append(count(removed.n_blobs, "blob"))
    return ", ".join([*parts, size(removed.n_bytes)])


def _compaction(compaction: Compaction) -> str:
    before, after = size(compaction.before_bytes), size(compaction.after_bytes)
    if compaction.problem:
        return f"vacuum: {compaction.problem}; the file takes {after}, before {before}"
    return f"vacuum: the file takes {after}, before {before}"


def _wrapped(text: str, width: int, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        clean(text),
        max(min(width, _WIDEST), 24),
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def plain(threads: Iterable[ThreadPrune]) -> Iterator[Sequence[str | int | float | None]]:
    """Yields a line a thread, then one for each turn of it that cannot be forked any more.

    `thread`, thread, action, outcome, status, updated_at, n_checkpoints, then what goes: n_checkpoints, n_writes,
    n_blobs, n_bytes, n_lost_beside; reason, notes and faults. `turn`, thread, number, text, n_checkpoints, n_lost,
    last, end_stays.
    """
    for thread in threads:
        goes = thread.goes
        yield (
            "thread",
            thread.thread,
            thread.action,
            thread.outcome,
            thread.status,
            timestamp(thread.updated_at),
            thread.n_checkpoints,
            goes.n_checkpoints,
            goes.n_writes,
            goes.n_blobs,
            goes.n_bytes,
            thread.n_lost_beside,
            thread.reason,
            "; ".join(thread.notes),
            "; ".join(thread.faults),
        )
        for turn in thread.lost:
            yield (
                "turn",
                thread.thread,
                turn.number,
                turn.text,
                turn.n_checkpoints,
                turn.n_lost,
                turn.last,
                str(turn.end_stays).lower(),
            )


def as_document(
    store: str,
    thread: str | None,
    mode: str,
    threads: Iterator[ThreadPrune],
    tally: PruneTally,
    *,
    applied: bool,
    next_command: Callable[[], str],
) -> dict[str, object]:
    """Returns the JSON document `agentctl.prune/1`; `tally` is complete once the items before it are written."""
    return document(
        "prune",
        {
            "store": store,
            "thread": thread,
            "mode": mode,
            "applied": applied,
            "items": threads,
            "total": tally,
            "command": "" if applied else next_command(),
        },
    )
