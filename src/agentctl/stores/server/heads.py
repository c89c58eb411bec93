"""The threads of a server as heads, each read when it is looked at: a server has no query for all heads at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, overload

from agentctl.records.rows import CheckpointRow, ThreadHead
from agentctl.stores.server.client import Raw
from agentctl.stores.server.states import State, parse_time

_NEVER: Final = datetime.min.replace(tzinfo=UTC)

ReadHead = Callable[[str], State | None]


class Heads(Sequence[ThreadHead]):
    """One head a thread, in the order of the threads; each costs a request when it is taken.

    Metadata is the thread's own and that of its head. A thread on which nothing ran has a head without an id. How many
    checkpoints a thread has takes reading all of them, so it is not counted.

    Args:
        threads: What the server says of each thread.
        read: Reads the newest state of the root namespace.
    """

    def __init__(self, threads: Sequence[Raw], read: ReadHead) -> None:
        self._threads = threads
        self._read = read

    def __len__(self) -> int:
        return len(self._threads)

    @overload
    def __getitem__(self, index: int) -> ThreadHead: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ThreadHead]: ...
    def __getitem__(self, index: int | slice) -> ThreadHead | Sequence[ThreadHead]:
        if isinstance(index, slice):
            return [self._head(raw) for raw in self._threads[index]]
        return self._head(self._threads[index])

    def _head(self, raw: Raw) -> ThreadHead:
        thread = str(raw["thread_id"])
        state = self._read(thread)
        row = CheckpointRow(thread, "", "", None, {}) if state is None else state.row
        row = row._replace(metadata={**_metadata(raw), **row.metadata})
        return ThreadHead(thread, None, "", row, (parse_time(raw.get("created_at")), parse_time(raw.get("updated_at"))))


def newest_first(threads: Iterable[Raw]) -> list[Raw]:
    """Returns threads in the order of their last update, newest first."""
    return sorted(threads, key=_updated_at, reverse=True)


def _updated_at(raw: Raw) -> tuple[datetime, str]:
    return parse_time(raw.get("updated_at")) or parse_time(raw.get("created_at")) or _NEVER, str(raw["thread_id"])


def _metadata(raw: Raw) -> dict[str, Any]:
    metadata = raw.get("metadata")
    return dict(metadata) if isinstance(metadata, dict) else {}
