"""The largest of many items, with no more of them in memory than will be shown."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from agentctl.records.sizes import SizeItem


class Largest:
    """Keeps the largest items by stored bytes.

    Args:
        limit: How many; None for all of them.

    Attributes:
        n_seen: How many were added.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, SizeItem]] = []
        self.n_seen = 0

    def add(self, item: SizeItem) -> None:
        """Takes an item; among equals the first stays."""
        entry = (item.stored_bytes, -self.n_seen, item)
        self.n_seen += 1
        if self._limit is None or len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def update(self, items: Iterable[SizeItem]) -> None:
        """Takes several."""
        for item in items:
            self.add(item)

    def items(self) -> tuple[SizeItem, ...]:
        """Returns what is kept, largest first."""
        return tuple(item for _, _, item in sorted(self._heap, reverse=True))
