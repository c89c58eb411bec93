"""A store as it looks with its personal data masked: what comes after it never sees the rest.

Everything that leaves a source goes through one reader: what is resolved, recorded, planned, copied, compared and kept.
Masking that reader therefore masks all of it, a copy's verification included, which reads the source through it too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from agentctl.errors import DecodeError, StoreError
from agentctl.masking.masker import Masker
from agentctl.records.masking import ValuePlace
from agentctl.records.rows import CheckpointRow, MemoryItem, Stored, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores.base import Reader
from agentctl.stores.batches import in_chunks
from agentctl.stores.copying.converted_rows import unmaskable
from agentctl.stores.masked import is_masked
from agentctl.stores.moments import at_one_moment
from agentctl.stores.stated import StatedTask, StatesTasks

_IDS_PER_READ: Final = 200
_METADATA: Final = ValuePlace("metadata", "")


def masked(reader: Reader, masker: Callable[[], Masker], *, trusts_marks: bool) -> Reader:
    """Returns a reader that gives what another one does, masked.

    Args:
        reader: The store. Its threads are read once before anything of them is given, to learn what is personal.
        masker: Gives what masks, one for all that is to be compared. It is asked for when there is something to mask,
            so that no key is kept for a thread that there is not.
        trusts_marks: Whether a thread that says that it is masked already is given as it is.
    """
    return _masked(reader, masker, _Known(trusts_marks))


@dataclass(slots=True)
class _Known:
    """What is known of a store, as it stands and as it stood at one moment.

    Attributes:
        trusts_marks: Whether a thread that says that it is masked already is given as it is.
        threads: Whether a thread is to be masked; what is personal in it has been learned then.
        memory: Whether what is personal in the memory store has been learned.
    """

    trusts_marks: bool
    threads: dict[str, bool] = field(default_factory=dict)
    memory: bool = False


def _masked(reader: Reader, masker: Callable[[], Masker], known: _Known) -> Reader:
    if isinstance(reader, StatesTasks):
        return MaskedStates(reader, masker, known)
    return MaskedReader(reader, masker, known)


class MaskedReader:
    """The rows of a store masked; see `agentctl.stores.base.Reader`. Ids, names, versions and structure are as stored.

    Values that nobody can read are refused where they are asked for.
    """

    def __init__(self, reader: Reader, masker: Callable[[], Masker], known: _Known) -> None:
        self.info = replace(reader.info, masked=True)
        self.covered = reader
        self._give_masker = masker
        self._known = known

    @property
    def _masker(self) -> Masker:
        return self._give_masker()

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """See `Reader.heads`."""
        heads = self.covered.heads(metadata=metadata)
        return [head._replace(head=self._row(head.head)) for head in heads] if metadata else heads

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`."""
        return self.covered.namespaces(thread)

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`."""
        rows = self.covered.rows(thread, ns, ids=ids, metadata=metadata)
        return [self._row(row) for row in rows] if metadata and self._masks(thread) else rows

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
        masks = self._masks(thread)
        for found in self.covered.stored(thread, ns, ids, channels=channels, value_bytes=value_bytes):
            yield self._checkpoint(found) if masks else found

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """See `Reader.writes`. Sizes of values that are not read are those of the store."""
        found = self.covered.writes(thread, ns, ids, value_bytes=value_bytes, channels=channels)
        return [self._write(write) for write in found] if value_bytes != 0 and self._masks(thread) else found

    def find_run(self, run_id: str) -> Sequence[str]:
        """See `Reader.find_run`."""
        return self.covered.find_run(run_id)

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """See `Reader.memory`. Namespaces and keys are masked as text, so that what a graph looks up is there."""
        self._learn_memory()
        found = [self._item(item) for item in self.covered.memory()]
        return [item for item in found if item.namespace[: len(prefix)] == prefix]

    @contextmanager
    def still(self, threads: Collection[str]) -> Iterator[Reader]:
        """See `agentctl.stores.moments.Stillable.still`."""
        with at_one_moment(self.covered, threads) as still:
            yield self if still is self.covered else _masked(still, self._give_masker, self._known)

    def close(self) -> None:
        """See `Reader.close`."""
        self.covered.close()

    def _masks(self, thread: str) -> bool:
        """Says whether a thread is to be masked; what is personal in it has been learned then."""
        known = self._known.threads.get(thread)
        if known is None:
            if not self.covered.namespaces(thread):
                return False
            known = not (self._known.trusts_marks and is_masked(self.covered, thread))
            if known:
                self._learn_memory()
                self._learn(thread)
            self._known.threads[thread] = known
        return known

    def _learn(self, thread: str) -> None:
        """Reads all of a thread, so that a name that a field tells is known in every text, the older ones too."""
        for ns in self.covered.namespaces(thread):
            ids = [row.id for row in self.covered.rows(thread, ns, metadata=False)]
            for chunk in in_chunks(ids, _IDS_PER_READ):
                for checkpoint in self.covered.stored(thread, ns, chunk):
                    self._masker.learn_plain(checkpoint.row.metadata, _METADATA)
                    for channel, value in checkpoint.values.items():
                        self._learn_stored(value, ValuePlace("channel", channel))
                for write in self.covered.writes(thread, ns, chunk):
                    self._learn_stored(write.value, ValuePlace("write", write.channel))

    def _learn_memory(self) -> None:
        """Learns from the memory store before anything else: what came later would make equal texts different."""
        if self._known.memory:
            return
        self._known.memory = True
        try:
            for item in self.covered.memory():
                self._masker.learn_plain(item.value, ValuePlace("memory", item.key))
        except StoreError:
            return  # of a role that may read checkpoints alone; who asks for the items is told

    def _learn_stored(self, value: Stored | None, place: ValuePlace) -> None:
        if value is None:
            return
        try:
            self._masker.learn(value, place)
        except DecodeError:
            return  # refused where it is asked for

    def _row(self, row: CheckpointRow) -> CheckpointRow:
        metadata = self._masker.metadata(row.metadata)
        return row if metadata is row.metadata else row._replace(metadata=metadata)

    def _checkpoint(self, found: StoredCheckpoint) -> StoredCheckpoint:
        id = found.row.id
        values = {
            channel: self._value(value, ValuePlace("channel", channel), id) for channel, value in found.values.items()
        }
        return replace(found, row=self._row(found.row), values=values)

    def _write(self, write: WriteRow) -> WriteRow:
        if write.value is None:
            return write
        value = self._value(write.value, ValuePlace("write", write.channel), write.checkpoint_id)
        return write if value is write.value else write._replace(value=value, n_bytes=len(value.data))

    def _value(self, value: Stored, place: ValuePlace, id: str) -> Stored:
        try:
            return self._masker.stored(value, place)
        except DecodeError as error:
            raise unmaskable(f"{place} of checkpoint {id}", error.message) from error

    def _item(self, item: MemoryItem) -> MemoryItem:
        value = self._masker.plain(item.value, ValuePlace("memory", item.key))
        return item._replace(
            namespace=tuple(self._masker.text(part) for part in item.namespace),
            key=self._masker.text(item.key),
            value=value if isinstance(value, Mapping) else item.value,
        )


class MaskedStates(MaskedReader):
    """The states of an Agent Server masked; see `agentctl.stores.stated.StatesTasks`."""

    def __init__(self, reader: StatesTasks, masker: Callable[[], Masker], known: _Known) -> None:
        super().__init__(reader, masker, known)
        self._states = reader

    def stated(self, thread: str, ns: str, ids: Collection[str]) -> Mapping[str, tuple[StatedTask, ...]]:
        """See `StatesTasks.stated`: ids, names and paths, which are not masked."""
        return self._states.stated(thread, ns, ids)

    def holds(self, thread: str) -> bool:
        """See `StatesTasks.holds`."""
        return self._states.holds(thread)

    def names(self) -> Sequence[str]:
        """See `StatesTasks.names`."""
        return self._states.names()

    def cut(self, thread: str, ns: str) -> str | None:
        """See `StatesTasks.cut`."""
        return self._states.cut(thread, ns)
