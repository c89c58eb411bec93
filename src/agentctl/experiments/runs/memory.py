"""The memory store of one run: a copy of the source's items, and what the run wrote to it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentctl.records.rows import MemoryItem
from agentctl.records.runs import MemoryWrite

_PAGE: Final = 1000

Address = tuple[tuple[str, ...], str]
"""(namespace, key) of an item."""


@dataclass(frozen=True, slots=True)
class MemoryCopy:
    """A new in-memory store that holds items of the source: one run's own, so that nothing of the source is touched.

    Attributes:
        store: What the graph is given.
        before: Values that it held at first, by address.
    """

    store: Any
    before: Mapping[Address, Mapping[str, object]]

    @classmethod
    def of(cls, items: Iterable[MemoryItem]) -> MemoryCopy:
        """Returns a copy, with values that share nothing with the items."""
        from langgraph.store.memory import InMemoryStore

        before = {(item.namespace, item.key): item.value for item in items}
        store = InMemoryStore()
        for (namespace, key), value in before.items():
            store.put(namespace, key, copy.deepcopy(dict(value)))
        return cls(store, before)

    def writes(self) -> tuple[MemoryWrite, ...]:
        """Returns the items that are not what they were, by address; values are as the graph gave them."""
        after = {(tuple(item.namespace), item.key): item.value for item in self._items()}
        return tuple(
            MemoryWrite(namespace, key, self.before.get((namespace, key)), after.get((namespace, key)))
            for namespace, key in sorted(self.before.keys() | after.keys())
            if self.before.get((namespace, key)) != after.get((namespace, key))
        )

    def _items(self) -> Iterator[Any]:
        offset = 0
        while page := self.store.search((), limit=_PAGE, offset=offset):
            yield from page
            offset += len(page)
