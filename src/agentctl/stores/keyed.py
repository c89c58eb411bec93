"""Which rows a thread has, without reading them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from agentctl.stores.base import Reader


@runtime_checkable
class Keyed(Reader, Protocol):
    """A reader whose store tells the keys of a thread's rows from its indexes."""

    def row_keys(self, thread: str) -> Collection[tuple[str, str]]:
        """Returns namespace and id of every checkpoint of the thread that is there, if only with writes."""
        ...
