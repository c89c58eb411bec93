"""What is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agentctl.records.prunes import Key, PruneMode
from agentctl.records.threads import ThreadStatus


def _nothing(thread: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class PruneRequest:
    """Which threads, and what of them.

    Attributes:
        now: The time that ages are counted to.
        thread: The one thread that is meant; None for all of the store.
        older_than: Only threads whose newest checkpoint is at least so old; None for any.
        statuses: Only threads of these statuses; empty for any.
        delete: Take whole threads away; else checkpoints inside them.
        orphans: Take only rows that no checkpoint refers to; with `older_than` also those newer than every checkpoint,
            from that age on.
        keep_turns: How many user turns stay of each branch that is kept.
        keep_branchable: Whether the last checkpoint of every older turn stays too.
        protects: Tells of a thread id whether nothing of that thread may go, named or not.
        kept: Checkpoints that stay, by thread; a thread with none of its own is not deleted.
        snapshot: Whether the values of delta channels are stored with the oldest checkpoint that stays, in place of
            the checkpoints that they are rebuilt from.
        batch_rows: About how many rows one transaction takes away.
    """

    now: datetime
    thread: str | None = None
    older_than: timedelta | None = None
    statuses: frozenset[ThreadStatus] = frozenset()
    delete: bool = False
    orphans: bool = False
    keep_turns: int = 1
    keep_branchable: bool = False
    protects: Callable[[str], bool] = _nothing
    kept: Mapping[str, frozenset[Key]] = field(default_factory=dict)
    snapshot: bool = False
    batch_rows: int = 1000

    @property
    def mode(self) -> PruneMode:
        """What goes of a thread."""
        return "delete" if self.delete else "orphans" if self.orphans else "thin"
