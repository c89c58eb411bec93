"""Values that are too large to be held: they stay in the store, and are read a chunk at a time as they are looked at.

Nothing stays open between two chunks, as between any two calls of a reader. A value is known by the key of its row,
which LangGraph writes once; one that is gone or has another length by the time it is read on is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, Protocol, runtime_checkable

from agentctl.errors import StoreError
from agentctl.records.rows import Large, Sliceable, Stored, StoredCheckpoint, WriteRow
from agentctl.stores.base import Reader

LARGE_BYTES: Final = 1024 * 1024
"""Values up to this size are read whole."""

_MAX_CHUNK_BYTES: Final = 8 * 1024 * 1024
_N_CHUNKS: Final = 10
"""A value is read in about so many chunks: to reach one, a store goes through all of the value before it."""


@runtime_checkable
class ReadsInParts(Reader, Protocol):
    """A reader whose store gives parts of a value."""

    def large_values(self, thread: str, ns: str, id: str, channels: Collection[str]) -> Mapping[str, Stored | Large]:
        """Returns values of a checkpoint; those that its store cannot give in parts are read whole."""
        ...

    def large_write(self, thread: str, write: WriteRow) -> Stored | Large:
        """Returns the value of a write; one that its store cannot give in parts is read whole."""
        ...


def values_of(reader: Reader, stored: StoredCheckpoint) -> Mapping[str, Stored | Large]:
    """Returns all values of a checkpoint, those that were left unread for their size as they lie in the store."""
    if not stored.unread:
        return stored.values
    row, channels = stored.row, list(stored.unread)
    if isinstance(reader, ReadsInParts):
        return {**stored.values, **reader.large_values(row.thread, row.ns, row.id, channels)}
    whole = next(iter(reader.stored(row.thread, row.ns, [row.id], channels=channels)), None)
    return {**stored.values, **({} if whole is None else whole.values)}


def value_of(reader: Reader, thread: str, write: WriteRow) -> Stored | Large | None:
    """Returns the value of a write, as it lies in the store where it was left unread for its size.

    None where it was not asked for because there is none, or is gone.
    """
    if write.value is not None:
        return write.value
    if isinstance(reader, ReadsInParts):
        return reader.large_write(thread, write)
    found = reader.writes(thread, write.ns, [write.checkpoint_id], channels=[write.channel])
    return next((one.value for one in found if (one.task_id, one.idx) == (write.task_id, write.idx)), None)


class Chunks:
    """A value of a store, read so many bytes at a time; the last of them are kept. Equal are those of equal bytes.

    Args:
        n_bytes: How many the value has.
        read: Returns its bytes from a position on, so many or to its end.
        chunk_bytes: How many are read at once, unless more are asked for; None for a tenth of it, of 1 to 8 MB.
    """

    def __init__(self, n_bytes: int, read: Callable[[int, int], bytes], *, chunk_bytes: int | None = None) -> None:
        self._n_bytes = n_bytes
        self._read = read
        self._chunk_bytes = chunk_bytes or min(max(n_bytes // _N_CHUNKS, LARGE_BYTES), _MAX_CHUNK_BYTES)
        self._start = 0
        self._held = b""

    def __len__(self) -> int:
        return self._n_bytes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chunks) or len(self) != len(other):
            return False
        return all(one == same for one, same in zip(self.windows(), other.windows(), strict=True))

    __hash__ = None  # type: ignore[assignment]

    def windows(self) -> Iterator[bytes]:
        """Yields all of it."""
        for start in range(0, self._n_bytes, self._chunk_bytes):
            yield self[start : start + self._chunk_bytes]

    def __getitem__(self, part: slice, /) -> bytes:
        start, stop, _ = part.indices(self._n_bytes)
        if not (self._start <= start and stop <= self._start + len(self._held)):
            self._held = b""  # let go before as much is read again
            wanted = min(max(stop - start, self._chunk_bytes), self._n_bytes - start)
            self._held, self._start = self._read(start, wanted) if wanted > 0 else b"", start
            if len(self._held) != max(wanted, 0):
                raise changed()
        return self._held[start - self._start : stop - self._start]


def chunks_of(data: Sliceable) -> Chunks | bytes:
    """Returns bytes as a row is given them: large ones in chunks, which a driver may hold several times."""
    if isinstance(data, bytes):
        return data
    return Chunks(len(data), lambda start, n_bytes: data[start : start + n_bytes], chunk_bytes=LARGE_BYTES)


def changed() -> StoreError:
    """Returns the error for a value that is not any more what it was when it was begun to be read."""
    return StoreError("a row was written again while it was read", hint="run the command again")
