"""A source that another process holds: it hands over a file with the rows that a copy takes, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agentctl.stores.base import Reader, RowPick


@dataclass(frozen=True, slots=True)
class Handed:
    """Rows that were handed over, and what to know about them."""

    reader: Reader
    warnings: tuple[str, ...]


@runtime_checkable
class HandsOver(Reader, Protocol):
    """A reader of a source that this process does not hold."""

    def picked(self, thread: str, picks: Sequence[RowPick]) -> AbstractContextManager[Handed]:
        """Gives a reader of a copy of these rows, in a thread of the same name, verified where it was made."""
        ...
