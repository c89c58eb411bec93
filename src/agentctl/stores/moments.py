"""Threads as they stood at one moment, while an application goes on writing them.

A thread only grows: checkpoints and writes are added, and what is there stays as it is. What has to be of one moment is
therefore which rows there are. A copy that took a head's writes of now and its subgraphs' rows of a moment ago would be
a state that never was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable

from agentctl.stores.base import Reader


@runtime_checkable
class Stillable(Reader, Protocol):
    """A reader whose store can be looked at as it stands at one moment."""

    def still(self, threads: Collection[str]) -> AbstractContextManager[Reader]:
        """Gives a reader that sees these threads as they stand when the block begins; of others it promises nothing.

        No writer waits for it. A reader that is still already gives itself.
        """
        ...


@contextmanager
def at_one_moment(reader: Reader, threads: Collection[str]) -> Iterator[Reader]:
    """Gives a reader of one moment, or the reader itself where its store has no such thing: a saver has not."""
    if not isinstance(reader, Stillable):
        yield reader
        return
    with reader.still(threads) as still:
        yield still
