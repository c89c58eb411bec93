"""The source as a child sees it: a reader whose every answer the parent gives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentctl.experiments.isolated import messages
from agentctl.experiments.isolated.asking import Asking
from agentctl.records.rows import CheckpointRow, MemoryItem, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores.base import RowPick, StoreInfo
from agentctl.stores.copying.handed import Handed
from agentctl.stores.sqlite.reader import SqliteReader


class FarReader:
    """See `agentctl.stores.base.Reader`: one thread of a store, and the memory items beside it."""

    def __init__(self, info: StoreInfo, asking: Asking) -> None:
        self.info = info
        self._ask = asking.ask
        self._later = asking.later

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """Returns nothing: other threads are not seen."""
        return ()

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`."""
        found: Sequence[str] = self._ask(messages.AskNamespaces(thread))
        return found

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`."""
        found: Sequence[CheckpointRow] = self._ask(messages.AskRows(thread, ns, _tuple(ids), metadata))
        return found

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """See `Reader.stored`."""
        number = self._ask(messages.AskStored(thread, ns, tuple(ids), _tuple(channels), value_bytes))
        try:
            while more := self._ask(messages.AskMore(number)):
                yield from more
        finally:
            self._later(messages.Enough(number))

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """See `Reader.writes`."""
        found: Sequence[WriteRow] = self._ask(
            messages.AskWrites(thread, ns, _tuple(ids), value_bytes, _tuple(channels))
        )
        return found

    def find_run(self, run_id: str) -> Sequence[str]:
        """Returns nothing: other threads are not seen."""
        return ()

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """See `Reader.memory`."""
        found: Sequence[MemoryItem] = self._ask(messages.AskMemory(prefix))
        return found

    @contextmanager
    def picked(self, thread: str, picks: Sequence[RowPick]) -> Iterator[Handed]:
        """See `agentctl.stores.copying.handed.HandsOver.picked`."""
        path, warnings = self._ask(messages.AskPicked(thread, tuple(picks)))
        reader = SqliteReader(Path(path))
        try:
            yield Handed(reader, warnings)
        finally:
            reader.close()

    def close(self) -> None:
        """Does nothing: the parent closes its store."""


def _tuple(values: Collection[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)
