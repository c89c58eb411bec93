"""Finding the values of a packed map that is too large to be held, by stepping over them a window at a time.

Source: the first bytes of packed values, github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Protocol

import msgpack  # type: ignore[import-untyped]

from agentctl.errors import DecodeError

WINDOW_BYTES: Final = 64 * 1024

_LEAST_BYTES: Final = 18
"""Of a window: the longest value that has no length in front, an extension of 16 bytes."""
_EXTENSION_CODE: Final = 1
"""Bytes of an extension's code, which its length does not count."""
_LENGTH_BYTES: Final = MappingProxyType(
    {
        **{first + i: 1 << i for first in (0xC4, 0xC7, 0xD9) for i in range(3)},
        **{first + i: 2 << i for first in (0xDC, 0xDE) for i in range(2)},
    }
)
"""How wide the length is that follows a first byte: of bytes, extensions, text; of lists, maps."""
_ENDED: Final = "the packed value is cut short"


class Sliceable(Protocol):
    """Bytes that need not be in memory, such as a value in a database that is open for reading."""

    def __len__(self) -> int:
        """Returns how many there are."""
        ...

    def __getitem__(self, part: slice, /) -> bytes:
        """Returns some of them, fewer where they end."""
        ...


def value_spans(source: Sliceable, start: int = 0, *, window_bytes: int = WINDOW_BYTES) -> dict[str, slice]:
    """Returns where the values of a packed map with text keys lie, in stored order.

    Args:
        source: Holds the map; about `window_bytes` of it are in memory at a time.
        start: Where the map begins.
        window_bytes: Bytes to read at once, 18 at least.

    Raises:
        DecodeError: There is no packed map with text keys, or it is damaged.
    """
    windows = _Windows(source, window_bytes)
    try:
        beginning = windows.at(start)
        if not 0x80 <= beginning[0] <= 0x8F and beginning[0] not in (0xDE, 0xDF):
            raise DecodeError("the packed value is no map")
        n_bytes, n_inner = _header(beginning)
        spans: dict[str, slice] = {}
        end = start + n_bytes
        for _ in range(n_inner // 2):
            key_start, value_start = end, _end(windows, end)
            key = msgpack.unpackb(source[key_start:value_start], strict_map_key=False)
            if not isinstance(key, str):
                raise DecodeError(f"the map has the key {key!r} where text was expected")
            end = _end(windows, value_start)
            spans[key] = slice(value_start, end)
    except (ValueError, msgpack.UnpackException) as error:
        raise DecodeError(f"the packed map is damaged: {error or type(error).__name__}") from error
    if end > len(source):
        raise DecodeError(_ENDED)
    return spans


class _Windows:
    """Reads a source; the last window is kept."""

    def __init__(self, source: Sliceable, n_bytes: int) -> None:
        self._source = source
        self._n_bytes = n_bytes
        self._start = 0
        self._held = b""

    def at(self, position: int) -> bytes:
        """Returns bytes from a position on, enough for a short value or how a long one begins.

        Raises:
            DecodeError: There are none.
        """
        offset = position - self._start
        if not 0 <= offset <= len(self._held) - _LEAST_BYTES:
            self._held, self._start, offset = self._source[position : position + self._n_bytes], position, 0
        if not self._held:
            raise DecodeError(_ENDED)
        return self._held[offset:]


def _end(windows: _Windows, position: int) -> int:
    """Returns where the value ends that begins at a position.

    Values that lie in a window are stepped over at once; of one that does not, only its header is looked at, and then
    what it holds.
    """
    n_left = 1
    while n_left:
        window = windows.at(position)
        n_values, n_bytes = _whole_values(window, n_left)
        if not n_values:
            n_bytes, n_inner = _header(window)
            n_left += n_inner
            n_values = 1
        position += n_bytes
        n_left -= n_values
    return position


def _whole_values(window: bytes, most: int) -> tuple[int, int]:
    """Returns how many values, at most so many, lie in a window from its beginning on, and how many bytes they take."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)  # lengths are those of the source, not of the window
    unpacker.feed(window)
    n_values = n_bytes = 0
    try:
        while n_values < most:
            unpacker.skip()
            n_values, n_bytes = n_values + 1, unpacker.tell()
    except msgpack.OutOfData:
        pass
    return n_values, n_bytes


def _header(window: bytes) -> tuple[int, int]:
    """Returns how many bytes to go on to what a value holds, or to its end, and how many values it holds."""
    first = window[0]
    match first >> 4:
        case 0x8:
            return 1, 2 * (first & 0x0F)
        case 0x9:
            return 1, first & 0x0F
        case 0xA | 0xB:
            return 1 + (first & 0x1F), 0
    width = _LENGTH_BYTES.get(first)
    if width is None:  # all other values lie in a window that the source fills
        raise DecodeError(_ENDED)
    length = int.from_bytes(window[1 : 1 + width], "big")
    if first >= 0xDE:
        return 1 + width, 2 * length
    if first >= 0xDC:
        return 1 + width, length
    return 1 + width + length + (_EXTENSION_CODE if 0xC7 <= first <= 0xC9 else 0), 0
