"""Records as JSON and back, for what a child hands to its parent: read by the type that is awaited, never by its word.

The child runs code of others, so what it sends may be forged. Nothing that a frame says is imported, called or built:
the awaited type alone decides which records are made, and every value is held against its field's type.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from agentctl.codec import jsontext
from agentctl.codec.jsontext import MAX_DEPTH
from agentctl.records.absent import ABSENT

T = TypeVar("T")

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""The most that one message of a child may have."""

Decode = Callable[[Any], Any]

_TOO_DEEP: Final = "(nested too deeply to be shown)"


class Forged(ValueError):
    """A message that no child of ours sends."""


def to_text(value: object) -> bytes:
    """Returns a record, or a list of values, as JSON text that `from_text` reads."""
    return json.dumps(_encoded(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def parse(data: bytes) -> dict[str, Any]:
    """Returns the object of a message; what its fields hold is still to be held against types.

    Raises:
        Forged: it is not one JSON object.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Forged(f"a message is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Forged("a message is no object")
    return value


def decoded(type_: type[T], value: object) -> T:
    """Returns the record of an awaited type that a parsed value is.

    Raises:
        Forged: it is not one.
    """
    decode = _decoder(cast("Any", type_))
    try:
        return cast("T", decode(value))
    except Forged:
        raise
    except (TypeError, KeyError, ValueError, OverflowError, RecursionError) as error:
        raise Forged(f"not a {type_.__name__}: {error}") from None


def _encoded(value: object, left: int = MAX_DEPTH) -> object:
    """Returns a value by its own type: records as objects, all else with a tag where JSON has no such thing."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 2**63 else {"$": "int", "v": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$": "float", "v": str(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$": "bytes", "v": base64.b64encode(bytes(value)).decode("ascii")}
    if left == 0:
        return _TOO_DEEP
    if value is ABSENT:
        return {"$": "absent"}
    if isinstance(value, Mapping):
        return {"$": "map", "v": [[_encoded(key, left - 1), _encoded(item, left - 1)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"$": "tuple", "v": [_encoded(item, left - 1) for item in value]}
    if isinstance(value, list):
        return [_encoded(item, left - 1) for item in value]
    if isinstance(value, set | frozenset):
        return {"$": "set", "v": [_encoded(item, left - 1) for item in sorted(value, key=repr)]}
    if isinstance(value, datetime) and value.tzinfo is not None:
        return {"$": "time", "v": value.astimezone(UTC).isoformat()}
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith("agentctl."):
        return {field.name: _encoded(getattr(value, field.name), left - 1) for field in dataclasses.fields(value)}
    return _encoded(jsontext.jsonable(value), left - 1)


def _inert(value: Any, left: int = MAX_DEPTH + 1) -> object:
    """Returns what a tagged value stands for. A record where any value may stand is the mapping of its fields."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if left == 0:
        raise Forged("a value that nests too deeply")
    if isinstance(value, list):
        return [_inert(item, left - 1) for item in value]
    if "$" not in value:
        return {name: _inert(item, left - 1) for name, item in value.items()}
    content = value.get("v")
    match value["$"]:
        case "int" if isinstance(content, str):
            return int(content, 16)
        case "float" if content in ("nan", "inf", "-inf"):
            return float(content)
        case "bytes" if isinstance(content, str):
            return base64.b64decode(content, validate=True)
        case "absent":
            return ABSENT
        case "map" if isinstance(content, list):
            return {_inert(key, left - 1): _inert(item, left - 1) for key, item in content}
        case "tuple" if isinstance(content, list):
            return tuple(_inert(item, left - 1) for item in content)
        case "set" if isinstance(content, list):
            return frozenset(_inert(item, left - 1) for item in content)
        case "time" if isinstance(content, str):
            return datetime.fromisoformat(content)
    raise Forged("a value with a tag that there is not")


@cache
def _decoder(type_: Any) -> Decode:
    """Returns what reads values of a type: the records of agentctl, tuples, mappings, unions and plain values."""
    origin, arguments = get_origin(type_), get_args(type_)
    if type_ in (object, Any):
        return _inert
    if type_ is None or type_ is type(None):
        return _none
    if type_ is float:
        return _number
    if type_ in (str, int, bool, bytes, datetime):
        return _plain(type_)
    if origin is Literal:
        return _one_of(arguments)
    if origin in (Union, types.UnionType):
        return _either([_decoder(argument) for argument in arguments])
    if origin is tuple:
        return _tuple(arguments)
    if origin is frozenset:
        each = _decoder(arguments[0])
        return lambda value: frozenset(each(item) for item in _items(value, "set"))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*map(_decoder, arguments))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _list(_decoder(arguments[0]))
    if isinstance(type_, type) and type_.__module__.startswith("agentctl."):
        if dataclasses.is_dataclass(type_):
            return _record(type_)
        if issubclass(type_, tuple):
            return _named_tuple(type_)
    raise TypeError(f"records of {type_} do not cross")


def _none(value: object) -> None:
    if value is not None:
        raise Forged("a value where none may be")


def _number(value: object) -> float:
    found = _inert(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Forged("no number")
    return found


def _plain(type_: type) -> Decode:
    def decode(value: object) -> object:
        found = _inert(value)
        if type(found) is not type_:
            raise Forged(f"a {type(found).__name__} for a {type_.__name__}")
        return found

    return decode


def _one_of(choices: Sequence[object]) -> Decode:
    def decode(value: object) -> object:
        if not isinstance(value, str | int | bool) or value not in choices:
            raise Forged(f"none of {', '.join(map(str, choices))}")
        return value

    return decode


def _either(ways: Sequence[Decode]) -> Decode:
    def decode(value: object) -> object:
        problem: Exception | None = None
        for way in ways:
            try:
                return way(value)
            except (Forged, TypeError) as error:
                problem = error
        raise Forged(str(problem))

    return decode


def _items(value: object, tag: str) -> list[Any]:
    if not isinstance(value, dict) or value.get("$") != tag or not isinstance(value.get("v"), list):
        raise Forged(f"no {tag}")
    return cast("list[Any]", value["v"])


def _tuple(arguments: tuple[Any, ...]) -> Decode:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        each = _decoder(arguments[0])
        return lambda value: tuple(each(item) for item in _items(value, "tuple"))
    ways = [_decoder(argument) for argument in arguments]

    def decode(value: object) -> tuple[object, ...]:
        items = _items(value, "tuple")
        if len(items) != len(ways):
            raise Forged(f"{len(items)} values for {len(ways)}")
        return tuple(way(item) for way, item in zip(ways, items, strict=True))

    return decode


def _mapping(key: Decode, item: Decode) -> Decode:
    return lambda value: {key(one): item(other) for one, other in _items(value, "map")}


def _list(each: Decode) -> Decode:
    def decode(value: object) -> list[object]:
        if not isinstance(value, list):
            value = _items(value, "tuple")
        return [each(item) for item in value]

    return decode


def _named_tuple(type_: type[Any]) -> Decode:
    fields = _tuple(tuple(_hints(type_).values()))
    return lambda value: type_(*fields(value))


def _hints(type_: type[Any]) -> dict[str, Any]:
    return get_type_hints(type_, vars(sys.modules[type_.__module__]))


def _record(type_: type[Any]) -> Decode:
    hints = _hints(type_)
    ways = {field.name: _decoder(hints[field.name]) for field in dataclasses.fields(type_)}

    def decode(value: object) -> object:
        if not isinstance(value, dict) or value.keys() != ways.keys():
            raise Forged(f"the fields of no {type_.__name__}")
        return type_(**{name: way(value[name]) for name, way in ways.items()})

    return decode
