"""Putting a checkpoint's values together on Postgres: inline ones from its row, the others from blob rows.

Source: langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/__init__.py (`put`: text, numbers, booleans and null
stay inline, a DeltaChannel snapshot is an inline `true` with a blob; `get_tuple`: blobs win over inline values, type
`empty` is no value) and base.py (`_migrate_pending_sends`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgpack  # type: ignore[import-untyped]

from agentctl.records.rows import CheckpointRow, Stored, StoredCheckpoint
from agentctl.stores import bookkeeping
from agentctl.stores.batches import by_size
from agentctl.stores.bookkeeping import PENDING_SENDS_CHANNEL, SENDS_MOVED_IN_FORMAT
from agentctl.stores.postgres.layout import TASK_PATH

Document = tuple[CheckpointRow, Mapping[str, Any], Mapping[str, int] | None]
"""A row, its `checkpoint` column, and the bytes of the inline text, by channel, that is left out of it as too large."""

_Key = tuple[str, str]
"""(channel, version) of a blob row."""

_BATCH_BYTES = 8 * 1024 * 1024
_DELTA_COUNTERS = "counters_since_delta_snapshot"


Parameters = tuple[object, ...] | Mapping[str, object]


class Fetch(Protocol):
    """Runs one statement in a transaction of its own."""

    def __call__(self, query: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Returns all rows."""
        ...


class StateQueries:
    """Reads the values of one namespace's checkpoints.

    Args:
        fetch: Runs a statement; `{blobs}` and `{writes}` in it are the tables.
        thread: Thread id.
        ns: Namespace.
        channels: Values of only these channels; None for all.
        value_bytes: Values up to this many bytes are read; None for all.
        has_task_path: Whether writes have a task path.
    """

    def __init__(
        self,
        fetch: Fetch,
        thread: str,
        ns: str,
        channels: frozenset[str] | None,
        *,
        value_bytes: int | None,
        has_task_path: bool,
    ) -> None:
        self._fetch = fetch
        self._thread = thread
        self._ns = ns
        self._channels = channels
        self._value_bytes = value_bytes
        self._task_order = f"{TASK_PATH}, task_id, idx" if has_task_path else "task_id, idx"

    def states(self, documents: Sequence[Document]) -> Iterator[StoredCheckpoint]:
        """Yields the checkpoints of `documents` in order, a few megabytes of blobs at a time."""
        odd = {row.id for row, document, _ in documents if not isinstance(document, Mapping)}
        documents = [(row, bookkeeping.as_map(document), left_out) for row, document, left_out in documents]
        keys = {row.id: self._blob_keys(document) for row, document, _ in documents}
        sizes = self._blob_sizes({key for found in keys.values() for key in found})
        lost = self._lost(documents, keys, sizes)
        sends = self._old_sends(documents)
        by_id = {document[0].id: document for document in documents}
        read = {key: size for key, size in sizes.items() if self._value_bytes is None or size <= self._value_bytes}
        weights = [(id_, sum(read.get(key, 0) for key in found)) for id_, found in keys.items()]
        for batch in by_size(weights, _BATCH_BYTES, len(weights)):
            blobs = self._blobs({key for id_ in batch for key in keys[id_] if key in read})
            for id_ in batch:
                row, document, left_out = by_id[id_]
                if id_ in odd:
                    why = "it is no JSON object, or is nested too deeply"
                    yield bookkeeping.damaged(row, f"checkpoint {id_} is damaged: {why}")
                    continue
                values = self._inline(document, left_out or {}) | {
                    key[0]: blobs[key] for key in keys[id_] if key in blobs
                }
                if row.parent in sends and document_format(document) < SENDS_MOVED_IN_FORMAT:
                    values[PENDING_SENDS_CHANNEL] = sends[row.parent]
                state = bookkeeping.from_document(row, document, values, missing_blobs=lost.get(id_, ()))
                unread = {name: len(text_head(n_bytes)) + n_bytes for name, n_bytes in (left_out or {}).items()}
                unread |= {key[0]: sizes[key] for key in keys[id_] if key in sizes.keys() - read.keys()}
                yield bookkeeping.without_large_values(state, self._value_bytes, unread)

    def _is_wanted(self, channel: str) -> bool:
        return self._channels is None or channel in self._channels

    def _inline(self, document: Mapping[str, Any], left_out: Collection[str]) -> dict[str, Stored]:
        values = bookkeeping.as_map(document.get("channel_values"))
        return {
            name: inline_value(value)
            for name, value in values.items()
            if self._is_wanted(name) and name not in left_out
        }

    def _blob_keys(self, document: Mapping[str, Any]) -> list[_Key]:
        versions = bookkeeping.as_map(document.get("channel_versions"))
        return [(name, blob_version(version)) for name, version in versions.items() if self._is_wanted(name)]

    def _blob_sizes(self, keys: Collection[_Key]) -> dict[_Key, int]:
        """Returns the bytes of the blob rows that are there and hold a value."""
        found = self._by_key("b.channel, b.version, coalesce(octet_length(b.blob), 0)", "b.type <> 'empty'", keys)
        return {(channel, version): n_bytes for channel, version, n_bytes in found}

    def _blobs(self, keys: Collection[_Key]) -> dict[_Key, Stored]:
        found = self._by_key("b.channel, b.version, b.type, b.blob", "b.type <> 'empty'", keys)
        return {(channel, version): Stored(type_, bytes(blob or b"")) for channel, version, type_, blob in found}

    def _by_key(self, columns: str, condition: str, keys: Collection[_Key]) -> list[tuple[Any, ...]]:
        if not keys:
            return []
        channels, versions = zip(*keys, strict=True)
        return self._fetch(
            f"SELECT {columns} FROM unnest(%s::text[], %s::text[]) AS wanted(channel, version) JOIN {{blobs}} b"
            " ON b.thread_id = %s AND b.checkpoint_ns = %s AND b.channel = wanted.channel"
            f" AND b.version = wanted.version WHERE {condition}",
            (list(channels), list(versions), self._thread, self._ns),
        )

    def _lost(
        self, documents: Sequence[Document], keys: Mapping[str, Sequence[_Key]], sizes: Mapping[_Key, int]
    ) -> dict[str, tuple[str, ...]]:
        """Returns, by checkpoint id, channels whose value is gone.

        A version without inline value and blob is normal for a channel that was emptied, is untracked, or is a
        DeltaChannel between snapshots. It is a loss where the channel has blobs under other versions and is none of
        these; a channel that lost its only blob cannot be told from one that never had any.
        """
        bare = {
            row.id: [key for key in keys[row.id] if key not in sizes and _should_have_blob(key[0], row, document)]
            for row, document, _ in documents
        }
        candidates = {key for found in bare.values() for key in found}
        if not candidates:
            return {}
        marked_empty = {
            (channel, version)
            for channel, version in self._by_key("b.channel, b.version", "b.type = 'empty'", candidates)
        }
        holding = self._channels_with_blobs({channel for channel, _ in candidates - marked_empty})
        return {
            id_: tuple(key[0] for key in found if key not in marked_empty and key[0] in holding)
            for id_, found in bare.items()
        }

    def _channels_with_blobs(self, channels: Collection[str]) -> frozenset[str]:
        found = self._fetch(
            "SELECT DISTINCT channel FROM {blobs} WHERE thread_id = %s AND checkpoint_ns = %s AND channel = ANY(%s)"
            " AND type <> 'empty'",
            (self._thread, self._ns, list(channels)),
        )
        return frozenset(channel for (channel,) in found)

    def _old_sends(self, documents: Iterable[Document]) -> dict[str | None, Stored]:
        """Returns by parent id the Sends that formats before 4 leave among the parent's writes, as one list."""
        parents = [
            row.parent
            for row, document, _ in documents
            if row.parent and document_format(document) < SENDS_MOVED_IN_FORMAT
        ]
        if not parents or not self._is_wanted(PENDING_SENDS_CHANNEL):
            return {}
        found = self._fetch(
            "SELECT checkpoint_id, type, blob FROM {writes} WHERE thread_id = %s AND checkpoint_ns = %s"
            f" AND checkpoint_id = ANY(%s) AND channel = %s ORDER BY checkpoint_id, {self._task_order}",
            (self._thread, self._ns, parents, PENDING_SENDS_CHANNEL),
        )
        sends: dict[str | None, list[bytes]] = {}
        for parent, type_, blob in found:
            if type_ == "msgpack":
                sends.setdefault(parent, []).append(bytes(blob))
        header = msgpack.Packer().pack_array_header
        return {parent: Stored("msgpack", header(len(parts)) + b"".join(parts)) for parent, parts in sends.items()}


