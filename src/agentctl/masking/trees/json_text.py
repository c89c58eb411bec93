"""JSON text to nodes, and with some of them replaced back to text: spaces, escapes, number forms and order stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from agentctl.codec.jsontext import MAX_DEPTH
from agentctl.masking.trees.nodes import OTHER, Change, Items, Map, Node, Text, Whole

_DECODER: Final = json.JSONDecoder(strict=False)
_OPENING = re.compile(r"\{\s*\"|\[\s*[{\"]")
_MOST_TRIES: Final = 200
_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"true|false|null|NaN|-?Infinity|(-?(?:0|[1-9][0-9]*))((?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_LONGEST_INTEGER: Final = 32
"""Digits; a longer one is no number of a person."""


def parse(text: str) -> Node:
    """Returns the nodes of a JSON text.

    Raises:
        ValueError: It is no JSON, or is nested deeper than `codec.jsontext` goes.
    """
    node, end = parse_at(text, 0)
    if end != len(text):
        raise ValueError("text after the value")
    return node


def parse_at(text: str, at: int) -> tuple[Node, int]:
    """Returns the nodes of the JSON value that begins at a position, and where it and the space after it end.

    Raises:
        ValueError: There is none.
    """
    try:
        return _node(text, _skip(text, at), 0)
    except IndexError as error:
        raise ValueError("the JSON is cut short") from error


def embedded(text: str) -> Iterator[tuple[int, int, Node]]:
    """Yields the objects and lists of objects that stand in a text as JSON: start, end, nodes placed in the text."""
    at = 0
    for _ in range(_MOST_TRIES):
        found = _OPENING.search(text, at)
        if found is None:
            return
        try:
            node, end = parse_at(text, found.start())
        except ValueError:
            at = found.start() + 1
        else:
            end = len(text[:end].rstrip())
            yield found.start(), end, node
            at = end


def replaced(text: str, changes: Iterable[Change]) -> str:
    """Returns the text with the changes in it; these come in the order of the text."""
    parts: list[str] = []
    kept = 0
    for node, new in changes:
        parts.append(text[kept : node.start])
        parts.append(_written(new, text[node.start : node.end]) if isinstance(new, str) else str(new))
        kept = node.end
    parts.append(text[kept:])
    return "".join(parts)


def _written(new: str, old: str) -> str:
    """Returns a text in quotes, escaped as the one before was."""
    literal = json.dumps(new, ensure_ascii=old.isascii())
    return literal.replace("/", "\\/") if "\\/" in old else literal


def _node(text: str, at: int, depth: int) -> tuple[Node, int]:
    """Returns the node at a position that is no space, and where the space after it ends."""
    if depth > MAX_DEPTH:
        raise ValueError("the JSON is nested too deeply")
    first = text[at]
    if first == '"':
        value, end = _DECODER.raw_decode(text, at)
        return Text(value, at, end), _skip(text, end)
    if first == "{":
        return _map(text, at, depth)
    if first == "[":
        return _items(text, at, depth)
    found = _SCALAR.match(text, at)
    if found is None:
        raise ValueError(f"no JSON value at {at}")
    digits, rest = found[1], found[2]
    if digits is None or rest or len(digits) > _LONGEST_INTEGER:
        return OTHER, _skip(text, found.end())
    return Whole(int(digits), at, found.end()), _skip(text, found.end())


def _map(text: str, at: int, depth: int) -> tuple[Node, int]:
    items: list[tuple[Node, Node]] = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        if items:
            at = _after(text, at, ",")
        if text[at] != '"':
            raise ValueError(f"no key at {at}")
        key, at = _node(text, at, depth)
        value, at = _node(text, _after(text, at, ":"), depth + 1)
        items.append((key, value))
    return Map(items), _skip(text, at + 1)


def _items(text: str, at: int, depth: int) -> tuple[Node, int]:
    items: list[Node] = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        if items:
            at = _after(text, at, ",")
        item, at = _node(text, at, depth + 1)
        items.append(item)
    return Items(items), _skip(text, at + 1)


def _after(text: str, at: int, mark: str) -> int:
    if text[at] != mark:
        raise ValueError(f"no {mark} at {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
