"""Telling an object from its bare fields, without its class.

A loader that may not build a class (`LANGGRAPH_STRICT_MSGPACK`, a module that moved) gives what the class was made of:
a map of its fields, or the plain value of an enum. The next checkpoint stores that.

Source: langgraph/checkpoint/serde/jsonplus.py (langgraph-checkpoint 4.3.2), `_create_msgpack_ext_hook`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from agentctl.codec.large import runs_of
from agentctl.codec.parts import keys_of, payload_of, type_of
from agentctl.codec.tree import DELTA_SNAPSHOT, Typed
from agentctl.codec.windows import Span, layout_at
from agentctl.records.rows import Sliceable
from agentctl.upkeep.doctor.records import Drift, Shape

_LONGEST_TEXT: Final = 200
_PLACES: Final = {"": "", "[]": "[]", "{}": ".*"}


def shapes_of(tree: object) -> frozenset[Shape]:
    """Returns the shapes of a value and of its items or of the values of its map; deeper ones are not looked at."""
    if isinstance(tree, Typed) and tree.code == DELTA_SNAPSHOT:
        tree = tree.payload
    return frozenset(_shapes(tree))


def large_shapes(data: Sliceable) -> frozenset[Shape]:
    """Returns the same of a packed value that is not held, but for short text that an object was made of.

    Raises:
        DecodeError: Damaged bytes.
    """
    layout = layout_at(data)
    if layout.kind == "extension" and layout.code == DELTA_SNAPSHOT:
        data = Span(data, layout.inner, len(data))
        layout = layout_at(data)
    found = set(_large_one("", data))
    if layout.kind in ("list", "map"):
        where, step = ("[]", 1) if layout.kind == "list" else ("{}", 2)
        number = 0
        for run in runs_of(data):
            if isinstance(run, list):
                found.update(_many(where, (item for at, item in enumerate(run, number) if at % step == step - 1)))
                number += len(run)
            else:
                found.update(_large_one(where, run) if number % step == step - 1 else ())
                number += 1
    return frozenset(found)


def drifts(channel: str, before: frozenset[Shape], after: frozenset[Shape]) -> Iterator[Drift]:
    """Yields the objects that are plain data now: none of their class is left, and their fields are, as plain data."""
    for shape in sorted(before - after, key=lambda shape: (shape.where, shape.type)):
        bare = Shape(shape.where, "", shape.fields, shape.text)
        still = any(other.where == shape.where and other.type == shape.type for other in after)
        if shape.type and (shape.fields or shape.text) and not still and bare in after and bare not in before:
            yield Drift(channel, shape.type, _PLACES[shape.where])


def _shapes(tree: object) -> Iterator[Shape]:
    yield from _one("", tree)
    if isinstance(tree, list):
        yield from _many("[]", tree)
    elif isinstance(tree, dict):
        yield from _many("{}", tree.values())


def _large_one(where: str, data: Sliceable) -> Iterator[Shape]:
    payload = payload_of(data)
    if payload is None or layout_at(payload).kind != "map":
        return
    keys = frozenset(keys_of(payload))
    if keys:
        yield Shape(where, type_of(data), keys)


def _many(where: str, items: Iterable[object]) -> Iterator[Shape]:
    for item in items:
        if isinstance(item, Typed | dict):
            yield from _one(where, item)


def _one(where: str, value: object) -> Iterator[Shape]:
    if isinstance(value, Typed):
        payload, name = value.payload, value.type_name
    else:
        payload, name = value, ""
    if isinstance(payload, dict):
        if payload:
            yield Shape(where, name, frozenset(str(key) for key in payload))
    elif isinstance(payload, str | int | float) and len(str(payload)) <= _LONGEST_TEXT:
        yield Shape(where, name, frozenset(), repr(payload))
