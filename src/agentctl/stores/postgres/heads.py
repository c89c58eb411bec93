"""Heads of many threads from one Postgres database; see `agentctl.stores.heads`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentctl.records.rows import Stored, StoredCheckpoint
from agentctl.stores import bookkeeping
from agentctl.stores.fetched import checkpoint_row
from agentctl.stores.heads import HeadState
from agentctl.stores.postgres.states import Fetch, blob_version, document_format, inline_value

_DOCUMENT_BYTES: Final = 4000
"""Of documents as the server keeps them, above which they are left out: they may hold long text, compressed."""

_BLOB_BYTES: Final = 64 * 1024

_HEADS = (
    "SELECT c.thread_id, c.checkpoint_id, c.parent_checkpoint_id, c.metadata, c.checkpoint, EXISTS (SELECT 1"
    " FROM {writes} w WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = '' AND w.checkpoint_id = c.checkpoint_id)"
    " FROM unnest(%s::text[], %s::text[]) AS head(thread_id, checkpoint_id) JOIN {checkpoints} c"
    " ON c.thread_id = head.thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = head.checkpoint_id"
    " WHERE pg_column_size(c.checkpoint) <= %s"
)
_BLOBS = (
    "SELECT b.thread_id, b.channel, b.type, CASE WHEN octet_length(b.blob) <= %s THEN coalesce(b.blob, ''::bytea) END"
    " FROM unnest(%s::text[], %s::text[], %s::text[]) AS wanted(thread_id, channel, version) JOIN {blobs} b"
    " ON b.thread_id = wanted.thread_id AND b.checkpoint_ns = '' AND b.channel = wanted.channel"
    " AND b.version = wanted.version WHERE b.type <> 'empty'"
)


def read_head_states(
    fetch: Fetch, heads: Sequence[tuple[str, str]], is_asked: Callable[[str], bool]
) -> Mapping[str, HeadState]:
    """Returns heads whose documents and asked values are small, by thread, in two statements."""
    threads, ids = [thread for thread, _ in heads], [checkpoint_id for _, checkpoint_id in heads]
    records = [record for record in fetch(_HEADS, (threads, ids, _DOCUMENT_BYTES)) if _is_plain(record[4])]
    blobs = _blobs(fetch, {record[0]: record[4] for record in records}, is_asked)
    return {
        record[0]: HeadState(_stored(record, values, is_asked), record[5])
        for record in records
        if (values := blobs[record[0]]) is not None
    }


def _is_plain(document: object) -> bool:
    """Tells whether a document's values are in it and in blobs; older formats have Sends among writes."""
    return isinstance(document, dict) and document_format(document) >= bookkeeping.SENDS_MOVED_IN_FORMAT


def _blobs(
    fetch: Fetch, documents: Mapping[str, Mapping[str, Any]], is_asked: Callable[[str], bool]
) -> dict[str, dict[str, Stored] | None]:
    """Returns the asked values that blobs hold, by thread and channel; None for a thread with a large one."""
    keys = [
        (thread, channel, blob_version(version))
        for thread, document in documents.items()
        for channel, version in bookkeeping.as_map(document.get("channel_versions")).items()
        if is_asked(channel)
    ]
    found: dict[str, dict[str, Stored] | None] = {thread: {} for thread in documents}
    if not keys:
        return found
    columns = [list(column) for column in zip(*keys, strict=True)]
    for thread, channel, type_, blob in fetch(_BLOBS, (_BLOB_BYTES, *columns)):
        values = found[thread]
        if blob is None:
            found[thread] = None
        elif values is not None:
            values[channel] = Stored(type_, bytes(blob))
    return found


def _stored(record: tuple[Any, ...], blobs: Mapping[str, Stored], is_asked: Callable[[str], bool]) -> StoredCheckpoint:
    thread, checkpoint_id, parent, metadata, document, _ = record
    inline = bookkeeping.as_map(document.get("channel_values"))
    values = {channel: inline_value(value) for channel, value in inline.items() if is_asked(channel)}
    row = checkpoint_row(thread, "", checkpoint_id, parent, metadata)
    return bookkeeping.from_document(row, document, {**values, **blobs})
