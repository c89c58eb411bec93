"""What a checkpoint row says about itself, decoded: metadata, channel versions, versions seen.

Channel values stay serialized: they are cut out of the row as they are. Maps that other writers leave out are empty.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py (`Checkpoint`); pregel/main.py of langgraph 1.2.24
(`_migrate_checkpoint`) for formats before 4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import msgpack  # type: ignore[import-untyped]

from agentctl.codec.encryption import decrypted
from agentctl.codec.packed import split_map
from agentctl.codec.windows import value_spans
from agentctl.errors import DecodeError
from agentctl.records.rows import CheckpointRow, Sliceable, Stored, StoredCheckpoint, Version

PENDING_SENDS_CHANNEL = "__pregel_tasks"
"""Where formats before 4 keep their `pending_sends` once they are read."""

SENDS_MOVED_IN_FORMAT = 4

_BOOKKEEPING = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
_JSON_TYPES = ("json", "Checkpoint")
"""The second is what LangGraph.js wrote before its serializers named a type (libs/checkpoint-sqlite/src/index.ts)."""
_scan: Callable[[str, int], tuple[object, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_NIL = b"\xc0"
_NOTHING_PENDING = (_NIL, b"\x90", b"null", b"[]")


def decode_metadata(raw: object) -> tuple[Mapping[str, object], str | None]:
    """Returns a row's metadata and, where it cannot be read, an empty map with the reason.

    Args:
        raw: JSON text or bytes, a map that a driver has decoded, or None.
    """
    if raw is None:
        return {}, None
    # Asked by type first: whether something is a Mapping takes as long to find out as short metadata to read.
    if type(raw) is dict or (type(raw) is not bytes and isinstance(raw, Mapping)):
        return raw, None
    try:
        # Text: `json.loads` would look for the encoding of bytes first, which takes as long as reading them.
        value = _loaded(raw.decode() if type(raw) is bytes else cast("str | bytes", raw))
    except (ValueError, TypeError) as error:
        return {}, f"metadata is not JSON: {error}"
    except RecursionError:
        return {}, "metadata is nested too deeply to be read"
    return (value, None) if isinstance(value, dict) else ({}, "metadata is not a JSON object")


def _loaded(text: str | bytes) -> object:
    """Returns what `json.loads` does; in a third of its time for text that begins and ends with the value."""
    if type(text) is str:
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            return json.loads(text)
        if end == len(text):
            return value
    return json.loads(text)


def names_run(metadata: Mapping[str, object], run_id: str) -> bool:
    """Says whether a row's metadata has `run_id` as a run or trace id (`run_id`, `langsmith_trace_id` ...)."""
    return any(value == run_id and name.endswith(("run_id", "trace_id")) for name, value in metadata.items())


def read_state(row: CheckpointRow, state: Stored, channels: Collection[str] | None) -> StoredCheckpoint:
    """Returns a checkpoint from the one value that holds all of it; `damage` says why where it cannot be read.

    Args:
        row: Whose state it is.
        state: A msgpack map, as Python writes it, or a JSON object (LangGraph.js, old Python versions); encrypted ones
            need LANGGRAPH_AES_KEY.
        channels: Values of only these channels; None for all.
    """
    try:
        opened = decrypted(state)
        cipher = state.type.partition("+")[2]
        if opened.type == "msgpack":
            return _sealed_with(cipher, _from_msgpack(row, opened.data, channels))
        if opened.type in _JSON_TYPES:
            return _sealed_with(cipher, _from_json(row, opened.data, channels))
    except DecodeError as error:
        return damaged(row, error.message)
    except (ValueError, KeyError, TypeError) as error:
        return damaged(row, f"checkpoint {row.id} is damaged: {error}")
    except RecursionError:
        return damaged(row, f"checkpoint {row.id} is nested too deeply to be read")
    return damaged(row, f"checkpoint {row.id} has the serialization type {state.type!r}, which is not read")


def _sealed_with(cipher: str, checkpoint: StoredCheckpoint) -> StoredCheckpoint:
    return replace(checkpoint, cipher=cipher) if cipher else checkpoint


def read_parts(
    row: CheckpointRow, state: Sliceable, channels: Collection[str] | None, value_bytes: int | None
) -> StoredCheckpoint:
    """Returns the same from a packed state that is too large to be held: only the asked parts of it are.

    Args:
        row: Whose state it is.
        state: A msgpack map.
        channels: Values of only these channels; None for all.
        value_bytes: Values up to this many bytes; None for all.
    """
    try:
        parts = value_spans(state)
        document: dict[str, object] = {name: _unpack(state[parts[name]]) for name in _BOOKKEEPING if name in parts}
        spans = _channel_spans(state, parts, document)
    except DecodeError as error:
        return damaged(row, error.message)
    except (ValueError, KeyError, TypeError) as error:
        return damaged(row, f"checkpoint {row.id} is damaged: {error}")
    sizes = {name: span.stop - span.start for name, span in spans.items() if channels is None or name in channels}
    unread = {name: size for name, size in sizes.items() if value_bytes is not None and size > value_bytes}
    values = {name: Stored("msgpack", state[spans[name]]) for name in sizes if name not in unread}
    return replace(from_document(row, document, values), unread=unread)


