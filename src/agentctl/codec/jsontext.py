"""Inert values and records as JSON text: valid, without loss, safe to print on a terminal."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import PurePath
from typing import Any

from agentctl.records.absent import ABSENT

MISLEADING = (
    "\x7f-\x9f"  # controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions
    "\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible
    "\u2028\u2029"  # line ends
    "\ud800-\udfff"  # halves of characters
)
"""Characters, for a class of a regular expression, that a terminal obeys or that make a text look like another one.

The joiners U+200C and U+200D are not among them: Persian, Indic scripts and emoji are spelled with them.
"""
_UNSAFE = re.compile(f"[{MISLEADING}]")

_TIME = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"


MAX_DEPTH = 200
"""How deeply a value in a JSON text may be nested: what goes through such values calls itself."""


def parse(text: str | bytes) -> Any:
    """Returns the value of a JSON text, of whoever wrote it.

    Raises:
        ValueError: It is no JSON, an integer has more than 4,300 digits, or it is nested deeper than MAX_DEPTH.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if isinstance(value, list | dict) and _is_deep(value, text):
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    return value


def _is_deep(value: object, text: str | bytes) -> bool:
    opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if opened <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
            if isinstance(item, list | dict)
        ]
        if not level:
            return False
    return True


def timestamp(at: datetime | None) -> str | None:
    """Returns RFC 3339 in UTC with microseconds, `2026-11-30T03:12:00.000000Z`, or None."""
    if at is None:
        return None
    # `isoformat` takes twice as long, as it asks the zone for its offset; `strftime` longer still, and pads no years.
    return _TIME % (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)


def jsonable(value: object) -> object:
    """Returns `value` as what `json.dumps` can print without loss.

    Records become objects, times RFC 3339, bytes `{"$base64": ...}`, floats that JSON lacks `{"$float": "nan"}`,
    an absent side of a change `{"$absent": true}`.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if value is ABSENT:
        return {"$absent": True}
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((jsonable(item) for item in value), key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, date | PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$base64": base64.b64encode(bytes(value)).decode("ascii")}
    return {"$type": f"{type(value).__module__}.{type(value).__qualname__}", "$repr": repr(value)}


def pieces(document: Mapping[str, object]) -> Iterator[str]:
    """Yields the text that `dumps` returns for an object, in pieces.

    Args:
        document: Its fields, asked for in their order. One that is an iterator is a list, of which one item is held at
            a time.
    """
    for n, (name, value) in enumerate(document.items()):
        yield f"{', ' if n else '{'}{dumps(name)}: "
        if isinstance(value, Iterator):
            yield "["
            for i, item in enumerate(value):
                yield f", {dumps(item)}" if i else dumps(item)
            yield "]"
        else:
            yield dumps(value)
    yield "}" if document else "{}"


def dumps(value: object, *, indent: int | None = None) -> str:
    """Returns JSON text. Characters that a terminal would obey, and lone surrogates, are escaped."""
    text = json.dumps(
        jsonable(value), ensure_ascii=False, allow_nan=False, indent=indent, separators=None if indent else (", ", ": ")
    )
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)
