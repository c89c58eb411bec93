"""Counting what a reader hands over, for the audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from agentctl.records.audit import Touched
from agentctl.records.rows import StoredCheckpoint
from agentctl.stores.base import Reader
from agentctl.stores.heads import HeadState

LONGEST_LIST: Final = 1000
"""How many threads, and how many checkpoints, are kept by their ids; all are counted."""


@dataclass(slots=True)
class ReadTally:
    """What was read so far."""

    threads: dict[str, None] = field(default_factory=dict)
    checkpoints: dict[str, None] = field(default_factory=dict)
    n_rows: Counter[str] = field(default_factory=Counter)

    def touched(self) -> Touched:
        """Returns it as a record."""
        threads, checkpoints = list(self.threads), list(self.checkpoints)
        return Touched(
            tuple(threads[:LONGEST_LIST]),
            tuple(checkpoints[:LONGEST_LIST]),
            len(threads),
            len(checkpoints),
            dict(sorted(self.n_rows.items())),
        )

    def add(self, kind: str, n: int, thread: str | None = None) -> None:
        """Counts rows of one kind; the thread is kept where there are any."""
        if n:
            self.n_rows[kind] += n
            if thread is not None:
                self.threads[thread] = None


def count_reads(reader: Reader, tally: ReadTally | None) -> None:
    """Lets a reader count what it hands over from now on, also what a still reader of it does.

    Its methods are covered where it stands: a reader around it would be of another type, and a reader's type tells what
    its store can do. Rows that a database counts or copies by itself are not handed over, and not counted.

    Args:
        reader: It.
        tally: Where to count; None for nowhere.
    """
    if tally is None:
        return
    _cover(reader, "heads", partial(_listed, tally, "heads"))
    _cover(reader, "names", partial(_listed, tally, "heads"))
    _cover(reader, "memory", partial(_listed, tally, "memory_items"))
    _cover(reader, "head_states", partial(_head_states, tally))
    _cover(reader, "rows", partial(_of_thread, tally, "checkpoints"))
    _cover(reader, "writes", partial(_of_thread, tally, "writes"))
    _cover(reader, "stored", partial(_states, tally))
    _cover(reader, "still", partial(_still, tally, reader))


def _cover(reader: Reader, name: str, after: Callable[..., Any]) -> None:
    method = getattr(reader, name, None)
    if method is None:
        return

    def covered(*args: Any, **kwargs: Any) -> Any:
        return after(method(*args, **kwargs), *args, **kwargs)

    setattr(reader, name, covered)


def _listed(tally: ReadTally, kind: str, found: Sequence[Any], *_: object, **__: object) -> Sequence[Any]:
    tally.add(kind, len(found))
    return found


def _of_thread(
    tally: ReadTally, kind: str, found: Sequence[Any], thread: str, *_: object, **__: object
) -> Sequence[Any]:
    tally.add(kind, len(found), thread)
    return found


def _head_states(tally: ReadTally, found: Mapping[str, HeadState], *_: object, **__: object) -> Mapping[str, HeadState]:
    for thread, head in found.items():
        tally.add("checkpoints", 1, thread)
        tally.checkpoints[head.stored.row.id] = None
    return found


def _states(
    tally: ReadTally,
    found: Iterator[StoredCheckpoint],
    thread: str,
    *_: object,
    channels: Collection[str] | None = None,
    **__: object,
) -> Iterator[StoredCheckpoint]:
    for item in found:
        tally.add("states" if channels is None or channels else "checkpoints", 1, thread)
        tally.checkpoints[item.row.id] = None
        yield item


@contextmanager
def _still(
    tally: ReadTally, reader: Reader, found: AbstractContextManager[Reader], *_: object, **__: object
) -> Iterator[Reader]:
    with found as still:
        if still is not reader:
            count_reads(still, tally)
        yield still
