"""The items and fields of a stored value with their bytes, without decoding them or holding what is large.

A list has items, any other value is one item. A map has fields, and so has an object whose stored form holds one:
messages, dataclasses, models. A field's bytes are those of its key and of its value; what an object takes besides
(class, module, braces) is under the name ''.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

import msgpack  # type: ignore[import-untyped]

from agentctl.codec import jsontext
from agentctl.codec.encryption import decrypted
from agentctl.codec.large import HELD_BYTES, RAW_TYPES, whole
from agentctl.codec.tree import DELTA_SNAPSHOT, NUMPY_ARRAY
from agentctl.codec.values import unpack_packed
from agentctl.codec.windows import Run, Span, inner_values, layout_at, value_spans, windows_of
from agentctl.errors import DecodeError
from agentctl.records.rows import Large, Sliceable, Stored

_PAYLOAD: Final = 2
"""Where the tuple of a typed value has its payload: after module and name (`codec.tree.Typed`)."""

_CONTENT: Final = b"content"


class Parts(NamedTuple):
    """A value's items, each a stored value of its own, and whether they are those of a list.

    `items` of a large list are read as they are gone through, once, and may turn out to be damaged on the way.
    """

    items: Iterable[Stored | Large]
    is_list: bool


def parts_of(value: Stored | Large) -> Parts:
    """Returns the items of a value; those of a DeltaChannel's snapshot are the items of what it holds.

    Only packed values have large items; all others are read whole.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    if value.type != "msgpack" and value.type not in RAW_TYPES:
        value = decrypted(whole(value))
    if value.type == "msgpack":
        data = _inside(value.data, DELTA_SNAPSHOT)
        if layout_at(data).kind == "list":
            items = _items(data)
            return Parts(tuple(items) if isinstance(value, Stored) else items, is_list=True)
        return Parts((_stored(data),), is_list=False)
    if value.type == "json" and isinstance(value, Stored):
        loaded = _loaded(value.data)
        if isinstance(loaded, dict) and loaded.get("lc") == 2 and loaded.get("type") == "delta_snapshot":
            loaded = loaded.get("value")
        if isinstance(loaded, list):
            return Parts(tuple(Stored("json", _dumped(item)) for item in loaded), is_list=True)
    return Parts((value,), is_list=False)


def may_be_message(item: Stored | Large) -> bool:
    """Says whether an item is an object or a map that names a content: without it none is a message."""
    if item.type == "msgpack":
        return layout_at(item.data).kind in ("map", "extension") and _holds(item.data, _CONTENT)
    return item.type == "json" and item.data[:1] == b"{" and _holds(item.data, _CONTENT)


def fields_of(item: Stored | Large) -> Mapping[str, int]:
    """Returns the bytes of an item's fields by name; their sum is the item's. A value without fields is all under ''.

    Raises:
        DecodeError: Damaged bytes.
    """
    if item.type == "msgpack":
        fields = _packed_fields(item.data)
    elif item.type == "json":
        fields = _json_fields(whole(item).data)
    else:
        fields = {}
    rest = len(item.data) - sum(fields.values())
    return {**fields, "": fields.get("", 0) + rest} if rest or not fields else fields


def _packed_fields(data: Sliceable) -> dict[str, int]:
    if isinstance(data, bytes):
        return _held_fields(data)
    payload = payload_of(data)
    if payload is None or layout_at(payload).kind != "map":
        return {}
    try:
        spans = value_spans(payload)
    except DecodeError:  # keys that are no text: the whole of it is one
        return {}
    packer = msgpack.Packer()
    return {key: len(packer.pack(key)) + span.stop - span.start for key, span in spans.items()}


def _held_fields(data: bytes) -> dict[str, int]:
    """Returns the same of bytes, in one pass: most items of a long list are short."""
    layout = layout_at(data)
    start = layout.inner if layout.kind == "extension" and 0 <= layout.code < NUMPY_ARRAY else 0
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1), strict_map_key=False)
    unpacker.feed(data[start:])
    fields: dict[str, int] = {}
    try:
        if start:
            if unpacker.read_array_header() <= _PAYLOAD:
                return {}
            for _ in range(_PAYLOAD):
                unpacker.skip()
        for _ in range(unpacker.read_map_header()):
            field_start, key = unpacker.tell(), unpacker.unpack()
            unpacker.skip()
            if not isinstance(key, str):
                return {}
            fields[key] = unpacker.tell() - field_start
    except (ValueError, msgpack.UnpackException):  # no map, or keys that are no text: the whole of it is one
        return {}
    return fields


