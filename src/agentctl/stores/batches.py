"""Cutting long lists into pieces, so that memory and locks stay small however long a thread is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yields `items` in order, at most `size` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def by_size(items: Sequence[tuple[str, int]], max_bytes: int, max_items: int) -> Iterator[list[str]]:
    """Yields names in order, in groups of at most `max_bytes` and `max_items`; a larger one comes alone.

    Args:
        items: (name, bytes).
        max_bytes: Limit of a group's sum.
        max_items: Limit of a group's length.
    """
    group: list[str] = []
    total = 0
    for name, n_bytes in items:
        if group and (total + n_bytes > max_bytes or len(group) == max_items):
            yield group
            group, total = [], 0
        group.append(name)
        total += n_bytes
    if group:
        yield group
