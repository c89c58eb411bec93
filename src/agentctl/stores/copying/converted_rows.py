"""Rows that change their form on the way: read through the `Reader` protocol, written as the target keeps them.

What the target cannot hold raises `Refused`, naming channel and checkpoint. Walking these rows without writing them is
therefore the pre-flight of a copy between two kinds of store.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from agentctl.codec.encryption import decrypted, is_encrypted, sealed
from agentctl.codec.large import whole
from agentctl.codec.windows import windows_of
from agentctl.errors import DecodeError, Refused
from agentctl.records.rows import Large, Sliceable, Stored, StoredCheckpoint, WriteRow
from agentctl.stores.base import Reader, RowPick
from agentctl.stores.batches import in_chunks
from agentctl.stores.copying.compare import same_value
from agentctl.stores.copying.convert import (
    Document,
    Unholdable,
    is_delta_snapshot,
    require_json,
    require_text,
    to_document,
    to_state,
)
from agentctl.stores.copying.picking import by_namespace, by_rule, taken
from agentctl.stores.large import LARGE_BYTES, chunks_of, value_of, values_of

_IDS_PER_READ = 200

Row = tuple[object, ...]


class Picked(NamedTuple):
    """A checkpoint and all its values; the checkpoint itself holds none that are large."""

    checkpoint: StoredCheckpoint
    values: Mapping[str, Stored | Large]


@dataclass(frozen=True, slots=True)
class PostgresRows:
    """One checkpoint's row and the blob rows that no earlier checkpoint had."""

    checkpoint: Row
    blobs: tuple[Row, ...]
    n_bytes: int


def for_postgres(reader: Reader, thread: str, picks: Sequence[RowPick]) -> Iterator[PostgresRows]:
    """Yields the picked checkpoints as `CHECKPOINT_VALUES` and `BLOB_VALUES` of Postgres.

    Raises:
        Refused: Postgres cannot hold a value of a checkpoint.
    """
    known = _KnownBlobs(reader, thread)
    for checkpoint, values in picked_in_parts(reader, thread, picks):
        row = checkpoint.row
        try:
            if checkpoint.cipher:
                raise Unholdable(f"encrypted row ({checkpoint.cipher}), which is copied only to the same kind of store")
            require_text(namespace=row.ns, id=row.id, parent=row.parent)
            require_json(row.metadata, "metadata")
            document = to_document(checkpoint, values)
        except Unholdable as reason:
            raise _refused(reason, row.ns, row.id, "Postgres") from None
        body, metadata = json.dumps(document.body), json.dumps(dict(row.metadata))
        yield PostgresRows(
            (row.ns, row.id, row.parent, None, body, metadata),
            tuple(known.new_of(checkpoint, document)),
            len(body) + len(metadata) + sum(len(value.data) for value in document.blobs.values()),
        )


def for_sqlite(reader: Reader, thread: str, picks: Sequence[RowPick]) -> Iterator[Row]:
    """Yields the picked checkpoints as `CHECKPOINT_VALUES` of SQLite.

    Postgres encrypts values one by one, and leaves scalars plain; SQLite encrypts whole rows. So encrypted values are
    opened, and the row with all of them is sealed.

    Raises:
        Refused: SQLite cannot hold a value of a checkpoint, or it cannot be opened.
    """
    for found in picked_in_parts(reader, thread, picks):
        row = found.checkpoint.row
        try:
            checkpoint, values = opened(found)
            state = to_state(checkpoint, values)
        except Unholdable as reason:
            raise _refused(reason, row.ns, row.id, "SQLite") from None
        except DecodeError as error:
            raise Refused(
                f"checkpoint {row.id} cannot become a row of SQLite: {error.message}", hint=error.hint
            ) from None
        if checkpoint.cipher:
            state = sealed(whole(state), checkpoint.cipher)
        metadata = json.dumps(dict(row.metadata), ensure_ascii=False).encode("utf-8", "surrogatepass")
        yield (row.ns, row.id, row.parent, state.type, chunks_of(state.data), metadata)


def converted_writes(reader: Reader, thread: str, picks: Sequence[RowPick], *, target: str) -> Iterator[Row]:
    """Yields the writes that the picks take as `WRITE_VALUES`, whose form is the same in both kinds of store.

    Args:
        reader: The source.
        thread: Its thread.
        picks: Rows.
        target: Name of the target's kind, for messages.

    Raises:
        Refused: A write of SQLite is encrypted, or one of its texts does not fit.
    """
    for write in lean_writes(reader, thread, picks):
        value = written(reader, thread, write)
        try:
            if target == "Postgres":
                if is_encrypted(value) and reader.info.kind != "postgres":
                    raise Unholdable(f"encrypted write ({value.type}), which is copied only to the same kind of store")
                require_text(channel=write.channel, task=write.task_id, path=write.task_path, type=value.type)
        except Unholdable as reason:
            raise _refused(f"channel {write.channel}: {reason}", write.ns, write.checkpoint_id, target) from None
        yield (
            write.ns,
            write.checkpoint_id,
            write.task_id,
            write.task_path or "",
            write.idx,
            write.channel,
            value.type,
            chunks_of(value.data),
        )


def opened(found: Picked) -> Picked:
    """Returns a checkpoint whose encrypted values are opened, with the cipher that its row is to be sealed with.

    Raises:
        DecodeError: The key is missing or wrong.
    """
    checkpoint, values = found
    ciphers = {value.type.partition("+")[2] for value in values.values() if is_encrypted(value)}
    if not ciphers:
        return found
    plain = {channel: decrypted(whole(value)) for channel, value in values.items()}
    return Picked(replace(checkpoint, values=plain, cipher=ciphers.pop()), plain)


