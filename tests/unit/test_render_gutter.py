"""The gutter of branches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentctl.render.gutter import MAX_LANES, gutter


def test_one_line_is_one_lane() -> None:
    assert gutter([("c", "b"), ("b", "a"), ("a", None)]) == ["●", "●", "●"]


def test_a_branch_runs_beside_the_heads_and_joins_its_parent() -> None:
    rows = [("e", "d"), ("d", "b"), ("c2", "c"), ("c", "b"), ("b", "a"), ("a", None)]
    assert gutter(rows) == ["●", "●", "│ ○", "│ ○", "●─╯", "●"]


def test_three_branches_of_one_parent_meet_in_it() -> None:
    assert gutter([("d", "a"), ("c", "a"), ("b", "a"), ("a", None)]) == ["●", "│ ○", "│ │ ○", "●─┴─╯"]


def test_a_lane_that_ended_is_used_again() -> None:
    rows = [("f", "e"), ("x", "d"), ("e", "d"), ("d", "c"), ("y", "b"), ("c", "b"), ("b", None)]
    drawn = gutter(rows)
    assert drawn[1] == "│ ○" and drawn[4] == "│ ○"


def test_two_threads_without_a_common_root_stay_apart() -> None:
    assert gutter([("b", "a"), ("y", "x"), ("a", None), ("x", None)]) == ["●", "│ ○", "● │", "  ○"]


def test_many_lanes_are_drawn_as_one() -> None:
    rows = [*((f"t{i}", "root") for i in range(20)), ("root", None)]
    assert all(len(line) <= 2 * MAX_LANES for line in gutter(rows))


@given(st.lists(st.integers(0, 1000), max_size=40))
def test_every_row_has_one_mark_however_the_tree_grows(choices: list[int]) -> None:
    parents: list[int | None] = [None]
    for choice in choices:
        parents.append(choice % len(parents))
    rows = [(str(i), None if parent is None else str(parent)) for i, parent in reversed(list(enumerate(parents)))]
    drawn = gutter(rows)
    assert len(drawn) == len(rows)
    assert all(sum(line.count(mark) for mark in "●○") == 1 for line in drawn)
    assert drawn[0] == "●"