def _should_have_blob(channel: str, row: CheckpointRow, document: Mapping[str, Any]) -> bool:
    delta = row.metadata.get(_DELTA_COUNTERS)
    return (
        channel not in bookkeeping.as_map(document.get("channel_values"))
        and not channel.startswith(("__", "branch:to:"))
        and not (isinstance(delta, Mapping) and channel in delta)
    )


def document_format(document: Mapping[str, Any]) -> int:
    """Returns the format of a document, 1 where it names none."""
    version = document.get("v")
    return version if isinstance(version, int) else 1


def inline_value(value: object) -> Stored:
    """Returns an inline value as it would lie inside a SQLite row; JSON where msgpack cannot hold it."""
    try:
        return Stored("msgpack", msgpack.packb(value))
    except OverflowError:
        return bookkeeping.json_value(value)


def text_head(n_bytes: int) -> bytes:
    """Returns what stands in front of packed text of so many bytes."""
    if n_bytes < 1 << 5:
        return bytes([0xA0 | n_bytes])
    first, width = next((first, 1 << i) for i, first in enumerate((0xD9, 0xDA, 0xDB)) if n_bytes < 1 << (8 << i))
    return bytes([first]) + n_bytes.to_bytes(width, "big")


def blob_version(version: object) -> str:
    """Returns a channel's version as its blob row has it."""
    return version if isinstance(version, str) else json.dumps(version)
