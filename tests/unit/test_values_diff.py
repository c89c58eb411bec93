import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.experiments.comparing.values_diff import changes, same
from agentctl.records.diffs import ABSENT, Change

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"a": 1}, {"a": 2}, [Change("a", 1, 2)]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [Change("a.b[1]", 2, 3)]),
        ({"a": 1}, {}, [Change("a", 1, ABSENT)]),
        ({}, {"a": None}, [Change("a", ABSENT, None)]),
        ([1], [1, 2], [Change("[1]", ABSENT, 2)]),
        ({"a b": 1}, {"a b": 2}, [Change('"a b"', 1, 2)]),
        ({'q"': 1}, {'q"': 2}, [Change('"q\\""', 1, 2)]),
        (True, 1, [Change("", True, 1)]),
        (1, 1.0, []),
        ({"a": [1]}, {"a": {"0": 1}}, [Change("a", [1], {"0": 1})]),
    ],
)
def test_the_smallest_differing_path_is_named(left: object, right: object, expected: list[Change]) -> None:
    assert list(changes(left, right)) == expected
    assert same(left, right) is not bool(expected)


def test_nan_equals_nan_wherever_it_stands() -> None:
    assert same(math.nan, float("nan"))
    assert same({"a": [math.nan]}, {"a": [float("nan")]})
    assert not same(math.nan, 1.0)


@given(values)
def test_a_value_does_not_differ_from_itself(value: object) -> None:
    assert list(changes(value, value)) == []


@given(values, values)
def test_a_difference_is_the_same_from_both_sides(left: object, right: object) -> None:
    there = {(change.path, repr(change.left), repr(change.right)) for change in changes(left, right)}
    back = {(change.path, repr(change.right), repr(change.left)) for change in changes(right, left)}
    assert there == back
    assert same(left, right) is not bool(there)
