"""Pruning a store: thread by thread, each planned, told, and carried out before the next is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from agentctl.errors import AgentctlError, DecodeError
from agentctl.records.copies import command
from agentctl.records.prunes import PruneAction, PruneTally, ThreadPrune
from agentctl.records.rows import id_time
from agentctl.stores.base import Reader
from agentctl.stores.deleting import Deleter, Overtaken, ThreadEnd, ThreadOverview
from agentctl.upkeep.prune.execution import Execution, Pause
from agentctl.upkeep.prune.plan import Planning, ThreadPlan
from agentctl.upkeep.prune.request import PruneRequest

_THREADS_PER_READ: Final = 200
_N_ATTEMPTS: Final = 3
_STRANGE: Final = (TypeError, ValueError, AttributeError, LookupError)
"""What reading raises where SQLite, which holds anything in any column, has what no saver writes."""


@dataclass(slots=True)
class Pruning:
    """One pruning of a store; memory holds one thread at a time.

    Attributes:
        reader: The store.
        deleter: The same store, as one that rows can be taken from.
        request: What is asked for.
        apply: Whether it is carried out.
        pause: Called between two transactions, when no lock is held.
        tally: What was looked at so far.
    """

    reader: Reader
    deleter: Deleter
    request: PruneRequest
    apply: bool
    pause: Pause
    tally: PruneTally = field(default_factory=PruneTally)

    def threads(self) -> Iterator[ThreadPrune]:
        """Yields the threads of which something goes, or that were asked for and stay, in the store's order."""
        for page in self._pages():
            self.tally.n_threads += len(page)
            old = [end for end in page if self._is_old(end)]
            self.tally.n_passed += len(page) - len(old)
            overviews = self._overviews(old)
            for end in old:
                pruned = self._pruned(end, overviews.get(end.thread))
                if pruned is None:
                    self.tally.n_unchanged += 1
                else:
                    self.tally.add(pruned)
                    yield pruned

    def _pages(self) -> Iterator[Sequence[ThreadEnd]]:
        if self.request.thread is not None:
            yield [self._end_of(self.request.thread)]
            return
        after: str | None = None
        while page := self.deleter.threads(after=after, limit=_THREADS_PER_READ):
            yield page
            after = page[-1].thread

    def _overviews(self, ends: Sequence[ThreadEnd]) -> Mapping[str, ThreadOverview]:
        """Reads a page of threads at once for a plan that is shown; what is carried out is read thread by thread."""
        if self.apply or not ends:
            return {}
        try:
            return self.deleter.overviews([end.thread for end in ends])
        except _STRANGE:
            return {}  # one of them has such rows, and is told when it is looked at

    def _end_of(self, thread: str) -> ThreadEnd:
        ids = [weight.key[1] for weight in self.deleter.weights(thread) if weight.is_stored]
        return ThreadEnd(thread, max(ids, default=""), len(ids))

    def _is_old(self, end: ThreadEnd) -> bool:
        """Says whether a thread is old enough; where ids have no time, it is not known to be."""
        if self.request.older_than is None:
            return True
        at = id_time(end.newest)
        return at is not None and self.request.now - at >= self.request.older_than

    def _pruned(self, end: ThreadEnd, overview: ThreadOverview | None) -> ThreadPrune | None:
        """Returns what was done with one thread. What is wrong with one does not keep the others from being pruned."""
        try:
            plan = self._plan(end, overview)
            if plan is None:
                return None
            return Execution(self.reader, self.deleter, self.pause).run(plan) if self.apply else plan.report
        except Overtaken:
            action: PruneAction = "delete" if self.request.delete else "thin"
            told = ThreadPrune(end.thread, action, id_time(end.newest), n_checkpoints=end.n_checkpoints)
            return replace(told, outcome="overtaken", notes=("it is written to all the while; it is left as it was",))
        except AgentctlError as error:
            if self.request.thread is not None:
                raise
            skipped = ThreadPrune(end.thread, "skip", id_time(end.newest), n_checkpoints=end.n_checkpoints)
            return replace(skipped, reason=error.message)

    def _plan(self, end: ThreadEnd, overview: ThreadOverview | None) -> ThreadPlan | None:
        """Plans a thread, again where it was written to meanwhile.

        Raises:
            Overtaken: It was each time.
            DecodeError: SQLite holds anything in any column, and this thread has what cannot be taken for rows.
        """
        planning = Planning(self.reader, self.deleter, self.request)
        try:
            for attempt in range(_N_ATTEMPTS - 1):
                with suppress(Overtaken):
                    return planning.plan(end, None if attempt else overview)
            return planning.plan(end)
        except _STRANGE as error:
            raise DecodeError(
                f"rows of {end.thread} hold what no saver writes: {type(error).__name__}: {error}",
                hint=command("doctor", self.reader.info.target(end.thread)),
            ) from error
