"""The items and fields of a stored value with their bytes, without decoding them.

A list has items, any other value is one item. A map has fields, and so has an object whose stored form holds one:
messages, dataclasses, models. A field's bytes are those of its key and of its value; what an object takes besides
(class, module, braces) is under the name ''.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgpack  # type: ignore[import-untyped]

from agentctl.codec import jsontext
from agentctl.codec.encryption import decrypted
from agentctl.codec.packed import last_items, split_map
from agentctl.codec.tree import DELTA_SNAPSHOT, NUMPY_ARRAY
from agentctl.errors import DecodeError
from agentctl.records.rows import Stored

_ALL: Final = 1 << 32
_PAYLOAD: Final = 2
"""Where the tuple of a typed value has its payload: after module and name (`codec.tree.Typed`)."""

_CODE_AT: Final = {0xC7: 2, 0xC8: 3, 0xC9: 5, 0xD4: 1, 0xD5: 1, 0xD6: 1, 0xD7: 1, 0xD8: 1}
"""Where a packed extension has its code, by its first byte. Source: github.com/msgpack/msgpack/blob/master/spec.md."""


class Parts(NamedTuple):
    """A value's items, each a stored value of its own, and whether they are those of a list."""

    items: tuple[Stored, ...]
    is_list: bool


def parts_of(value: Stored) -> Parts:
    """Returns the items of a value; those of a DeltaChannel's snapshot are the items of what it holds.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    value = decrypted(value)
    if value.type == "msgpack":
        data = _inside(value.data, DELTA_SNAPSHOT)
        if _is_list(data):
            return Parts(tuple(Stored("msgpack", item) for item in last_items(data, _ALL)[1]), is_list=True)
        return Parts((Stored("msgpack", data),), is_list=False)
    if value.type == "json":
        loaded = _loaded(value.data)
        if isinstance(loaded, dict) and loaded.get("lc") == 2 and loaded.get("type") == "delta_snapshot":
            loaded = loaded.get("value")
        if isinstance(loaded, list):
            return Parts(tuple(Stored("json", _dumped(item)) for item in loaded), is_list=True)
    return Parts((value,), is_list=False)


def may_be_message(item: Stored) -> bool:
    """Says whether an item is an object or a map that names a content: without it none is a message."""
    if b"content" not in item.data:
        return False
    if item.type == "msgpack":
        return _is_map(item.data) or _extension(item.data) is not None
    return item.type == "json" and item.data[:1] == b"{"


def fields_of(item: Stored) -> Mapping[str, int]:
    """Returns the bytes of an item's fields by name; their sum is the item's. A value without fields is all under ''.

    Raises:
        DecodeError: Damaged bytes.
    """
    if item.type == "msgpack":
        fields = _packed_fields(item.data)
    elif item.type == "json":
        fields = _json_fields(item.data)
    else:
        fields = {}
    rest = len(item.data) - sum(fields.values())
    return {**fields, "": fields.get("", 0) + rest} if rest or not fields else fields


def _packed_fields(data: bytes) -> dict[str, int]:
    extension = _extension(data)
    if extension is not None:
        code, inside = extension
        if code >= NUMPY_ARRAY or not _is_list(inside):
            return {}
        _, named = last_items(inside, _ALL)
        if len(named) <= _PAYLOAD:
            return {}
        data = named[_PAYLOAD]
    if not _is_map(data):
        return {}
    try:
        slices = split_map(data)
    except DecodeError:  # keys that are no text: the whole of it is one
        return {}
    packer = msgpack.Packer()
    return {key: len(packer.pack(key)) + len(value) for key, value in slices.items()}


def _json_fields(data: bytes) -> dict[str, int]:
    loaded = _loaded(data)
    if isinstance(loaded, dict) and "lc" in loaded and isinstance(loaded.get("kwargs"), dict):
        loaded = loaded["kwargs"]
    if not isinstance(loaded, dict):
        return {}
    return {key: len(_dumped(key)) + 1 + len(_dumped(value)) for key, value in loaded.items()}


def _inside(data: bytes, code: int) -> bytes:
    """Returns what an extension of this code holds, anything else as it is."""
    extension = _extension(data)
    return extension[1] if extension is not None and extension[0] == code else data


def _extension(data: bytes) -> tuple[int, bytes] | None:
    """Returns code and content of a packed extension, None for any other value.

    Codes that are negative, which msgpack keeps for itself, come back as 128 and more.
    """
    at = _CODE_AT.get(data[0]) if data else None
    return None if at is None or len(data) <= at else (data[at], data[at + 1 :])


def _is_list(data: bytes) -> bool:
    head = data[0] if data else 0
    return 0x90 <= head <= 0x9F or head in (0xDC, 0xDD)


def _is_map(data: bytes) -> bool:
    head = data[0] if data else 0
    return 0x80 <= head <= 0x8F or head in (0xDE, 0xDF)


def _loaded(data: bytes) -> object:
    try:
        return jsontext.parse(data)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the JSON value is damaged: {error}") from error


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
