"""What `doctor` found, for people, pipes and programs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agentctl.records.faults import SEVERITIES, Examined, Fault, Severity, Tally, count
from agentctl.render.clean import clean
from agentctl.render.machine import document
from agentctl.render.words import count as words
from agentctl.render.words import short_ids
from agentctl.revisions.namespaces import node_path

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_STYLES: Final[dict[Severity, str]] = {"fault": "red", "warning": "yellow", "info": "cyan"}
_LEFT: Final = 9
"""Columns of the severity, under which causes and commands are indented."""
_WIDEST: Final = 120
_SHORT: Final = 8
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Summary(NamedTuple):
    """How much was looked at.

    `n_total` counts the threads of the store, or is 1 for a thread; `shown` is the least severity that was shown;
    `notes` say what could not be looked at.
    """

    tally: Tally
    n_total: int
    shown: Severity
    notes: tuple[str, ...] = ()


def down_to(examined: Examined, severity: Severity) -> Examined:
    """Returns a thread with the findings that are at least so bad."""
    wanted = SEVERITIES[: SEVERITIES.index(severity) + 1]
    return replace(examined, faults=tuple(fault for fault in examined.faults if fault.severity in wanted))


def human(
    examined: Iterable[Examined], summary: Callable[[], Summary], pasteable: Callable[[str], str], width: int
) -> Iterable[RenderableType]:
    """Yields each thread that something was found in, then what was looked at in all."""
    for each in examined:
        if each.faults:
            yield from _thread(each, pasteable, width)
            yield ""
    yield from _totals(summary())


def _thread(examined: Examined, pasteable: Callable[[str], str], width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    name = "tables" if examined.thread is None else clean(examined.thread)
    rows = f"  {words(examined.n_checkpoints, 'checkpoint')}" if examined.thread is not None else ""
    head = Text(f"{name}{rows}  {_counts(examined.faults)}", no_wrap=True, overflow="ignore", end="")
    head.stylize("bold", 0, len(name))
    yield head
    short = short_ids(examined.ids)
    for fault in examined.faults:
        yield _title(fault, short)
        room = max(min(width, _WIDEST) - _LEFT, 24)
        for line in textwrap.wrap(_shortened(clean(fault.cause), short), room, break_on_hyphens=False):
            yield " " * _LEFT + line
        yield " " * _LEFT + _shortened(pasteable(fault.command), short)


def _shortened(text: str, short: Mapping[str, str]) -> str:
    """Returns text with the ids of the thread in their short form, which names them as well."""
    return _ID.sub(lambda match: short.get(match[0], match[0]), text)


def _title(fault: Fault, short: Mapping[str, str]) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ignore", end="")
    text.append(f"{fault.severity:<{_LEFT - 2}}  ", style=_STYLES[fault.severity])
    text.append(fault.code)
    if fault.checkpoint:
        text.append(f"  {clean(short.get(fault.checkpoint, fault.checkpoint[-_SHORT:]))}")
    if fault.ns:
        text.append(f"  in {clean(node_path(fault.ns))}", style="dim")
    if fault.n_found > 1:
        text.append(f"  x{fault.n_found:,}", style="dim")
    return text


def _totals(summary: Summary) -> Iterator[str]:
    tally = summary.tally
    of = f" of {summary.n_total:,}" if tally.n_threads < summary.n_total else ""
    looked = f"{tally.n_threads:,}{of} {'thread' if tally.n_threads == 1 and not of else 'threads'} looked at"
    yield f"{looked}: {_told(tally)}"
    if summary.shown != "info" and tally.n_total:
        yield f"down to {summary.shown} shown; all: --level info"
    yield from beside(summary)


def beside(summary: Summary) -> Iterator[str]:
    """Yields what the rows of a pipe leave out and somebody should know."""
    if summary.tally.n_threads < summary.n_total:
        yield f"{summary.tally.n_threads:,} of {words(summary.n_total, 'thread')} looked at; all: --limit 0"
    yield from (f"note: {note}" for note in summary.notes)


def _told(tally: Tally) -> str:
    if not tally.n_total:
        return "nothing found"
    return ", ".join(
        words(n, noun)
        for n, noun in ((tally.n_faults, "fault"), (tally.n_warnings, "warning"), (tally.n_infos, "info"))
        if n
    )


def _counts(faults: Sequence[Fault]) -> str:
    return ", ".join(words(n, severity) for severity in SEVERITIES if (n := count(faults, severity)))


def plain(
    examined: Iterable[Examined], pasteable: Callable[[str], str]
) -> Iterator[Sequence[str | int | float | None]]:
    """Yields severity, code, thread, ns, checkpoint, n_found, cause, command; a thread's worst first."""
    for each in examined:
        for fault in each.faults:
            yield (
                fault.severity,
                fault.code,
                fault.thread,
                fault.ns,
                fault.checkpoint,
                fault.n_found,
                fault.cause,
                pasteable(fault.command),
            )


def as_document(
    store: str, examined: Iterable[Examined], summary: Callable[[], Summary], pasteable: Callable[[str], str]
) -> dict[str, object]:
    """Returns the JSON document `agentctl.doctor/1`."""
    items = [_item(fault, pasteable) for each in examined for fault in each.faults]
    end = summary()
    return document(
        "doctor",
        {
            "store": store,
            "items": items,
            "n_total": end.tally.n_total,
            "truncated": len(items) < end.tally.n_total or end.tally.n_threads < end.n_total,
            "n_threads": end.tally.n_threads,
            "n_faults": end.tally.n_faults,
            "n_warnings": end.tally.n_warnings,
            "n_infos": end.tally.n_infos,
            "notes": list(end.notes),
        },
    )


def _item(fault: Fault, pasteable: Callable[[str], str]) -> dict[str, object]:
    return {
        "code": fault.code,
        "severity": fault.severity,
        "thread": fault.thread,
        "ns": fault.ns,
        "checkpoint": fault.checkpoint,
        "cause": fault.cause,
        "command": pasteable(fault.command),
        "n_found": fault.n_found,
    }
