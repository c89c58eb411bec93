"""What the heads of many threads say of themselves, read at once: most threads are at rest, and that much tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from agentctl.records.rows import StoredCheckpoint
from agentctl.stores.base import Reader


class HeadState(NamedTuple):
    """One root checkpoint.

    Attributes:
        stored: Its row with metadata, its bookkeeping, and values of the channels that were asked for.
        has_writes: Whether any write is stored on it.
    """

    stored: StoredCheckpoint
    has_writes: bool


@runtime_checkable
class ReadsHeads(Reader, Protocol):
    """A reader whose store reads a page of threads in one short transaction."""

    def head_states(self, heads: Sequence[tuple[str, str]], is_asked: Callable[[str], bool]) -> Mapping[str, HeadState]:
        """Returns what heads say, by thread.

        Left out are those that are gone, and those for which `Reader.stored` has to do more: large states, old formats.

        Args:
            heads: (thread, id) of root checkpoints, each thread once.
            is_asked: Tells of a channel whether its value is to be read.
        """
        ...
