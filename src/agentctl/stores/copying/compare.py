"""Whether two stored values are the same, byte for byte or but for the order of a set."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgpack  # type: ignore[import-untyped]

from agentctl.records.rows import Stored

_EXT_SINGLE_ARGUMENT = 0
_SETS = (["builtins", "set"], ["builtins", "frozenset"])


def same_value(first: Stored, second: Stored) -> bool:
    """Tells whether two stored values read back equal.

    Equal bytes are. So are null, bytes and scalars in the forms that SQLite and Postgres keep them in, and sets whose
    elements were serialized in another order: a process that loads a set and stores it again may do that.

    Source: `_msgpack_default` (langgraph-checkpoint 4.3.2, serde/jsonplus.py): a set is extension 0 of
    [module, name, elements].
    """
    if first == second:
        return True
    try:
        if first.type == second.type == "json":
            return json.dumps(json.loads(first.data)) == json.dumps(json.loads(second.data))
        one, other = _as_msgpack(first), _as_msgpack(second)
        if one is None or other is None:
            return False
        return one == other or _canonical(one) == _canonical(other)
    except (ValueError, OverflowError, RecursionError, msgpack.UnpackException):
        return False


def _as_msgpack(stored: Stored) -> bytes | None:
    """Returns the msgpack of a value that the stores keep in more than one form, or None where it has none."""
    if stored.type == "msgpack":
        return stored.data
    if stored.type == "null":
        return bytes(msgpack.packb(None))
    if stored.type == "bytes":
        return bytes(msgpack.packb(stored.data))
    if stored.type == "json":
        return bytes(msgpack.packb(json.loads(stored.data)))
    return None


def _canonical(data: bytes) -> bytes:
    """Returns the msgpack bytes with the elements of every set in one order."""

    def extension(code: int, inner: bytes) -> msgpack.ExtType:
        canonical = inner
        try:
            parts = _unpack(inner, extension)
        except (ValueError, msgpack.UnpackException):
            return msgpack.ExtType(code, inner)
        if code == _EXT_SINGLE_ARGUMENT and isinstance(parts, list) and parts[:2] in _SETS:
            parts = [*parts[:2], sorted(map(msgpack.packb, parts[2]))]
        canonical = msgpack.packb(parts)
        return msgpack.ExtType(code, canonical)

    packed: bytes = msgpack.packb(_unpack(data, extension))
    return packed


def _unpack(data: bytes, extension: Callable[[int, bytes], msgpack.ExtType]) -> object:
    return msgpack.unpackb(data, ext_hook=extension, strict_map_key=False, unicode_errors="surrogatepass")
