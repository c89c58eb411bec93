"""Large values of a Postgres database, read in parts by the server.

A value that the server compressed is opened from its beginning for every part of it, so that parts are of megabytes.
Inline text is taken out of its whole document for every part: its parts are longer.

Source: www.postgresql.org/docs/18/storage-toast.html; `PostgresSaver.put` (langgraph-checkpoint-postgres 3.2.0) keeps
text inline, in the document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentctl.records.rows import Large, Stored, WriteRow
from agentctl.stores.large import LARGE_BYTES, Chunks, changed
from agentctl.stores.postgres.states import Fetch, text_head

_TEXT_CHUNK_BYTES: Final = 10 * 1024 * 1024
_CHUNK_BYTES: Final = 5 * 1024 * 1024
"""Of a chunk there are three while it comes: as the server sent it, as it is given on, and the one before it."""
_N_CHUNKS: Final = 10
_BEGINNING_CHARACTERS: Final = 64
"""Of inline text so much is read with its length: what kind of value it is takes no more."""
_TEXT: Final = "checkpoint #>> ARRAY['channel_values', %s::text]"
"""Inline text by its channel, without a copy of all inline values on the way."""
_VERSION: Final = (
    "(SELECT checkpoint -> 'channel_versions' ->> %s FROM {checkpoints}"
    " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s)"
)
_BLOB: Final = "FROM {blobs} WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = %s"
_WRITE: Final = (
    "FROM {writes} WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s AND task_id = %s AND idx = %s"
)
_CHECKPOINT: Final = "FROM {checkpoints} WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"


def large_value(fetch: Fetch, thread: str, ns: str, id: str, channel: str) -> Large | None:
    """Returns a channel's value in a checkpoint: its blob, or its inline text; None for any other inline value.

    Args:
        fetch: Runs a statement in a transaction of its own.
        thread: Exact thread id.
        ns: Namespace.
        id: The checkpoint.
        channel: The channel.
    """
    found = fetch(
        f"SELECT version {_BLOB.removesuffix('%s')}{_VERSION} AND type <> 'empty'",
        (thread, ns, channel, channel, thread, ns, id),
    )
    if found:
        return large_blob(fetch, thread, ns, channel, found[0][0])
    is_text = fetch(
        f"SELECT 1 {_CHECKPOINT} AND jsonb_typeof(checkpoint -> 'channel_values' -> %s) = 'string'",
        (thread, ns, id, channel),
    )
    return large_text(fetch, thread, ns, id, channel) if is_text else None


def large_blob(fetch: Fetch, thread: str, ns: str, channel: str, version: str) -> Large:
    """Returns the value of a channel's version."""
    key = (thread, ns, channel, version)
    found = fetch(f"SELECT type, octet_length(blob) {_BLOB}", key)
    if not found:
        raise changed()
    type_, n_bytes = found[0]
    return Large(type_, _in_chunks(fetch, "blob", _BLOB, key, n_bytes or 0))


def large_text(fetch: Fetch, thread: str, ns: str, id: str, channel: str) -> Large:
    """Returns inline text of a checkpoint, as SQLite keeps it."""
    key = (channel, thread, ns, id)
    found = fetch(
        f"SELECT octet_length(whole), convert_to(left(whole, {_BEGINNING_CHARACTERS}), 'UTF8')"
        f" FROM (SELECT {_TEXT} AS whole {_CHECKPOINT} OFFSET 0) AS one",
        key,
    )
    if not found:
        raise changed()
    n_bytes, beginning = found[0]
    text = f"convert_to({_TEXT}, 'UTF8')"
    rest = _in_chunks(fetch, text, _CHECKPOINT, key, n_bytes or 0, chunk_bytes=_TEXT_CHUNK_BYTES)
    return Large("msgpack", _Headed(text_head(len(rest)), bytes(beginning or b""), rest))


def large_write(fetch: Fetch, thread: str, write: WriteRow) -> Stored | Large:
    """Returns the value of a write."""
    key = (thread, write.ns, write.checkpoint_id, write.task_id, write.idx)
    found = fetch(f"SELECT type, octet_length(blob) {_WRITE}", key)
    if not found:
        raise changed()
    type_, n_bytes = found[0]
    return Large(type_ or "", _in_chunks(fetch, "blob", _WRITE, key, n_bytes or 0))


class _Hashed(Chunks):
    """A value read as it is sliced, whose hash the server tells."""

    def __init__(
        self,
        n_bytes: int,
        read: Callable[[int, int], bytes],
        digest: Callable[[], bytes],
        *,
        chunk_bytes: int | None = None,
    ) -> None:
        super().__init__(n_bytes, read, chunk_bytes=chunk_bytes)
        self._digest = digest

    def digest(self) -> bytes:
        """See `agentctl.codec.large.Hashed`."""
        return self._digest()


class _Headed:
    """Text of the server with what stands in front of it, and with its beginning at hand."""

    is_sound = True  # of text in its documents the server has seen that it is UTF-8

    def __init__(self, head: bytes, beginning: bytes, rest: _Hashed) -> None:
        self._head = head
        self._known = head + beginning
        self._rest = rest

    def __len__(self) -> int:
        return len(self._head) + len(self._rest)

    def __getitem__(self, part: slice, /) -> bytes:
        start, stop, _ = part.indices(len(self))
        if stop <= len(self._known):
            return self._known[start:stop]
        n_head = len(self._head)
        return self._head[start:stop] + self._rest[max(start - n_head, 0) : stop - n_head]

    def digest(self) -> bytes:
        """See `agentctl.codec.large.Hashed`. What is in front follows from how many there are."""
        return self._rest.digest()


def _in_chunks(
    fetch: Fetch,
    value: str,
    source: str,
    parameters: tuple[object, ...],
    n_bytes: int,
    *,
    chunk_bytes: int | None = None,
) -> _Hashed:
    """Returns a value as it is sliced. OFFSET keeps an expression from being worked out twice."""

    def told(what: str, *given: object) -> bytes:
        found = fetch(
            f"SELECT octet_length(whole), {what} FROM (SELECT {value} AS whole {source} OFFSET 0) AS one",
            (*given, *parameters),
        )
        if not found or found[0][0] != n_bytes:
            raise changed()
        return bytes(found[0][1])

    def read(start: int, n_asked: int) -> bytes:
        return told("substring(whole FROM %s FOR %s)", start + 1, n_asked)

    return _Hashed(n_bytes, read, lambda: told("sha256(whole)"), chunk_bytes=chunk_bytes or _chunk_bytes(n_bytes))


def _chunk_bytes(n_bytes: int) -> int:
    return min(max(n_bytes // _N_CHUNKS, LARGE_BYTES), _CHUNK_BYTES)
