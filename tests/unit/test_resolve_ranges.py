"""Branches, ranges and edits, resolved against a thread that is written down."""

from __future__ import annotations

import pytest

from agentctl.errors import NotFound
from agentctl.revisions.heads import find_edit
from tests.support.written_thread import Support, Written


def test_a_branch_is_read_from_its_id_up() -> None:
    thread = Support()
    assert thread.to("head", branch=thread.reply[-8:]).id == thread.reply
    assert thread.to("head~", branch=thread.told_2).id == thread.asked_2
    with pytest.raises(NotFound):
        thread.to("head", branch="0000ffff")


def test_a_cut_lineage_is_said_to_be_cut() -> None:
    thread = Written()
    thread.add(1, "gone", step=7)
    assert thread.to("root").notes == ("its parent gone is not stored: the lineage is cut here",)


def test_a_range_is_after_its_left_up_to_its_right() -> None:
    thread = Support()
    found = thread.between("before:tools:1..before:tools:2")
    assert (found.common, found.left_ids) == (thread.asked_1, ())
    assert found.right_ids == (thread.told_1, thread.asked_2)


def test_three_dots_are_both_sides_since_they_parted() -> None:
    thread = Support()
    found = thread.between(f"{thread.reply}...head")
    assert found.common == thread.asked_2
    assert found.left_ids == (thread.told_2, thread.reply)
    assert found.right_ids == (thread.edit, thread.end)
    assert thread.between(f"{thread.reply}..head").left_ids == ()


def test_a_range_backwards_is_empty_and_one_without_an_ancestor_is_whole() -> None:
    thread = Support()
    assert thread.between("head..root").right_ids == ()
    alone = thread.add(30, None, step=-1)
    found = thread.between(f"{thread.reply}...{alone}")
    assert (found.common, found.right_ids, len(found.left_ids)) == (None, (alone,), 7)


def test_a_range_over_two_namespaces_is_refused() -> None:
    thread = Support()
    inner = thread.add(33, None, ns="research:1f")
    with pytest.raises(NotFound, match="namespace"):
        thread.between(f"root..{inner}")


def test_a_head_that_descends_from_an_edit_names_the_last_head_without_it() -> None:
    thread = Support()
    found = find_edit(thread.rows[""], thread.end)
    assert found is not None
    assert (found.edit, found.last_head) == (thread.edit, thread.reply)
    assert find_edit(thread.rows[""], thread.reply) is None


def test_the_last_head_without_an_edit_is_not_one_of_an_earlier_experiment() -> None:
    thread = Written()
    first = thread.add(1, None, step=0)
    seen = thread.add(2, first, step=1)
    fork = thread.add(3, first, step=1, source="fork")
    thread.add(4, fork, step=2)
    again = thread.add(5, first, step=1, source="fork")
    head = thread.add(6, again, step=2)
    found = find_edit(thread.rows[""], head)
    assert found is not None
    assert (found.edit, found.last_head) == (again, seen)


def test_a_thread_that_began_with_an_update_names_the_head_before_the_last_one() -> None:
    thread = Written()
    first = thread.add(1, None, step=-1, source="update")
    seen = thread.add(2, first, step=0)
    edit = thread.add(3, seen, step=1, source="update")
    head = thread.add(4, edit, step=2)
    found = find_edit(thread.rows[""], head)
    assert found is not None
    assert (found.edit, found.last_head) == (edit, seen)
    alone = find_edit(thread.rows[""][:1], first)
    assert alone is not None
    assert alone.last_head is None


def test_an_edit_is_followed_through_rows_whose_clock_ran_behind() -> None:
    thread = Written()
    first = thread.add(10, None, step=0)
    edit = thread.add(20, first, step=1, source="update")
    late = thread.add(5, edit, step=2)
    head = thread.add(30, late, step=3)
    found = find_edit(thread.rows[""], head)
    assert found is not None
    assert found.last_head == first
