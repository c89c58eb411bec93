"""Reading through another reader: what a writer does with the reading half of its store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from agentctl.records.rows import CheckpointRow, MemoryItem, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores.base import Reader, StoreInfo
from agentctl.stores.moments import at_one_moment


class NoThreads:
    """A `Reader` of a store whose tables do not exist yet: everything is empty."""

    def __init__(self, info: StoreInfo) -> None:
        self.info = info

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """Returns nothing."""
        return ()

    def namespaces(self, thread: str) -> Sequence[str]:
        """Returns nothing."""
        return ()

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """Returns nothing."""
        return ()

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """Yields nothing."""
        return iter(())

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """Returns nothing."""
        return ()

    def find_run(self, run_id: str) -> Sequence[str]:
        """Returns nothing."""
        return ()

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """Returns nothing."""
        return ()

    def close(self) -> None:
        """Does nothing."""


class ReadsThrough:
    """The reading methods of `agentctl.stores.base.Reader`, each done by the reader that `_reading` returns."""

    info: StoreInfo

    def _reading(self) -> Reader:
        raise NotImplementedError

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """See `Reader.heads`."""
        return self._reading().heads(metadata=metadata)

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`."""
        return self._reading().namespaces(thread)

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`."""
        return self._reading().rows(thread, ns, ids=ids, metadata=metadata)

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
        return self._reading().stored(thread, ns, ids, channels=channels, value_bytes=value_bytes)

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
        return self._reading().writes(thread, ns, ids, value_bytes=value_bytes, channels=channels)

    def find_run(self, run_id: str) -> Sequence[str]:
        """See `Reader.find_run`."""
        return self._reading().find_run(run_id)

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """See `Reader.memory`."""
        return self._reading().memory(prefix)

    @contextmanager
    def still(self, threads: Collection[str]) -> Iterator[Reader]:
        """See `agentctl.stores.moments.Stillable.still`."""
        with at_one_moment(self._reading(), threads) as still:
            yield still
