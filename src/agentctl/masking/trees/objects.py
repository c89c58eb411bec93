"""JSON-like Python values to nodes, and back with some of them replaced; what has no change is the same object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from agentctl.errors import DecodeError
from agentctl.masking.trees.nodes import OTHER, Blob, Change, Items, Map, Node, Text, Whole


def parse(value: object) -> Node:
    """Returns the nodes of a value: maps, lists, tuples, texts, integers, bytes; all else is never personal.

    Raises:
        DecodeError: The value is nested too deeply.
    """
    places = count()
    try:
        return _node(value, places)
    except RecursionError as error:
        raise DecodeError("the value is nested too deeply to be masked") from error


def replaced(value: object, changes: Iterable[Change]) -> object:
    """Returns the value with the changes in it."""
    return _replaced(value, {change.node.start: change.new for change in changes}, count())


def _node(value: object, places: count[int]) -> Node:
    if isinstance(value, str):
        place = next(places)
        return Text(value, place, place + 1)
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return OTHER
    if isinstance(value, int):
        place = next(places)
        return Whole(value, place, place + 1)
    if isinstance(value, Mapping):
        return Map([(_node(key, places), _node(item, places)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return Items([_node(item, places) for item in value])
    if isinstance(value, bytes | bytearray | memoryview):
        return Blob(len(value))
    return OTHER


def _replaced(value: object, changes: Mapping[int, object], places: count[int]) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, str | int):
        return changes.get(next(places), value)
    if isinstance(value, Mapping):
        pairs = [(_replaced(key, changes, places), _replaced(item, changes, places)) for key, item in value.items()]
        if all(key is old and new is item for (key, new), (old, item) in zip(pairs, value.items(), strict=True)):
            return value
        return dict(pairs)
    if isinstance(value, list | tuple):
        items = [_replaced(item, changes, places) for item in value]
        if all(new is item for new, item in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else items
    return value
