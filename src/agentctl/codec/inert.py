"""Trees as inert JSON-like values: what the looking commands show and `--json` prints.

Dicts with text keys, lists, text, numbers, True, False and None stand for themselves; everything else is a dict with
a mark among its keys:

- `{"$type": "pkg.Name", ...fields}` for a typed value whose payload has names, `{"$type": ..., "$value": payload}`
  for any other: datetimes, UUIDs, decimals, paths and enums as readable text, sets and deques as lists.
- `{"$map": [[key, value], ...]}` for a dict with a key that is not text, or that could be taken for one of these marks.
- `{"$tuple": [...]}` for a tuple, which stored values have only as such keys; `{"$base64": "..."}` for bytes.

NaN and the infinities stay floats; writing them as JSON is the writer's matter.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from agentctl.codec.tree import (
    DELTA_SNAPSHOT,
    JSON_CONSTRUCTOR,
    JSON_SNAPSHOT,
    JSON_UNDEFINED,
    NUMPY_ARRAY,
    Empty,
    Opaque,
    Typed,
)
from agentctl.errors import DecodeError

TYPE: Final = "$type"
VALUE: Final = "$value"
MARKS: Final = frozenset({TYPE, VALUE, "$map", "$tuple", "$base64"})
HIDDEN: Final = "**********"
"""What a secret shows, as pydantic's own text does."""

_ATOMS: Final = frozenset({type(None), bool, int, float, str})


def plain(tree: object) -> object:
    """Returns the inert value of a tree; the tree itself stays as it is.

    Raises:
        DecodeError: The tree is nested deeper than it can be shown.
    """
    try:
        return _plain(tree)
    except RecursionError as error:
        raise DecodeError("the value is nested too deeply to be shown") from error


def _plain(tree: object) -> object:
    kind = type(tree)
    if kind in _ATOMS:
        return tree
    if isinstance(tree, dict):
        return _plain_dict(tree)
    if isinstance(tree, list):
        return [item if type(item) in _ATOMS else _plain(item) for item in tree]
    if isinstance(tree, Typed):
        return _plain_typed(tree)
    if isinstance(tree, (bytes, bytearray, memoryview)):
        return {"$base64": _base64(bytes(tree))}
    if isinstance(tree, tuple):
        return {"$tuple": [_plain(item) for item in tree]}
    if isinstance(tree, Opaque):
        return {TYPE: f"msgpack.ext{tree.code}", "$base64": _base64(tree.data)}
    if isinstance(tree, Empty):
        return {TYPE: "empty"}
    return {TYPE: f"{kind.__module__}.{kind.__qualname__}", VALUE: repr(tree)}


def _plain_dict(tree: dict[object, object]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for key, value in tree.items():
        if type(key) is not str or key in MARKS:
            return {"$map": [[_plain(key), _plain(value)] for key, value in tree.items()]}
        shown[key] = value if type(value) in _ATOMS else _plain(value)
    return shown


def _plain_typed(node: Typed) -> dict[str, object]:
    name = node.type_name
    if node.code == JSON_CONSTRUCTOR:
        return _typed(name, _constructor_payload(node.payload))
    if node.code == JSON_UNDEFINED:
        return {TYPE: name}
    if node.code == JSON_SNAPSHOT and isinstance(node.payload, Mapping):
        return {TYPE: name, VALUE: _plain(node.payload["value"])}
    if node.code == NUMPY_ARRAY:
        return _plain_array(node.payload)
    if node.code == DELTA_SNAPSHOT:
        return {TYPE: name, VALUE: _plain(node.payload)}
    readable = _READABLE.get(name)
    if readable is not None:
        text = readable(node.payload)
        if text is not None:
            return {TYPE: name, VALUE: text}
    names = _POSITIONAL_NAMES.get(name)
    if names is not None and isinstance(node.payload, list) and len(node.payload) <= len(names):
        return _typed(name, dict(zip(names, node.payload, strict=False)))
    return _typed(name, node.payload)


def _typed(name: str, payload: object) -> dict[str, object]:
    shown = _plain(payload)
    if isinstance(payload, dict) and isinstance(shown, dict) and "$map" not in shown:
        return {TYPE: name, **shown}
    return {TYPE: name, VALUE: shown}


def _constructor_payload(constructor: object) -> object:
    """Returns the arguments of an `lc` constructor object: keywords, else positions, else none."""
    if not isinstance(constructor, Mapping):
        return constructor
    keywords, positional = constructor.get("kwargs"), constructor.get("args")
    if keywords and positional:
        return {"args": positional, "kwargs": keywords}
    if positional:
        return positional[0] if isinstance(positional, list) and len(positional) == 1 else positional
    return keywords if isinstance(keywords, dict) else {}


def _plain_array(payload: object) -> dict[str, object]:
    match payload:
        case [str(dtype), list(shape), str(order), bytes(data)]:
            return {TYPE: "numpy.ndarray", "dtype": dtype, "shape": shape, "order": order, "$base64": _base64(data)}
        case _:
            return {TYPE: "numpy.ndarray", VALUE: _plain(payload)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _text(payload: object) -> str | None:
    return payload if isinstance(payload, str) else None


def _uuid(payload: object) -> str | None:
    if not isinstance(payload, str) or len(payload) != 32:
        return None
    return "-".join((payload[:8], payload[8:12], payload[12:16], payload[16:20], payload[20:]))


def _date(payload: object) -> str | None:
    match payload:
        case [int(year), int(month), int(day)]:
            return f"{year:04d}-{month:02d}-{day:02d}"
        case _:
            return None


def _time(payload: object) -> str | None:
    match payload:
        case {"hour": int(hour), "minute": int(minute), "second": int(second), "microsecond": int(micro), **rest}:
            if rest.get("tzinfo") is not None or rest.get("fold"):
                return None
            return f"{hour:02d}:{minute:02d}:{second:02d}" + (f".{micro:06d}" if micro else "")
        case _:
            return None


def _path(payload: object) -> str | None:
    if not isinstance(payload, list) or not all(isinstance(part, str) for part in payload):
        return None
    joined = "/".join(payload)
    return joined[1:] if joined.startswith("//") else joined or "."


def _secret(payload: object) -> str | None:
    return HIDDEN if payload else ""


_READABLE: Final[Mapping[str, Callable[[object], str | None]]] = MappingProxyType(
    {
        "uuid.UUID": _uuid,
        "decimal.Decimal": _text,
        "datetime.datetime": _text,
        "datetime.date": _date,
        "datetime.time": _time,
        "pathlib.PosixPath": _path,
        "pathlib.PurePosixPath": _path,
        "pathlib.Path": _path,
        "pathlib._local.PosixPath": _path,
        "pydantic.types.SecretStr": _secret,
        "pydantic.types.SecretBytes": _secret,
    }
)
"""Payloads that have a shorter text than their constructor arguments."""

_POSITIONAL_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "datetime.timedelta": ("days", "seconds", "microseconds"),
        "langgraph.types.Send": ("node", "arg", "timeout"),
        "re.compile": ("pattern", "flags"),
    }
)
"""Positional constructor arguments that have names."""