def payload_of(data: Sliceable) -> Sliceable | None:
    """Returns what an object was made of, as it is packed; of any other value the value, and None of one without.

    Raises:
        DecodeError: Damaged bytes.
    """
    if layout_at(data).kind != "extension":
        return data
    parts = _object(data)
    return None if parts is None else parts[_PAYLOAD]


def type_of(data: Sliceable) -> str:
    """Returns the full name of a packed object's class, '' for what is no object.

    Raises:
        DecodeError: Damaged bytes.
    """
    parts = _object(data)
    names = () if parts is None else tuple(unpack_packed(part[:]) for part in parts[:_PAYLOAD])
    return ".".join(name for name in names if isinstance(name, str) and name)


def keys_of(data: Sliceable) -> Iterator[str]:
    """Yields the keys of a packed map as text.

    Raises:
        DecodeError: Damaged bytes.
    """
    layout = layout_at(data)
    places = _places(data, layout.inner, layout.n_inner)
    for (start, stop), _ in zip(places, places, strict=True):
        yield str(unpack_packed(data[start:stop]))


def _object(data: Sliceable) -> list[Sliceable] | None:
    """Returns module, name, payload and what comes after them of a packed object, None for what is none."""
    layout = layout_at(data)
    inside = Span(data, layout.inner, len(data))
    if layout.kind != "extension" or not 0 <= layout.code < NUMPY_ARRAY or not len(inside):
        return None
    inner = layout_at(inside)
    if inner.kind != "list" or inner.n_inner <= _PAYLOAD:
        return None
    return [Span(inside, start, stop) for start, stop in _places(inside, inner.inner, inner.n_inner)]


def _items(data: Sliceable) -> Iterator[Stored | Large]:
    layout = layout_at(data)
    for found in inner_values(data, layout.inner, layout.n_inner, window_bytes=HELD_BYTES):
        if isinstance(found, Run):
            yield from (Stored("msgpack", one) for one in found.values())
        else:
            yield _stored(Span(data, found.start, found.stop))


def _stored(data: Sliceable) -> Stored | Large:
    return Stored("msgpack", data[:]) if len(data) <= HELD_BYTES else Large("msgpack", data)


def _places(data: Sliceable, start: int, n_values: int) -> Iterator[tuple[int, int]]:
    """Yields where each of some values lies that are packed one after another."""
    at = start
    for found in inner_values(data, start, n_values):
        if isinstance(found, Run):
            yield from pairwise((at, *(at + end for end in found.ends)))
            at += found.ends[-1]
        else:
            yield found.start, found.stop
            at = found.stop


def _holds(data: Sliceable, word: bytes) -> bool:
    """Says whether some bytes are among a value's; a part of them may lie at the end of a window."""
    if isinstance(data, bytes):
        return word in data
    end = b""
    for window in windows_of(data):
        if word in end + window:
            return True
        end = window[-len(word) :]
    return False


def _json_fields(data: bytes) -> dict[str, int]:
    loaded = _loaded(data)
    if isinstance(loaded, dict) and "lc" in loaded and isinstance(loaded.get("kwargs"), dict):
        loaded = loaded["kwargs"]
    if not isinstance(loaded, dict):
        return {}
    return {key: len(_dumped(key)) + 1 + len(_dumped(value)) for key, value in loaded.items()}


def _inside(data: Sliceable, code: int) -> Sliceable:
    """Returns what an extension of this code holds, anything else as it is."""
    layout = layout_at(data)
    return Span(data, layout.inner, len(data)) if layout.kind == "extension" and layout.code == code else data


def _loaded(data: bytes) -> object:
    try:
        return jsontext.parse(data)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the JSON value is damaged: {error}") from error


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
