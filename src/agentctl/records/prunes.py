"""What `prune` would take away, or took away, thread by thread."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agentctl.records.threads import ThreadStatus

PruneAction = Literal["thin", "delete", "skip"]
"""Rows of a thread go; all of it goes; it stays as it is, although it was asked for."""

PruneMode = Literal["thin", "delete", "orphans"]
"""What is asked for: checkpoints inside threads, whole threads, or rows that no checkpoint refers to."""

PruneOutcome = Literal["planned", "done", "overtaken"]
"""Shown alone; carried out; stopped since the thread was written to meanwhile."""

Key = tuple[str, str]
"""Namespace and id of a checkpoint inside a thread."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Rows, and the bytes of their values."""

    n_checkpoints: int = 0
    n_writes: int = 0
    n_blobs: int = 0
    n_bytes: int = 0

    def plus(self, other: Removed) -> Removed:
        """Returns the sum."""
        return Removed(
            self.n_checkpoints + other.n_checkpoints,
            self.n_writes + other.n_writes,
            self.n_blobs + other.n_blobs,
            self.n_bytes + other.n_bytes,
        )

    @property
    def n_rows(self) -> int:
        """Rows of all tables."""
        return self.n_checkpoints + self.n_writes + self.n_blobs


@dataclass(frozen=True, slots=True)
class LostTurn:
    """A user turn that cannot be forked any more, or not in the middle.

    Attributes:
        number: 1-based, as `export` counts it.
        text: What the user said, '' where the thread keeps no messages.
        n_checkpoints: Checkpoints of the root graph that the turn has.
        n_lost: How many of them go.
        last: Id of the checkpoint that ends it.
        end_stays: Whether that one stays, so that the turn can still be forked at its end.
    """

    number: int
    text: str
    n_checkpoints: int
    n_lost: int
    last: str
    end_stays: bool


@dataclass(frozen=True, slots=True)
class ThreadPrune:
    """What goes of one thread.

    Attributes:
        thread: Thread id.
        action: What is done with it.
        updated_at: Time of its newest checkpoint of any namespace, None where ids have no time.
        status: Status of its head; None where it has none, or where that was not asked for.
        goes: What is taken away, of all namespaces.
        n_checkpoints: Checkpoints of all namespaces before that.
        lost: Turns of the branches that stay which cannot be forked any more.
        n_lost_beside: Checkpoints on branches that go as a whole.
        reason: Why it is skipped, else ''.
        notes: What else to know of it.
        outcome: How far it was carried out.
        faults: What was found wrong with it afterwards; nothing is expected.
    """

    thread: str
    action: PruneAction
    updated_at: datetime | None = None
    status: ThreadStatus | None = None
    goes: Removed = Removed()
    n_checkpoints: int = 0
    lost: tuple[LostTurn, ...] = ()
    n_lost_beside: int = 0
    reason: str = ""
    notes: tuple[str, ...] = ()
    outcome: PruneOutcome = "planned"
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compaction:
    """Bytes of a SQLite file with its `-wal` before and after room was given back; `problem` says why it was not."""

    before_bytes: int
    after_bytes: int
    problem: str = ""


@dataclass(slots=True)
class PruneTally:
    """What was looked at, counted while it is.

    Attributes:
        n_threads: Threads that were looked at.
        n_passed: Those that are younger than was asked for.
        n_unchanged: Those of which nothing goes, and those of another status than was asked for.
        n_pruned: Those of which something goes.
        n_skipped: Those that stay although they were asked for.
        n_overtaken: Those that were written to meanwhile.
        n_faulty: Those with which something was wrong afterwards.
        goes: What goes of all.
        compaction: What was given back to the system; None where that was not asked for.
    """

    n_threads: int = 0
    n_passed: int = 0
    n_unchanged: int = 0
    n_pruned: int = 0
    n_skipped: int = 0
    n_overtaken: int = 0
    n_faulty: int = 0
    goes: Removed = Removed()
    compaction: Compaction | None = None

    def add(self, thread: ThreadPrune) -> None:
        """Counts one thread that is told of."""
        if thread.action == "skip":
            self.n_skipped += 1
        elif thread.outcome == "overtaken":
            self.n_overtaken += 1
        elif thread.goes.n_rows:
            self.n_pruned += 1
        else:
            self.n_unchanged += 1
        self.n_faulty += bool(thread.faults)
        self.goes = self.goes.plus(thread.goes)
