"""A checkpoint's values as SQLite keeps them and as Postgres keeps them, one made from the other without loss.

SQLite holds a whole checkpoint as one msgpack map. Postgres holds scalars inline in a JSONB document and every other
value as a blob row of its own. A value crosses as the slice of msgpack that it is; only inline scalars are decoded.

LangGraph.js, and Python before msgpack, wrote JSON: one object on SQLite, a JSON blob for every value on Postgres,
scalars too (LangGraph.js reads nothing inline). JSON stays JSON on both sides, because objects in it (`lc`) are no
plain data: LangGraph builds them from JSON and would leave a msgpack map as it is.

What the other side cannot hold is never bent into shape: `Unholdable` says why.

Source: `PostgresSaver.put` and `_dump_blobs` (langgraph-checkpoint-postgres 3.2.0), `SqliteSaver.put`
(langgraph-checkpoint-sqlite 3.1.2), `JsonPlusSerializer.dumps_typed` (langgraph-checkpoint 4.3.2); langgraphjs,
libs/checkpoint-sqlite/src/index.ts (`put`) and libs/checkpoint-postgres/src/index.ts (`_dumpBlobs`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

import ormsgpack

from agentctl.codec.large import whole
from agentctl.codec.packed import join_map, map_parts
from agentctl.codec.windows import Joined, Span
from agentctl.records.rows import Large, Sliceable, Stored, StoredCheckpoint
from agentctl.stores.bookkeeping import json_value

T = TypeVar("T")
Scalar = str | int | float | bool | None

EXT_DELTA_SNAPSHOT = 7
"""msgpack extension code of a delta channel's snapshot (langgraph-checkpoint 4.3.2, serde/jsonplus.py)."""

_JSON_SNAPSHOT = b'{"lc":2,"type":"delta_snapshot"'
_EXACT_FLOAT_LIMIT = 1e16
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1
_SENDS_IN_CHECKPOINT_FORMAT = 4
_N_EXT_HEADER_BYTES = {0xC7: 2, 0xC8: 3, 0xC9: 5, 0xD4: 1, 0xD5: 1, 0xD6: 1, 0xD7: 1, 0xD8: 1}
_N_BIN_HEADER_BYTES = {0xC4: 2, 0xC5: 3, 0xC6: 5}
_LONG_BYTES = b"\xc6"


class Unholdable(ValueError):
    """The target cannot hold a value exactly; the text says why, starting with a lower-case noun."""


@dataclass(frozen=True, slots=True)
class Document:
    """A checkpoint as Postgres keeps it: `body` for the JSONB column, `blobs` by channel, versions as text."""

    body: Mapping[str, object]
    blobs: Mapping[str, Stored | Large]
    versions: Mapping[str, str]


def to_document(checkpoint: StoredCheckpoint, values: Mapping[str, Stored | Large] | None = None) -> Document:
    """Returns a checkpoint as the Postgres saver would have written it.

    Args:
        checkpoint: It.
        values: All its values, where it was read without large ones; None for those that it holds.

    Raises:
        Unholdable: Prefixed with the channel where one value is at fault.
    """
    _require_readable(checkpoint)
    inline: dict[str, object] = {}
    blobs: dict[str, Stored | Large] = {}
    for channel, stored in (checkpoint.values if values is None else values).items():
        try:
            _require_text(channel)
            value = _inline_or_blob(stored)
            if not isinstance(value, _Inline):
                if channel not in checkpoint.channel_versions:
                    raise Unholdable("value without a version, so there is no key for its blob row")
                blobs[channel] = value
                if stored.type != "json" and is_delta_snapshot(stored):
                    inline[channel] = True  # how Python's saver marks one
            else:
                _require_scalar(value.value)
                inline[channel] = value.value
        except Unholdable as reason:
            raise Unholdable(f"channel {channel}: {reason}") from None
    body = {**_bookkeeping(checkpoint), "channel_values": inline}
    require_json({key: body[key] for key in ("channel_versions", "versions_seen", "updated_channels")})
    versions = {channel: _version_text(version) for channel, version in checkpoint.channel_versions.items()}
    return Document(body, blobs, versions)