def written(reader: Reader, thread: str, write: WriteRow) -> Stored | Large:
    """Returns the value of a write, as it lies in the store where it was left unread for its size."""
    return (value_of(reader, thread, write) if write.n_bytes > LARGE_BYTES else write.value) or Stored("null", b"")


def picked_writes(reader: Reader, thread: str, picks: Sequence[RowPick]) -> Iterator[WriteRow]:
    """Yields the writes that the picks take, with their values."""
    return _writes(reader, thread, picks, None)


def lean_writes(reader: Reader, thread: str, picks: Sequence[RowPick]) -> Iterator[WriteRow]:
    """Yields the writes that the picks take, large values unread."""
    return _writes(reader, thread, picks, LARGE_BYTES)


def _writes(reader: Reader, thread: str, picks: Sequence[RowPick], value_bytes: int | None) -> Iterator[WriteRow]:
    for rule, group in by_rule(picks).items():
        for ns, by_id in by_namespace(group).items():
            for ids in in_chunks(sorted(by_id), _IDS_PER_READ):
                found = reader.writes(thread, ns, ids, value_bytes=value_bytes, channels=rule.channels)
                yield from taken(by_id, found)


def unmaskable(what: str, why: str) -> Refused:
    """Returns the error for rows that cannot be read, so that nobody knows what in them is personal."""
    return Refused(
        f"{what} cannot be masked: {why}",
        hint="encrypted rows need LANGGRAPH_AES_KEY; what cannot be read is not copied where it has to be masked",
    )


def picked_checkpoints(reader: Reader, thread: str, picks: Sequence[RowPick]) -> Iterator[StoredCheckpoint]:
    """Yields the picked checkpoints with all their values, by namespace, oldest first."""
    return _stored(reader, thread, picks, None)


def picked_in_parts(reader: Reader, thread: str, picks: Sequence[RowPick]) -> Iterator[Picked]:
    """Yields the picked checkpoints with all their values, large ones as they lie in the store."""
    for checkpoint in _stored(reader, thread, picks, LARGE_BYTES):
        yield Picked(checkpoint, values_of(reader, checkpoint))


def _stored(
    reader: Reader, thread: str, picks: Sequence[RowPick], value_bytes: int | None
) -> Iterator[StoredCheckpoint]:
    for ns, by_id in by_namespace(picks).items():
        for checkpoint in reader.stored(thread, ns, sorted(by_id), value_bytes=value_bytes):
            if checkpoint.damage is not None and reader.info.masked:
                raise unmaskable(f"checkpoint {checkpoint.row.id}", checkpoint.damage)
            yield checkpoint


def sha256_of(data: Sliceable) -> bytes:
    """Returns the SHA-256 of some bytes, by which those of two stores are compared, a window at a time."""
    if isinstance(data, bytes):
        return sha256(data).digest()
    state = sha256()
    for window in windows_of(data, window_bytes=LARGE_BYTES):
        state.update(window)
    return state.digest()


@dataclass(slots=True)
class _KnownBlobs:
    """The blob rows made so far. Postgres keeps one value a version; SQLite repeats it in every checkpoint."""

    reader: Reader
    thread: str
    _seen: dict[tuple[str, str, str], tuple[bytes | None, str]] = field(default_factory=dict)

    def new_of(self, checkpoint: StoredCheckpoint, document: Document) -> Iterator[Row]:
        """Yields the blob rows of a checkpoint that no earlier checkpoint had, as `BLOB_VALUES`.

        Raises:
            Refused: An earlier checkpoint has the same version of a channel with another value, as when a node changes
                state in place: Postgres would give both the same one.
        """
        ns, id = checkpoint.row.ns, checkpoint.row.id
        for channel, version in document.versions.items():
            blob = document.blobs.get(channel)
            digest = None if blob is None else blob.type.encode() + b"\x00" + sha256_of(blob.data)
            key = (ns, channel, version)
            if key not in self._seen:
                self._seen[key] = (digest, id)
            elif self._seen[key][0] == digest:
                continue
            elif not self._is_same(key, blob):
                other = self._seen[key][1]
                reason = f"channel {channel}: a value that differs from checkpoint {other}'s under the same version"
                raise _refused(reason, ns, id, "Postgres")
            elif self._seen[key][0] is None:
                self._seen[key] = (digest, id)
            else:
                continue
            if blob is not None:
                yield (ns, channel, version, blob.type, chunks_of(blob.data))

    def _is_same(self, key: tuple[str, str, str], blob: Stored | Large | None) -> bool:
        """Tells whether a version's value is the one seen first; None where the checkpoint stores none of its own.

        A delta channel that was not written since its snapshot is stored nowhere, and its value is the snapshot's.
        """
        ns, channel, _ = key
        digest, id = self._seen[key]
        if digest is None:
            return blob is not None and is_delta_snapshot(blob)
        first = next(iter(self.reader.stored(self.thread, ns, [id], channels=[channel]))).values[channel]
        return is_delta_snapshot(first) if blob is None else same_value(first, whole(blob))


def _refused(reason: object, ns: str, id: str, target: str) -> Refused:
    where = f" in namespace {ns}" if ns else ""
    return Refused(
        f"{target} cannot hold checkpoint {id}{where} exactly: {reason}",
        hint="copy into the same kind of store as the source: --to FILE.sqlite or --to postgresql://..."
        if target == "Postgres"
        else "copy into a Postgres database: --to postgresql://...",
    )
