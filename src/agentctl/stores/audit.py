"""What a database can tell of its rows beside what a `Reader` gives: rows that belong to nothing, types, the layout.

A saver cannot: it hands out loaded values, not rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from agentctl.records.faults import LayoutFacts, OrphanRows, TypeCount
from agentctl.stores.base import Reader


class StoreAudit(Protocol):
    """Answers with counts and keys, in short statements; no value is read."""

    def layout(self) -> LayoutFacts:
        """Returns how the tables differ from those that LangGraph makes."""
        ...

    def headless(self) -> Sequence[str]:
        """Returns the threads that have rows in some table and no checkpoint of the root graph, sorted."""
        ...

    def orphans(self, thread: str, *, limit: int) -> Sequence[OrphanRows]:
        """Returns pending writes of checkpoints that are not stored, and blobs that no checkpoint names.

        Args:
            thread: Exact thread id.
            limit: At most this many of each.
        """
        ...

    def types(self, thread: str) -> Sequence[TypeCount]:
        """Returns how many rows of each table have each serialization type."""
        ...


@runtime_checkable
class Auditable(Reader, Protocol):
    """A reader whose store can tell of its rows."""

    def audit(self) -> StoreAudit:
        """Returns what tells of them."""
        ...