def to_state(checkpoint: StoredCheckpoint, values: Mapping[str, Stored | Large] | None = None) -> Stored | Large:
    """Returns a checkpoint as the one value that a SQLite saver would have written: that of Python, or of LangGraph.js.

    Args:
        checkpoint: It.
        values: All its values, where it was read without large ones; None for those that it holds.

    Raises:
        Unholdable: Prefixed with the channel where one value is at fault.
    """
    _require_readable(checkpoint)
    given = checkpoint.values if values is None else values
    present = {channel: stored for channel, stored in given.items() if stored.type != "empty"}
    if any(stored.type == "json" and not _is_plain_json(whole(stored).data) for stored in present.values()):
        return _json_state(checkpoint, present)
    packed = {name: ormsgpack.packb(value) for name, value in _bookkeeping(checkpoint).items()}
    slices = dict(_each(present, packed_form))
    if all(isinstance(value, bytes) for value in slices.values()):
        held = cast(Mapping[str, bytes], slices)
        return Stored("msgpack", join_map({**packed, "channel_values": join_map(held)}))
    return Large("msgpack", Joined(map_parts({**packed, "channel_values": Joined(map_parts(slices))})))


def _json_state(checkpoint: StoredCheckpoint, values: Mapping[str, Stored | Large]) -> Stored:
    held = {channel: json.loads(text) for channel, text in _each(values, _json_text)}
    return json_value({**_bookkeeping(checkpoint), "channel_values": held})


def _bookkeeping(checkpoint: StoredCheckpoint) -> dict[str, object]:
    """Returns what a checkpoint holds, in the savers' order, the values left open."""
    updated = checkpoint.updated_channels
    return {
        "v": checkpoint.format,
        "ts": _time_text(checkpoint),
        "id": checkpoint.row.id,
        "channel_values": None,
        "channel_versions": dict(checkpoint.channel_versions),
        "versions_seen": {node: dict(seen) for node, seen in checkpoint.versions_seen.items()},
        "updated_channels": None if updated is None else list(updated),
    }


def _each(values: Mapping[str, Stored | Large], convert: Callable[[Stored | Large], T]) -> Iterator[tuple[str, T]]:
    for channel, stored in values.items():
        try:
            yield channel, convert(stored)
        except Unholdable as reason:
            raise Unholdable(f"channel {channel}: {reason}") from None


def is_delta_snapshot(stored: Stored | Large) -> bool:
    """Tells whether a value is the snapshot of a delta channel."""
    head = stored.data[: len(_JSON_SNAPSHOT)]
    if stored.type == "json":
        return head == _JSON_SNAPSHOT
    if stored.type != "msgpack" or not head:
        return False
    at = _N_EXT_HEADER_BYTES.get(head[0])
    return at is not None and len(head) > at and head[at] == EXT_DELTA_SNAPSHOT


def require_json(value: object, path: str = "") -> None:
    """Raises Unholdable where JSONB would not give back an equal value; `path` is put before the reason."""
    for at, scalar in _scalars(value, path):
        try:
            _require_scalar(scalar)
        except Unholdable as reason:
            raise Unholdable(f"{at}: {reason}" if at else str(reason)) from None


def require_text(**columns: str | None) -> None:
    """Raises Unholdable, naming the column, where a text column of Postgres cannot hold a text."""
    for name, text in columns.items():
        try:
            _require_text(text or "")
        except Unholdable as reason:
            raise Unholdable(f"{name}: {reason}") from None


@dataclass(frozen=True, slots=True)
class _Inline:
    value: Scalar


def _inline_or_blob(stored: Stored | Large) -> _Inline | Stored | Large:
    if stored.type == "null":
        return _Inline(None)
    if stored.type != "msgpack":
        return stored
    head = stored.data[:1][0]
    if head in _N_BIN_HEADER_BYTES:
        n_head = _N_BIN_HEADER_BYTES[head]
        if isinstance(stored, Large):
            return Large("bytes", Span(stored.data, n_head, len(stored.data)))
        return Stored("bytes", stored.data[n_head:])
    return _Inline(_unpack_scalar(whole(stored).data)) if _is_scalar(head) else stored


def _is_scalar(head: int) -> bool:
    """Tells by the first byte of a msgpack value whether it is nil, a boolean, a number or text."""
    return (
        head <= 0x7F
        or head >= 0xE0
        or 0xA0 <= head <= 0xBF
        or head in (0xC0, 0xC2, 0xC3, 0xD9, 0xDA, 0xDB)
        or 0xCA <= head <= 0xD3
    )


def _unpack_scalar(data: bytes) -> Scalar:
    try:
        value = ormsgpack.unpackb(data)
    except ormsgpack.MsgpackDecodeError as error:
        raise Unholdable(f"text or number that cannot be read ({error})") from error
    if value is None or isinstance(value, str | int | float):
        return value
    raise Unholdable(f"unexpected {type(value).__name__}")


