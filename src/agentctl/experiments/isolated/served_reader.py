"""The parent's answers to what a child asks of the source: one thread's rows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agentctl.experiments.isolated import messages
from agentctl.experiments.isolated.wire import Forged
from agentctl.records.rows import StoredCheckpoint
from agentctl.stores.base import CopyPlan, Reader, RowPick
from agentctl.stores.copying.execute import copy
from agentctl.stores.sqlite.writer import SqliteWriter

_PART_BYTES = 8 * 1024 * 1024
_PART_ROWS = 500
_MAX_UNDERWAY = 1000


class ServedReader:
    """Answers a child.

    Args:
        source: The store, whose rows are given as the reader gives them: masked where it masks.
        thread: The one thread that is served.
        handed: The folder for rows that are handed over.
    """

    def __init__(self, source: Reader, thread: str, handed: Path) -> None:
        self._source = source
        self._thread = thread
        self._handed = handed
        self._underway: dict[int, Iterator[StoredCheckpoint]] = {}
        self._n_asked = 0
        self._n_handed = 0

    def answer(self, question: messages.Asked) -> object:
        """Returns the answer to a question about the source.

        Raises:
            Forged: it is about another thread.
            AgentctlError: the store cannot be read.
        """
        thread = getattr(question, "thread", self._thread)
        if thread != self._thread:
            raise Forged("a question about a thread that is not the experiment's")
        source = self._source
        match question:
            case messages.AskNamespaces():
                return source.namespaces(thread)
            case messages.AskRows(_, ns, ids, metadata):
                return source.rows(thread, ns, ids=ids, metadata=metadata)
            case messages.AskWrites(_, ns, ids, value_bytes, channels):
                return source.writes(thread, ns, ids, value_bytes=value_bytes, channels=channels)
            case messages.AskMemory(prefix):
                return source.memory(prefix)
            case messages.AskStored(_, ns, ids, channels, value_bytes):
                if len(self._underway) >= _MAX_UNDERWAY:
                    raise Forged("more questions at once than an experiment asks")
                self._n_asked += 1
                self._underway[self._n_asked] = source.stored(
                    thread, ns, ids, channels=channels, value_bytes=value_bytes
                )
                return self._n_asked
            case messages.AskMore(number):
                return self._more(number)
            case messages.AskPicked(_, picks):
                return self._hand_over(picks)
        raise Forged("a question about no rows")

    def enough(self, number: int) -> None:
        """Forgets checkpoints that are not asked for any more."""
        self._underway.pop(number, None)

    def _more(self, number: int) -> list[StoredCheckpoint]:
        found: list[StoredCheckpoint] = []
        n_bytes = 0
        for checkpoint in self._underway.get(number, iter(())):
            found.append(checkpoint)
            n_bytes += sum(len(value.data) for value in checkpoint.values.values())
            if n_bytes > _PART_BYTES or len(found) == _PART_ROWS:
                break
        return found

    def _hand_over(self, picks: Sequence[RowPick]) -> tuple[str, tuple[str, ...]]:
        """Copies rows into a file of their own, by the shortest way and verified, as any copy."""
        self._n_handed += 1
        path = self._handed / f"{self._n_handed}.sqlite"
        writer = SqliteWriter(path)
        try:
            (report,) = copy(self._source, writer, [CopyPlan(self._thread, self._thread, tuple(picks))])
        finally:
            writer.close()
        return str(path), report.warnings
