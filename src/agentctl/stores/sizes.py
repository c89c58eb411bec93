"""What a database, or a server, can say of its own size. A saver cannot: it hands out loaded values, not rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from agentctl.records.sizes import ChannelPart, ChannelWrites, DatabaseSize, RowSize, SizePart, StateValues
from agentctl.stores.base import Reader

Tick = Callable[[int], None]
"""Told how many more checkpoints or blobs have been read."""


class SizeReader(Protocol):
    """Counts rows and bytes, in short statements. `thread` None is the whole store everywhere.

    `parts`, `written`, `largest` and `database` read no state: the database tells the length of a value without it.
    """

    def parts(self, thread: str | None = None) -> Iterator[SizePart]:
        """Yields what each table holds of each thread and namespace path, in no order."""
        ...

    def channels(self, thread: str | None = None, *, tick: Tick) -> Iterator[ChannelPart]:
        """Yields what the states hold of each channel; on SQLite that takes reading them, one at a time."""
        ...

    def written(self, thread: str | None = None) -> Iterator[ChannelWrites]:
        """Yields the pending writes to each channel."""
        ...

    def values(self, thread: str | None = None, *, tick: Tick) -> Iterator[StateValues]:
        """Yields every value of every state as often as it is stored, thread by thread."""
        ...

    def largest(self, thread: str | None = None, *, limit: int | None) -> Sequence[RowSize]:
        """Returns the largest rows of all tables that hold threads, largest first; None for all of them."""
        ...

    def database(self) -> DatabaseSize | None:
        """Returns what the database takes on disk, None where it is not told.

        Rows and bytes of tables that hold threads are left None.
        """
        ...


@runtime_checkable
class Measurable(Reader, Protocol):
    """A reader whose store can be measured."""

    def sizes(self) -> SizeReader:
        """Returns what counts it."""
        ...
