"""Threads as they stood at one moment, while an application goes on writing them.

A thread mostly grows: checkpoints and writes are added, and what is there stays as it is. What has to be of one moment
is therefore which rows there are. A copy that took a head's writes of now and its subgraphs' rows of a moment ago would
be a state that never was. Two things change what is there: a thread or a part of it is deleted, and a question, an
answer or an error of a task is replaced by its next one. Where no transaction hides that, it is found out afterwards.

Source: `SqliteSaver.put_writes` (langgraph-checkpoint-sqlite 3.1.2), `WRITES_IDX_MAP` (langgraph-checkpoint 4.3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol, TypeVar, runtime_checkable

from agentctl.errors import StoreError
from agentctl.stores.base import Reader

T = TypeVar("T")

_N_ATTEMPTS: Final = 3


@runtime_checkable
class Stillable(Reader, Protocol):
    """A reader whose store can be looked at as it stands at one moment."""

    def still(self, threads: Collection[str]) -> AbstractContextManager[Reader]:
        """Gives a reader that sees these threads as they stand when the block begins; of others it promises nothing.

        No writer waits for it. A reader that is still already gives itself.
        """
        ...


class Moved(StoreError):
    """Rows that were read as they stood at one moment have been replaced or deleted since."""


@contextmanager
def at_one_moment(reader: Reader, threads: Collection[str]) -> Iterator[Reader]:
    """Gives a reader of one moment, or the reader itself where its store has no such thing: a saver has not."""
    if not isinstance(reader, Stillable):
        yield reader
        return
    with reader.still(threads) as still:
        yield still


def at_a_moment_that_lasts(reader: Reader, threads: Collection[str], work: Callable[[Reader], T]) -> T:
    """Returns `work(reader of one moment)`, done again at a later moment where that one had passed before it ended.

    Args:
        reader: The store; one that is still already has no later moment.
        threads: What is to be still.
        work: Leaves nothing behind where it raises `Moved`.

    Raises:
        Moved: So it was each time.
    """
    for _ in range(_N_ATTEMPTS - 1):
        with at_one_moment(reader, threads) as still:
            try:
                return work(still)
            except Moved:
                if still is reader:
                    raise
    with at_one_moment(reader, threads) as still:
        return work(still)
