"""Raw slices of packed msgpack: the values of a map without decoding them.

A checkpoint on SQLite is one packed map that holds the state of every channel; slicing it costs a pass over the bytes
and no object per value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgpack  # type: ignore[import-untyped]

from agentctl.errors import DecodeError

P = TypeVar("P")


def split_map(data: bytes) -> dict[str, bytes]:
    """Returns the values of a packed map with text keys, each as its own packed bytes, in stored order.

    `join_map(split_map(data)) == data` for any map that ormsgpack wrote.

    Raises:
        DecodeError: The bytes are not one packed map with text keys, or are damaged.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1), strict_map_key=False)
    unpacker.feed(data)
    slices: dict[str, bytes] = {}
    try:
        for _ in range(unpacker.read_map_header()):
            key = unpacker.unpack()
            start = unpacker.tell()
            unpacker.skip()
            if not isinstance(key, str):
                raise DecodeError(f"the map has the key {key!r} where text was expected")
            slices[key] = data[start : unpacker.tell()]
    except (ValueError, msgpack.UnpackException) as error:
        raise DecodeError(f"the packed map is damaged: {reason_of(error)}") from error
    return slices


def join_map(slices: Mapping[str, bytes]) -> bytes:
    """Returns one packed map of values that are packed already."""
    return b"".join(map_parts(slices))


def map_parts(slices: Mapping[str, P]) -> Iterator[bytes | P]:
    """Yields what one packed map of values that are packed already is made of."""
    packer = msgpack.Packer()
    yield packer.pack_map_header(len(slices))
    for key, value in slices.items():
        yield packer.pack(key)
        yield value


def last_item(data: bytes) -> tuple[int, bytes]:
    """Returns how many items a packed list has, and the last of them as its own packed bytes.

    For a look at the end of a long list without decoding all of it.

    Raises:
        DecodeError: The bytes are not one packed list that holds anything, or are damaged.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
    unpacker.feed(data)
    skip = unpacker.skip
    try:
        total = int(unpacker.read_array_header())
        if not total:
            raise DecodeError("the packed list holds nothing")
        for _ in range(total - 1):
            skip()
        start = unpacker.tell()
        skip()
    except (ValueError, msgpack.UnpackException) as error:
        raise DecodeError(f"the packed list is damaged: {reason_of(error)}") from error
    if unpacker.tell() != len(data):
        raise DecodeError("something follows the packed list")
    return total, data[start:]


def reason_of(error: Exception) -> str:
    """Returns what was wrong with packed bytes; the errors of msgpack mostly say nothing."""
    match error:
        case msgpack.StackError():
            return "it is nested too deeply"
        case msgpack.FormatError():
            return "it has a byte that msgpack does not know"
        case _:
            return str(error) or type(error).__name__
