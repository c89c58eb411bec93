"""Stored bytes to a tree that packs back to the same bytes, and to inert values for showing.

Source: langgraph/checkpoint/serde/jsonplus.py (langgraph-checkpoint 4.3.2).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import ormsgpack

from agentctl.codec.encryption import decrypted
from agentctl.codec.inert import plain
from agentctl.codec.packed import last_item
from agentctl.codec.tree import (
    DELTA_SNAPSHOT,
    DELTA_SNAPSHOT_TYPE,
    EMPTY,
    JSON_CONSTRUCTOR,
    JSON_SNAPSHOT,
    JSON_UNDEFINED,
    NUMPY_ARRAY,
    NUMPY_ARRAY_TYPE,
    PYDANTIC_V2,
    Empty,
    Opaque,
    Typed,
)
from agentctl.errors import DecodeError, Refused
from agentctl.records.rows import Stored

__all__ = ["EMPTY", "Opaque", "Typed", "decode", "nodes_in", "pack", "plain", "unpack", "unpack_last"]

_JSON_CODES: Final = (JSON_CONSTRUCTOR, JSON_UNDEFINED, JSON_SNAPSHOT)
_UNPACK_OPTIONS: Final = ormsgpack.OPT_NON_STR_KEYS
_PACK_OPTIONS: Final = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


def decode(stored: Stored, *, key: str | bytes | None = None) -> object:
    """Returns the inert value of stored bytes: JSON-like Python, typed values as `{"$type": ...}`.

    Raises:
        DecodeError: Damaged bytes, encrypted without a key, or a kind that is never loaded.
    """
    return plain(unpack(stored, key=key))


def unpack(stored: Stored, *, key: str | bytes | None = None) -> object:
    """Returns the tree of stored bytes (`codec.tree`); nothing that the bytes name is imported.

    Args:
        stored: A value as the store keeps it.
        key: AES key of an encrypted value; None takes LANGGRAPH_AES_KEY from the environment.

    Raises:
        DecodeError: Damaged bytes, encrypted without a key, or a kind that is never loaded.
    """
    if stored.type == "msgpack":
        return unpack_packed(stored.data)
    stored = decrypted(stored, key=key)
    match stored.type:
        case "msgpack":
            return unpack_packed(stored.data)
        case "json":
            return _unpack_json(stored.data)
        case "null":
            return None
        case "bytes":
            return bytes(stored.data)
        case "bytearray":
            return bytearray(stored.data)
        case "empty":
            return EMPTY
        case "pickle":
            raise DecodeError("the value is a pickle, which runs code when loaded; it is never loaded here")
        case unknown:
            raise DecodeError(f"the value has the serialization type {unknown!r}, which is not known here")


def unpack_last(data: bytes) -> tuple[int, object]:
    """Returns how many items a packed list has, and the tree of its last one; those before it are stepped over.

    For the end of a long list of messages: unpacking all of them would take as long as there are.

    Raises:
        DecodeError: The bytes are not one packed list that holds anything, or are damaged.
    """
    total, last = last_item(data)
    return total, unpack_packed(last)


def pack(tree: object, *, type: str | None = None) -> Stored:
    """Returns the bytes of a tree; for what `unpack` returned, the bytes it came from.

    Args:
        tree: As `unpack` returns it, edited or made anew from plain Python.
        type: `msgpack` or `json` to ask for that form; None picks what LangGraph writes for the value: `null`,
            `bytes` and `bytearray` for these, `msgpack` for all else but what only JSON rows hold.

    Raises:
        Refused: The tree holds what the form cannot: an integer beyond 64 bits, a lone surrogate, a foreign object.
    """
    if type is None:
        if tree is None:
            return Stored("null", b"")
        if isinstance(tree, bytearray):
            return Stored("bytearray", bytes(tree))
        if isinstance(tree, bytes):
            return Stored("bytes", tree)
        if isinstance(tree, Empty):
            return Stored("empty", b"")
    if type == "json" or (type is None and _is_of_json(tree)):
        return Stored("json", _pack_json(tree))
    return Stored("msgpack", _pack_msgpack(tree))


def nodes_in(tree: object) -> Iterator[Typed | Opaque]:
    """Yields what a tree names by type, those inside others too; of equal depth in stored order."""
    waiting = deque([tree])
    while waiting:
        node = waiting.popleft()
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            waiting.extend(node)
        elif isinstance(node, Typed):
            yield node
            waiting.append(node.payload)
        elif isinstance(node, Opaque):
            yield node


def _is_of_json(tree: object) -> bool:
    """Says whether a tree was unpacked from a JSON row: a typed value of one has no other form."""
    return isinstance(tree, dict | list | Typed) and any(
        isinstance(node, Typed) and node.code in _JSON_CODES for node in nodes_in(tree)
    )


def unpack_packed(data: bytes) -> object:
    """Returns the tree of one packed value.

    Raises:
        DecodeError: Damaged bytes.
    """
    try:
        return ormsgpack.unpackb(data, ext_hook=_unpack_extension, option=_UNPACK_OPTIONS)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the value is damaged: {error}") from error


def _unpack_extension(code: int, data: bytes) -> object:
    if code > DELTA_SNAPSHOT or code < 0:
        return Opaque(code, data)
    parts = ormsgpack.unpackb(data, ext_hook=_unpack_extension, option=_UNPACK_OPTIONS)
    if code == DELTA_SNAPSHOT:
        return Typed(code, *DELTA_SNAPSHOT_TYPE, parts)
    if code == NUMPY_ARRAY:
        return Typed(code, *NUMPY_ARRAY_TYPE, parts)
    if type(parts) is list and len(parts) >= 3 and type(parts[0]) is str and type(parts[1]) is str:
        return Typed(code, parts[0], parts[1], parts[2], tuple(parts[3:]))
    return Opaque(code, data)


def _pack_msgpack(tree: object) -> bytes:
    try:
        return ormsgpack.packb(tree, default=_pack_node, option=_PACK_OPTIONS)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"the value cannot be stored: {error}") from error


def _pack_node(node: object) -> ormsgpack.Ext:
    match node:
        case Opaque():
            return ormsgpack.Ext(node.code, node.data)
        case Typed(code=code) if 0 <= code <= PYDANTIC_V2:
            return ormsgpack.Ext(code, _pack_msgpack([node.module, node.name, node.payload, *node.rest]))
        case Typed(code=code) if code in (NUMPY_ARRAY, DELTA_SNAPSHOT):
            return ormsgpack.Ext(code, _pack_msgpack(node.payload))
        case _:
            raise TypeError(f"no stored form for {type(node).__name__}")


def _unpack_json(data: bytes) -> object:
    try:
        return json.loads(data, object_hook=_unpack_constructor)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the JSON value is damaged: {error}") from error


def _unpack_constructor(value: dict[str, Any]) -> object:
    match value:
        case {"lc": int(), "type": "constructor", "id": [*path, str(name)]} if all(isinstance(p, str) for p in path):
            return Typed(JSON_CONSTRUCTOR, ".".join(path), name, value)
        case {"lc": 2, "type": "undefined"}:
            return Typed(JSON_UNDEFINED, "", "undefined", value)
        case {"lc": 2, "type": "delta_snapshot", "value": _}:
            return Typed(JSON_SNAPSHOT, *DELTA_SNAPSHOT_TYPE, value)
        case _:
            return value


def _pack_json(tree: object) -> bytes:
    try:
        return json.dumps(tree, default=_pack_constructor, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"the value cannot be stored as JSON: {error}") from error


def _pack_constructor(node: object) -> object:
    if isinstance(node, Typed) and node.code in _JSON_CODES:
        return node.payload
    raise TypeError(f"no JSON form for {type(node).__name__}")
