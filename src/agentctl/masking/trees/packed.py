"""Packed msgpack to nodes, and with some of them replaced back to bytes; every other byte stays.

Source: github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentctl.errors import DecodeError
from agentctl.masking.trees.nodes import OTHER, Blob, Change, Extension, Items, Map, Node, Text, Whole

_FIXED_BYTES: Final = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8}
_INTEGERS: Final = {
    0xCC: (1, False),
    0xCD: (2, False),
    0xCE: (4, False),
    0xCF: (8, False),
    0xD0: (1, True),
    0xD1: (2, True),
    0xD2: (4, True),
    0xD3: (8, True),
}
_TEXTS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BLOBS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_LISTS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def parse(data: bytes) -> Node:
    """Returns the nodes of one packed value; extensions are nodes of their own, with what they hold still packed.

    Raises:
        DecodeError: The bytes are not one packed value.
    """
    try:
        node, end = _node(data, 0)
    except IndexError as error:
        raise DecodeError("the value is damaged: it is cut short") from error
    except UnicodeDecodeError as error:
        raise DecodeError(f"the value is damaged: {error}") from error
    except RecursionError as error:
        raise DecodeError("the value is nested too deeply to be masked") from error
    if end != len(data):
        raise DecodeError("the value is damaged: bytes before or after it")
    return node


def replaced(data: bytes, changes: Iterable[Change]) -> bytes:
    """Returns the bytes with the changes in them; these come in the order of the bytes."""
    parts: list[bytes] = []
    kept = 0
    for node, new in changes:
        parts.append(data[kept : node.start])
        match new:
            case str():
                parts.append(_packed_text(new))
            case int():
                parts.append(_packed_integer(new))
            case bytes() if isinstance(node, Extension):
                parts.append(_packed_extension(node.code, new))
            case _:
                raise TypeError(f"{type(new).__name__} cannot stand for {type(node).__name__}")
        kept = node.end
    parts.append(data[kept:])
    return b"".join(parts)


def _node(data: bytes, at: int) -> tuple[Node, int]:
    """Returns the node that begins at a position, and where it ends."""
    head = data[at]
    start = at
    at += 1
    if head <= 0x7F or head >= 0xE0:
        return Whole(head if head <= 0x7F else head - 0x100, start, at), at
    if 0xA0 <= head <= 0xBF:
        return _text(data, start, at, head & 0x1F)
    if head <= 0x8F:
        return _map(data, at, head & 0x0F)
    if head <= 0x9F:
        return _items(data, at, head & 0x0F)
    if head in _TEXTS:
        width = _TEXTS[head]
        return _text(data, start, at + width, _length(data, at, width))
    if head in _FIXED_BYTES:
        return OTHER, _within(data, at + _FIXED_BYTES[head])
    if head in _INTEGERS:
        width, signed = _INTEGERS[head]
        end = _within(data, at + width)
        return Whole(int.from_bytes(data[at:end], "big", signed=signed), start, end), end
    if head in _LISTS:
        return _items(data, at + _LISTS[head], _length(data, at, _LISTS[head]))
    if head in _MAPS:
        return _map(data, at + _MAPS[head], _length(data, at, _MAPS[head]))
    if head in _BLOBS:
        n_bytes = _length(data, at, _BLOBS[head])
        return Blob(n_bytes), _within(data, at + _BLOBS[head] + n_bytes)
    if head in _FIXED_EXTENSIONS:
        return _extension(data, start, at, _FIXED_EXTENSIONS[head])
    if head in _EXTENSIONS:
        return _extension(data, start, at + _EXTENSIONS[head], _length(data, at, _EXTENSIONS[head]))
    raise DecodeError(f"the value is damaged: no value begins with {head:#x}")


def _text(data: bytes, start: int, at: int, n_bytes: int) -> tuple[Node, int]:
    end = _within(data, at + n_bytes)
    return Text(data[at:end].decode(), start, end), end


def _items(data: bytes, at: int, count: int) -> tuple[Node, int]:
    items: list[Node] = []
    for _ in range(count):
        item, at = _node(data, at)
        items.append(item)
    return Items(items), at


def _map(data: bytes, at: int, count: int) -> tuple[Node, int]:
    items: list[tuple[Node, Node]] = []
    for _ in range(count):
        key, at = _node(data, at)
        value, at = _node(data, at)
        items.append((key, value))
    return Map(items), at


def _extension(data: bytes, start: int, at: int, n_bytes: int) -> tuple[Node, int]:
    end = _within(data, at + 1 + n_bytes)
    code = data[at]
    return Extension(code if code <= 0x7F else code - 0x100, data[at + 1 : end], start, end), end


def _length(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : _within(data, at + width)], "big")


def _within(data: bytes, end: int) -> int:
    if end > len(data):
        raise IndexError("it is cut short")
    return end


def _packed_text(text: str) -> bytes:
    data = text.encode()
    n_bytes = len(data)
    if n_bytes < 0x20:
        return bytes((0xA0 | n_bytes,)) + data
    return _headed(data, 0xD9)


def _packed_integer(number: int) -> bytes:
    if 0 <= number <= 0x7F:
        return bytes((number,))
    for head, (width, signed) in _INTEGERS.items():
        if signed == (number < 0) and number.bit_length() <= width * 8 - signed:
            return bytes((head,)) + number.to_bytes(width, "big", signed=signed)
    raise OverflowError("an integer beyond 64 bits has no packed form")


def _packed_extension(code: int, data: bytes) -> bytes:
    byte = bytes((code & 0xFF,))
    for head, n_bytes in _FIXED_EXTENSIONS.items():
        if n_bytes == len(data):
            return bytes((head,)) + byte + data
    return _headed(data, 0xC7, byte)


def _headed(data: bytes, first: int, between: bytes = b"") -> bytes:
    """Returns data after its head: the first of three that differ in the width of the length."""
    width = next(width for width in (1, 2, 4) if len(data) < 1 << (8 * width))
    head = first + (1, 2, 4).index(width)
    return bytes((head,)) + len(data).to_bytes(width, "big") + between + data
