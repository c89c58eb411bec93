"""What a store takes, for people: figures, tables, and a bar for each item."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from agentctl.records.sizes import Level, Projection, SizeItem, SizeReport, TableSize
from agentctl.render.grid import GAP, Column, grid
from agentctl.render.words import count
from agentctl.render.words import size as words

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_BAR_WIDTHS: Final = (4, 40)
"""Least and most; in between the bar takes what the columns leave."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_ROOT: Final = "(root)"


class _Shown(NamedTuple):
    """One column of one level: its title and place, and what of an item it shows.

    `gives_way`: it is left out before others are cut, the highest first; 0 stays.
    """

    column: Column
    text: Callable[[SizeItem], str]
    gives_way: int = 0


def human(
    report: SizeReport, target: Callable[[str], str], pasteable: Callable[[str], str], width: int
) -> Iterable[RenderableType]:
    """Yields what there is, the tables, one line an item with a bar, and the projection.

    Args:
        report: What was measured.
        target: Writes a thread of the store as a target.
        pasteable: Adds to a command the flags that this one was given.
        width: The terminal's.
    """
    yield from _head(report)
    if report.database is not None and report.by == "thread":
        yield ""
        yield from _tables(report.database.tables, width)
    yield ""
    yield from _items(report, width)
    if report.truncated:
        yield f"{len(report.items):,} of {count(report.n_total, report.by)} shown; all: --top 0"
    for note in report.notes:
        yield f"note: {note}"
    if report.projection is not None:
        yield ""
        yield from _projected(report.projection, report)
    where = report.thread if report.by == "namespace" else report.items[0].thread if report.items else None
    if report.by in ("thread", "namespace") and where is not None:
        yield pasteable(f"next: agentctl size {shlex.quote(target(where))} --by channel")


def _head(report: SizeReport) -> Iterator[str]:
    total, database = report.total, report.database
    of = f"{report.thread}  {report.store}" if report.thread is not None else report.store
    threads = "" if report.thread is not None else f"{count(report.n_threads, 'thread')}, "
    n_namespaces = total.n_namespaces or 0
    namespaces = f" in {count(n_namespaces, 'namespace')}" if n_namespaces > max(report.n_threads, 1) else ""
    yield (
        f"{of}  {threads}{count(total.n_checkpoints or 0, 'checkpoint')}{namespaces},"
        f" {count(total.n_writes or 0, 'pending write')}"
    )
    yield (
        f"stored   {words(total.stored_bytes)}: states {words(total.state_bytes)}, pending writes"
        f" {words(total.write_bytes)}, metadata {words(total.metadata_bytes)}"
    )
    if total.payload_bytes is None:
        return
    times = f"; stored is {_times(total.amplification)} that" if total.amplification else ""
    yield f"payload  {words(total.payload_bytes or 0)} in the newest states{times}"
    if database is not None:
        free = f", {words(database.free_bytes)} in free pages" if database.free_bytes else ""
        wal = f", {words(database.wal_bytes)} in the -wal" if database.wal_bytes else ""
        indexes = "" if database.index_bytes is None else f": {words(database.index_bytes)} in indexes"
        yield f"on disk  {words(database.disk_bytes)}{indexes}{free}{wal}"


def _tables(tables: Sequence[TableSize], width: int) -> Sequence[Text]:
    columns = (
        Column("table"),
        Column("rows", right=True),
        Column("values", right=True),
        Column("on disk", right=True),
        Column("indexes", right=True),
        Column("dead rows", right=True, style="dim"),
    )
    return grid(
        columns,
        [
            (
                table.name,
                _number(table.n_rows),
                _size(table.value_bytes),
                "" if table.disk_bytes is None else words(table.disk_bytes),
                _size(table.index_bytes),
                f"{table.n_dead_rows:,}" if table.n_dead_rows else "",
            )
            for table in tables
        ],
        width,
    )


def _items(report: SizeReport, width: int) -> Sequence[Text | str]:
    if not report.items:
        return [f"no {report.by} is stored"]
    room = width - GAP - _BAR_WIDTHS[0]
    known = [each for each in _SHOWN[report.by] if each is not _THREAD or report.thread is None]
    shown = _fitting([*known, _share(report.total.stored_bytes)], report.items, room)
    rows = [[each.text(item) for each in shown] for item in report.items]
    lines = grid([each.column for each in shown], rows, room)
    longest = max(line.cell_len for line in lines)
    bar_width = min(max(width - longest - GAP, _BAR_WIDTHS[0]), _BAR_WIDTHS[1])
    for line, item in zip(lines[1:], report.items, strict=True):
        line.pad_right(longest - line.cell_len + GAP)
        line.append(bar(item.stored_bytes, report.items[0].stored_bytes, bar_width), style="blue")
    return lines


def _fitting(shown: Sequence[_Shown], items: Sequence[SizeItem], width: int) -> Sequence[_Shown]:
    """Returns the columns that fit, as far as leaving out those that give way can make them."""
    texts = {id(each): [each.text(item) for item in items] for each in shown}
    longest = {key: max(map(len, found)) for key, found in texts.items()}
    widths = {id(each): max(longest[id(each)], len(each.column.title)) + GAP for each in shown if longest[id(each)]}
    kept = list(shown)
    for each in sorted((each for each in shown if each.gives_way), key=lambda each: -each.gives_way):
        if sum(widths.get(id(one), 0) for one in kept) - GAP <= width:
            break
        kept.remove(each)
    return kept


