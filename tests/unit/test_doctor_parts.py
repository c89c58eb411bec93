"""The order in which doctor passes a namespace, and how it tells an object from its bare fields."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from agentctl.codec.tree import CONSTRUCTOR_KEYWORDS, CONSTRUCTOR_SINGLE_ARG, Typed
from agentctl.records.rows import CheckpointRow
from agentctl.stores.reading.lineage import Tree, tree_of
from agentctl.upkeep.doctor.order import parents_first
from agentctl.upkeep.doctor.shapes import drifts, shapes_of


def tree(parents: Sequence[int | None]) -> Tree:
    """A tree of checkpoints named by their number, with the parent of each."""
    names = [f"{number:06d}" for number in range(len(parents))]
    return tree_of(
        CheckpointRow("t", "", names[i], None if parent is None else f"{parent:06d}", {})
        for i, parent in enumerate(parents)
    )


def most_open(order: Sequence[str], tree: Tree) -> int:
    """How many checkpoints had to be remembered at once for children that were still to come."""
    waiting = {id: len(children) for id, children in tree.children.items()}
    most, kept = 0, set()
    for id in order:
        if waiting.get(id):
            kept.add(id)
        parent = tree.parents[id]
        if parent in kept:
            waiting[parent] -= 1
            if not waiting[parent]:
                kept.discard(parent)
        most = max(most, len(kept))
    return most


@pytest.mark.parametrize("seed", range(20))
def test_parents_come_before_children_and_few_are_remembered(seed: int) -> None:
    rnd = random.Random(seed)
    n = 400
    found = tree([None, *(rnd.choice([i - 1, i - 1, rnd.randrange(i), n + 5]) for i in range(1, n))])
    order = list(parents_first(found))

    assert sorted(order) == sorted(found.ids)
    place = {id: at for at, id in enumerate(order)}
    for id, parent in found.parents.items():
        assert parent not in place or place[parent] < place[id]
    assert most_open(order, found) <= math.log2(n) + 1


def test_of_a_long_thread_that_was_edited_at_every_step_one_is_remembered_at_a_time() -> None:
    found = tree([None, *(i - 1 if i % 2 else max(i - 2, 0) for i in range(1, 1001))])

    assert most_open(list(parents_first(found)), found) <= 3


def test_a_loop_of_parents_ends() -> None:
    assert sorted(parents_first(tree([1, 2, 0, None]))) == ["000000", "000001", "000002", "000003"]


ORDER = Typed(CONSTRUCTOR_KEYWORDS, "app", "Order", {"id": "A1", "total": 1})
COLOUR = Typed(CONSTRUCTOR_SINGLE_ARG, "app", "Colour", "red")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (ORDER, {"id": "A2", "total": 2}, [("app.Order", "")]),
        ([ORDER, ORDER], [{"id": "A2", "total": 2}], [("app.Order", "[]")]),
        ({"a": ORDER}, {"a": {"id": "A2", "total": 2}}, [("app.Order", ".*")]),
        (COLOUR, "red", [("app.Colour", "")]),
        (ORDER, ORDER, []),
        (ORDER, {"id": "A2"}, []),
        (ORDER, None, []),
        (COLOUR, "blue", []),
        ([ORDER], [ORDER, {"id": "A2", "total": 2}], []),
        ([ORDER, {"id": "A2", "total": 2}], [{"id": "A2", "total": 2}], []),
        ({"id": "A2", "total": 2}, ORDER, []),
    ],
)
def test_an_object_that_became_its_fields_has_drifted(
    before: object, after: object, expected: list[tuple[str, str]]
) -> None:
    found = drifts("order", shapes_of(before), shapes_of(after))

    assert [(drift.type, drift.where) for drift in found] == expected
