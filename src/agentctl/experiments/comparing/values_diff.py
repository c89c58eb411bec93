"""Differences between inert values, by path. One walk over both sides; NaN equals NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from agentctl.records.diffs import ABSENT, Change

_PLAIN_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$")


def same(left: object, right: object) -> bool:
    """Tells whether two inert values are equal; NaN equals NaN, 1 is not True, 1 equals 1.0 only as numbers."""
    if left is right:
        return True
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return next(changes(left, right), None) is None if isinstance(left, Mapping | list) else left == right


def changes(left: object, right: object, path: str = "") -> Iterator[Change]:
    """Yields the smallest differing paths, in the left side's order and then the right's.

    Args:
        left: Inert value, or ABSENT.
        right: Inert value, or ABSENT.
        path: Where both stand; keys are dotted, list items `[i]`, unusual keys quoted.
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in [*left, *(key for key in right if key not in left)]:
            yield from changes(left.get(key, ABSENT), right.get(key, ABSENT), _join(path, str(key)))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for i, (one, other) in enumerate(zip_longest(left, right, fillvalue=ABSENT)):
            yield from changes(one, other, f"{path}[{i}]")
    elif not _equal_leaves(left, right):
        yield Change(path, left, right)


def _equal_leaves(left: object, right: object) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right):
        return True
    return left is right or bool(left == right)


def _join(path: str, key: str) -> str:
    text = key if key and _PLAIN_KEY.issuperset(key) else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{path}.{text}" if path else text