def bar(part: int, whole: int, width: int) -> str:
    """Returns a bar of at most `width` columns, to an eighth of a column; anything but nothing shows."""
    eighths = round(8 * width * part / whole) if whole else 0
    eighths = max(eighths, 1) if part else 0
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _projected(projection: Projection, report: SizeReport) -> Iterator[str]:
    assumed, mean = projection.assumed, words(round(projection.bytes_per_thread))
    kept = f"{projection.n_threads_kept:,.0f} threads"
    n_threads = report.n_threads
    yield f"projection, if threads stay as large as {'this one is' if n_threads == 1 else f'these {n_threads:,} are'}"
    spread = f" (median {words(round(projection.median_bytes))}, largest {words(projection.largest_bytes)})"
    yield (
        f"  a thread   {mean} = {words(report.total.stored_bytes)} / {count(n_threads, 'thread')}"
        f"{spread if n_threads > 1 else ''}"
    )
    yield f"  kept       {kept} = {assumed.threads_per_day:,g} a day x {assumed.retention_days:,g} days"
    yield f"  stored     {words(round(projection.value_bytes))} = {kept} x {mean}"
    if projection.disk_bytes is not None and projection.disk_ratio is not None:
        yield (
            f"  on disk    {words(round(projection.disk_bytes))} = {words(round(projection.value_bytes))}"
            f" x {projection.disk_ratio:.2f}, which is what a stored byte takes here, indexes included"
        )


def beside(report: SizeReport) -> Iterator[str]:
    """Yields what the rows of a pipe leave out and somebody should know: that there are more, and the notes."""
    if report.truncated:
        yield f"{len(report.items):,} of {count(report.n_total, report.by)} shown; all: --top 0"
    yield from (f"note: {note}" for note in report.notes)


def _size(n_bytes: int | None) -> str:
    return "?" if n_bytes is None else words(n_bytes)


def _number(n: int | None) -> str:
    return "?" if n is None else f"{n:,}"


def _some(n: int | None) -> str:
    return f"{n:,}" if n else ""


def _times(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def _unchanged(item: SizeItem) -> str:
    return "" if item.unchanged is None else f"{100 * item.unchanged:.0f} %"


def _channel(item: SizeItem) -> str:
    return item.channel if item.channel is not None else f"({item.name})"


def _share(whole: int) -> _Shown:
    """Returns the column of what part an item is of all that is stored."""
    return _Shown(
        Column("share", right=True),
        lambda item: f"{100 * item.stored_bytes / whole:.0f} %" if whole else "",
        gives_way=2,
    )


_THREAD = _Shown(Column("thread", shrink_to=12, style="cyan"), lambda item: item.thread or "")
_NS = _Shown(Column("namespace", shrink_to=10), lambda item: item.ns or "")
_CHECKPOINTS = _Shown(Column("checkpoints", right=True), lambda item: _some(item.n_checkpoints))
_WRITES = _Shown(
    Column("writes", right=True), lambda item: words(item.write_bytes) if item.write_bytes else "", gives_way=1
)
_PAYLOAD = _Shown(
    Column("newest", right=True), lambda item: "" if item.payload_bytes is None else words(item.payload_bytes)
)
_ONCE = _Shown(Column("once", right=True), lambda item: words(item.payload_bytes or 0))
_STORED = _Shown(Column("stored", right=True), lambda item: words(item.stored_bytes))
_TIMES = _Shown(Column("times", right=True), lambda item: _times(item.amplification))
_COPIES = _Shown(Column("copies", right=True), lambda item: _some(item.n_values))

_SHOWN: Final[dict[Level, tuple[_Shown, ...]]] = {
    "thread": (
        _Shown(Column("thread", style="cyan"), lambda item: item.thread or ""),
        _CHECKPOINTS,
        _WRITES,
        _PAYLOAD,
        _STORED,
        _TIMES,
    ),
    "namespace": (
        _Shown(Column("namespace", shrink_to=12, style="cyan"), lambda item: item.ns or _ROOT),
        _Shown(Column("visits", right=True), lambda item: _some(item.n_namespaces)),
        _CHECKPOINTS,
        _WRITES,
        _PAYLOAD,
        _STORED,
        _TIMES,
    ),
    "channel": (
        _NS,
        _Shown(Column("channel", shrink_to=12, style="cyan"), _channel),
        _Shown(Column("values", right=True), lambda item: _some(item.n_values)),
        _Shown(Column("unchanged", right=True), _unchanged),
        _WRITES,
        _PAYLOAD,
        _STORED,
        _TIMES,
    ),
    "message": (
        _THREAD,
        _NS,
        _Shown(Column("channel", shrink_to=8), lambda item: item.channel or ""),
        _Shown(Column("message", shrink_to=10, style="cyan"), lambda item: item.name or "(no id)"),
        _Shown(Column("by", shrink_to=6), lambda item: item.detail),
        _COPIES,
        _ONCE,
        _STORED,
    ),
    "field": (
        _NS,
        _Shown(Column("field", shrink_to=16, style="cyan"), lambda item: item.name),
        _COPIES,
        _ONCE,
        _STORED,
        _TIMES,
    ),
    "row": (
        _Shown(Column("table"), lambda item: item.detail),
        _THREAD,
        _NS,
        _Shown(Column("channel", shrink_to=8), lambda item: item.channel or ""),
        _Shown(Column("row", shrink_to=10), lambda item: item.name),
        _STORED,
    ),
}