def value_places(state: Sliceable) -> Mapping[str, slice]:
    """Returns where the values of channels lie in a packed state.

    Raises:
        DecodeError: It is damaged.
    """
    parts = value_spans(state)
    document = {name: _unpack(state[parts[name]]) for name in ("v",) if name in parts}
    return _channel_spans(state, parts, document)


def without_large_values(
    checkpoint: StoredCheckpoint, value_bytes: int | None, unread: Mapping[str, int] = MappingProxyType({})
) -> StoredCheckpoint:
    """Returns a checkpoint whose values were read as if only those up to a size had been asked for.

    Args:
        checkpoint: With its values.
        value_bytes: The size; None for all.
        unread: Bytes of the values, by channel, that were not read for their size.
    """
    if value_bytes is None:
        return checkpoint
    held = {name: len(value.data) for name, value in checkpoint.values.items()}
    large = {name: n_bytes for name, n_bytes in held.items() if n_bytes > value_bytes} | dict(unread)
    if not large:
        return checkpoint
    values = {name: value for name, value in checkpoint.values.items() if name not in large}
    return replace(checkpoint, values=values, unread=large)


def from_document(
    row: CheckpointRow,
    document: Mapping[str, object],
    values: Mapping[str, Stored],
    *,
    missing_blobs: tuple[str, ...] = (),
) -> StoredCheckpoint:
    """Returns a checkpoint from its decoded bookkeeping (`v`, `ts`, `channel_versions` ...) and serialized values."""
    version, ts, updated = document.get("v"), document.get("ts"), document.get("updated_channels")
    return StoredCheckpoint(
        row=row,
        format=version if isinstance(version, int) else 1,
        channel_versions=_versions(document.get("channel_versions")),
        versions_seen={str(node): _versions(seen) for node, seen in as_map(document.get("versions_seen")).items()},
        values=values,
        updated_channels=tuple(str(name) for name in updated) if isinstance(updated, list) else None,
        missing_blobs=missing_blobs,
        ts=ts if isinstance(ts, str) else None,
    )


def json_value(value: object) -> Stored:
    """Returns a JSON value of a row as a stored value of its own."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can say
        text = json.dumps(value, separators=(",", ":")).encode()
    return Stored("json", text)


def _from_msgpack(row: CheckpointRow, data: bytes, channels: Collection[str] | None) -> StoredCheckpoint:
    parts = split_map(data)
    document: dict[str, object] = {name: _unpack(parts[name]) for name in _BOOKKEEPING if name in parts}
    packed = parts.get("channel_values", _NIL)
    values = {} if packed == _NIL else {name: Stored("msgpack", part) for name, part in split_map(packed).items()}
    sends = Stored("msgpack", parts["pending_sends"]) if "pending_sends" in parts else None
    return from_document(row, document, _chosen(document, values, sends, channels))


def _channel_spans(state: Sliceable, parts: Mapping[str, slice], document: Mapping[str, object]) -> Mapping[str, slice]:
    """Returns where the values of channels lie, old formats' pending sends among them."""
    packed, sends = parts.get("channel_values"), parts.get("pending_sends")
    is_empty = packed is None or state[packed.start : packed.start + 1] == _NIL
    spans = {} if packed is None or is_empty else value_spans(state, packed.start)
    if _is_old(document) and sends is not None and state[sends.start : sends.start + 1] not in _NOTHING_PENDING:
        spans[PENDING_SENDS_CHANNEL] = sends
    return spans


def _from_json(row: CheckpointRow, data: bytes, channels: Collection[str] | None) -> StoredCheckpoint:
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    values = {name: json_value(value) for name, value in as_map(document.get("channel_values")).items()}
    sends = json_value(document["pending_sends"]) if "pending_sends" in document else None
    return from_document(row, document, _chosen(document, values, sends, channels))


def damaged(row: CheckpointRow, why: str) -> StoredCheckpoint:
    """Returns a checkpoint of which the row is all that is known."""
    return StoredCheckpoint(row, format=0, channel_versions={}, versions_seen={}, values={}, damage=why)


def _chosen(
    document: Mapping[str, object], values: dict[str, Stored], sends: Stored | None, channels: Collection[str] | None
) -> dict[str, Stored]:
    """Returns the asked channels, old formats' pending sends among them as the channel they became."""
    if _is_old(document) and sends is not None and sends.data not in _NOTHING_PENDING:
        values[PENDING_SENDS_CHANNEL] = sends
    return values if channels is None else {name: value for name, value in values.items() if name in channels}


def _is_old(document: Mapping[str, object]) -> bool:
    version = document.get("v")
    return not isinstance(version, int) or version < SENDS_MOVED_IN_FORMAT


def _versions(value: object) -> dict[str, Version]:
    return {name: v for name, v in as_map(value).items() if isinstance(name, str) and isinstance(v, str | int | float)}


def as_map(value: object) -> Mapping[str, Any]:
    """Returns a part of a document that should be a map, empty where it is anything else."""
    return value if isinstance(value, Mapping) else {}


def _unpack(data: bytes) -> object:
    return msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogatepass")
