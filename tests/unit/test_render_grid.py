"""Tables that fit a width, and the small words around them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from agentctl.render.grid import Cell, Column, grid
from agentctl.render.words import age, count, names, percent_interval, size

COLUMNS = (Column("id"), Column("n", right=True), Column("text", shrink_to=6), Column("more", shrink_to=4))
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def lines(rows: list[tuple[Cell | str, ...]], width: int) -> list[str]:
    return [line.plain for line in grid(COLUMNS, rows, width)]


def test_columns_are_aligned_and_the_last_is_not_padded() -> None:
    assert lines([("a", "1", "short", "x"), ("bbb", "100", "a longer text", "y")], 80) == [
        "id     n  text           more",
        "a      1  short          x",
        "bbb  100  a longer text  y",
    ]


def test_what_may_be_cut_is_cut_from_the_widest_on_and_marked() -> None:
    shown = lines([("abcdefgh", "1", "a rather long text", "and more of it")], 34)
    assert all(len(line) <= 34 for line in shown)
    assert shown[1].startswith("abcdefgh  1  ") and "..." in shown[1]


def test_ids_are_never_cut() -> None:
    assert lines([("abcdefgh", "1", "text", "more")], 5)[1].startswith("abcdefgh  1  text  more")


def test_an_empty_column_is_left_out() -> None:
    assert lines([("a", "", "b", "")], 80) == ["id  text", "a   b"]
    assert lines([], 80) == []


def test_wide_characters_count_double() -> None:
    shown = lines([("漢字漢字", "1", "漢字漢字漢字漢字", "x"), ("a", "2", "b", "y")], 26)
    assert all(cell_len(line) <= 26 for line in shown)
    assert shown[1].index("1") < shown[2].index("2")


def test_cells_are_cleaned() -> None:
    assert lines([("a\x1b[2J", "1", "b\nc", Cell("\u202ed", "red"))], 80)[1] == "a   1  b c   \ufffdd"


@pytest.mark.parametrize(
    ("ago", "word"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86400, "1d"), (13 * 86400, "13d"),
     (15 * 86400, "2w"), (-5, "0s")],
)  # fmt: skip
def test_ages(ago: int, word: str) -> None:
    assert age(NOW - timedelta(seconds=ago), NOW) == word


def test_small_words() -> None:
    assert age(None, NOW) == "?"
    assert (count(1, "thread"), count(1000, "thread"), count(2, "branch", "branches")) == (
        "1 thread",
        "1,000 threads",
        "2 branches",
    )
    assert (size(812), size(3100), size(42_000), size(4_200_000), size(5_000_000_000)) == (
        "812 B",
        "3.1 KB",
        "42 KB",
        "4.2 MB",
        "5.0 GB",
    )
    assert (names([]), names(["tools", "tools", "a"])) == ("-", "tools x2, a")
    assert percent_interval((0.566, 1.0)) == "[57 %, 100 %]"
