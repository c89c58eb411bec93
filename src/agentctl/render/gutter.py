"""The branch gutter: which lane each checkpoint of a list lies in, and where lanes meet."""

from __future__ import annotations

from collections.abc import Iterable

MAX_LANES = 6
"""Lanes beyond this many are drawn as one, marked `+`."""


def gutter(rows: Iterable[tuple[str, str | None]], first: str | None = None) -> list[str]:
    """Returns one gutter text a row.

    Args:
        rows: (id, parent id) newest first, every row before its parent.
        first: Id of the row whose branch gets lane 0; None for the first row.

    Returns:
        Texts such as `●`, `│ ○`, `●─╯`: `●` in the first lane, `○` in others, `╯` where a branch leaves its parent.
        Unpadded; two columns a lane.
    """
    lanes: list[str | None] = [None]
    drawn: list[str] = []
    for checkpoint, parent in rows:
        first = checkpoint if first is None else first
        waiting = [i for i, wanted in enumerate(lanes) if wanted == checkpoint]
        lane = waiting[0] if waiting else 0 if checkpoint == first else _free_lane(lanes)
        drawn.append(_draw(lanes, lane, waiting[1:]))
        for merged in waiting[1:]:
            lanes[merged] = None
        lanes[lane] = parent
        while len(lanes) > 1 and lanes[-1] is None:
            lanes.pop()
    return drawn


def _free_lane(lanes: list[str | None]) -> int:
    for i, wanted in enumerate(lanes):
        if wanted is None and i > 0:
            return i
    lanes.append(None)
    return len(lanes) - 1


def _draw(lanes: list[str | None], lane: int, merging: list[int]) -> str:
    cells: list[str] = []
    last_merge = merging[-1] if merging else -1
    for i, wanted in enumerate(lanes):
        if i == lane:
            mark = "●" if lane == 0 else "○"
        elif i in merging:
            mark = "╯" if i == last_merge else "┴"
        elif wanted is not None:
            mark = "┼" if lane < i < last_merge else "│"
        else:
            mark = "─" if lane < i < last_merge else " "
        cells.append(mark + ("─" if lane <= i < last_merge else " "))
    if len(cells) > MAX_LANES:
        hidden = lane >= MAX_LANES - 1
        cells = [*cells[: MAX_LANES - 1], "○+" if hidden else "+ "]
    return "".join(cells).rstrip()
