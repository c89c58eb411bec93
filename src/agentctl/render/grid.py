"""Lines of aligned cells that fit a width: flexible columns give way, ids and numbers never do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agentctl.render.clean import clean

if TYPE_CHECKING:
    from rich.text import Text

GAP = 2


class Column(NamedTuple):
    """One column. `shrink_to` is the least width it may be cut to, None for a column that is never cut."""

    title: str
    shrink_to: int | None = None
    right: bool = False
    style: str = ""


class Cell(NamedTuple):
    """A cell's text with a style of its own."""

    text: str
    style: str = ""


def grid(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell | str]], width: int, *, header: bool = True
) -> list[Text]:
    """Returns one line a row, at most `width` columns wide wherever the columns that may be cut allow it.

    Cells are cleaned, cut ones end in `...`; the last column is not padded. Empty columns are left out.
    """
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    cells = [[Cell(clean(cell.text), cell.style) for cell in row] for row in cells]
    kept = [i for i in range(len(columns)) if not cells or any(row[i].text for row in cells)]
    columns = [columns[i] for i in kept]
    cells = [[row[i] for i in kept] for row in cells]
    widths = [
        max([cell_len(column.title) if header else 0, *(cell_len(row[i].text) for row in cells)])
        for i, column in enumerate(columns)
    ]
    widths = _shrink(columns, widths, width)

    def line(row: Sequence[Cell], heading: bool = False) -> Text:
        text = Text(no_wrap=True, overflow="ignore", end="")
        for i, (column, cell) in enumerate(zip(columns, row, strict=True)):
            last = i == len(columns) - 1
            shown, size = cell.text, cell_len(cell.text)
            if size > widths[i]:
                shown = (
                    set_cell_size(shown, max(widths[i] - 3, 0)) + "..."
                    if widths[i] > 3
                    else set_cell_size(shown, widths[i])
                )
                size = widths[i]
            fill = " " * (widths[i] - size)
            style = "dim" if heading else cell.style or column.style
            if column.right:
                text.append(fill)
            text.append(shown, style=style)
            if not last:
                text.append(("" if column.right else fill) + " " * GAP)
        text.rstrip()
        return text

    titles = [Cell(column.title) for column in columns]
    return [*([line(titles, heading=True)] if header and cells else []), *(line(row) for row in cells)]


def _shrink(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Takes the excess from the widest cuttable column first, down to what each can bear."""
    widths = list(widths)
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    while excess > 0:
        able = [i for i, column in enumerate(columns) if column.shrink_to is not None and widths[i] > column.shrink_to]
        if not able:
            break
        widest = max(able, key=lambda i: widths[i])
        floor = columns[widest].shrink_to or 0
        others = [widths[i] for i in able if i != widest]
        step = min(excess, widths[widest] - max(floor, *others, 0) if others else widths[widest] - floor)
        step = max(step, 1)
        widths[widest] -= step
        excess -= step
    return widths