def packed_form(stored: Stored | Large) -> Sliceable:
    """Returns the packed value that SQLite keeps for one; of a large value that is not JSON as it lies there.

    Raises:
        Unholdable: It has none that reads back equal.
    """
    if stored.type == "msgpack":
        return stored.data
    if stored.type == "null":
        return ormsgpack.packb(None)
    if stored.type == "bytes":
        if isinstance(stored, Large):
            return Joined([_LONG_BYTES + len(stored.data).to_bytes(4, "big"), stored.data])
        return ormsgpack.packb(stored.data)
    if stored.type == "json":
        value = _json_of(whole(stored))
        _require_msgpack(value)
        try:
            return ormsgpack.packb(value)
        except (ormsgpack.MsgpackEncodeError, UnicodeEncodeError, RecursionError) as error:
            raise Unholdable(f"JSON that msgpack cannot hold ({error})") from None
    if "+" in stored.type:
        raise Unholdable(f"encrypted value ({stored.type}), which SQLite keeps only as part of an encrypted row")
    raise Unholdable(f"value of type {stored.type}, which has no msgpack form that reads back equal")


def _json_text(value_in_store: Stored | Large) -> bytes:
    """Returns the JSON of a value that stands among others which only JSON holds."""
    stored = whole(value_in_store)
    if stored.type == "json":
        _json_of(stored)
        return stored.data
    if stored.type == "null":
        return b"null"
    if stored.type == "msgpack" and _is_scalar(stored.data[0]):
        value = _unpack_scalar(stored.data)
        if not isinstance(value, float) or math.isfinite(value):
            return json.dumps(value).encode()
    raise Unholdable(f"value of type {stored.type} beside objects in JSON: no row of SQLite holds both")


def _json_of(stored: Stored) -> object:
    try:
        return json.loads(stored.data)
    except (ValueError, RecursionError) as error:
        raise Unholdable(f"JSON that cannot be read ({error})") from None


def _is_plain_json(data: bytes) -> bool:
    """Tells whether JSON holds no `lc` objects, which LangGraph would build from it."""
    return b'"lc"' not in data


def _require_readable(checkpoint: StoredCheckpoint) -> None:
    if checkpoint.damage is not None:
        raise Unholdable(f"row that cannot be taken apart ({checkpoint.damage})")
    if checkpoint.row.metadata_error is not None:
        raise Unholdable(f"metadata that cannot be read ({checkpoint.row.metadata_error})")
    if checkpoint.format < _SENDS_IN_CHECKPOINT_FORMAT and "__pregel_tasks" in checkpoint.values:
        raise Unholdable(f"pending Sends in format {checkpoint.format}, which each kind of store keeps differently")


def _require_scalar(value: Scalar) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, str):
        _require_text(value)
    elif isinstance(value, int):
        _require_msgpack(value)
    elif math.isnan(value) or math.isinf(value):
        raise Unholdable(f"number {value}, which is not JSON")
    elif value == 0 and math.copysign(1, value) < 0:
        raise Unholdable("number -0.0, which would come back as 0.0")
    elif abs(value) >= _EXACT_FLOAT_LIMIT:
        raise Unholdable(f"float {value}, which would come back as an integer")


def _require_msgpack(value: object) -> None:
    if isinstance(value, int) and not _INT64_MIN <= value <= _UINT64_MAX:
        raise Unholdable("integer beyond 64 bits")


def _require_text(text: str) -> None:
    if "\x00" in text:
        raise Unholdable("text with a NUL character")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise Unholdable("text with a lone surrogate")


def _scalars(value: object, path: str) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield path, str(key)
            yield from _scalars(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _scalars(inner, f"{path}[{index}]")
    elif value is None or isinstance(value, str | int | float):
        yield path, value
    else:
        raise Unholdable(f"{path}: value of type {type(value).__name__}, which is not JSON")


def _version_text(version: str | int | float) -> str:
    """Returns a version as Postgres prints it out of the JSONB document, which is how a blob is found."""
    return version if isinstance(version, str) else json.dumps(version)


def _time_text(checkpoint: StoredCheckpoint) -> str:
    if checkpoint.ts is not None:
        return checkpoint.ts
    at = checkpoint.row.at
    return at.isoformat() if at is not None else ""
