"""Finding what a packed value holds that is too large to be held itself, by stepping over it a window at a time.

Source: the first bytes of packed values, github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import msgpack  # type: ignore[import-untyped]

from agentctl.codec.packed import reason_of
from agentctl.errors import DecodeError
from agentctl.records.rows import Sliceable

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
_KINDS: Final[Mapping[int, Literal["list", "map", "text", "bytes"]]] = MappingProxyType(
    {
        **dict.fromkeys((*range(0x80, 0x90), 0xDE, 0xDF), "map"),
        **dict.fromkeys((*range(0x90, 0xA0), 0xDC, 0xDD), "list"),
        **dict.fromkeys((*range(0xA0, 0xC0), 0xD9, 0xDA, 0xDB), "text"),
        **dict.fromkeys((0xC4, 0xC5, 0xC6), "bytes"),
    }
)
"""By first byte; extensions apart."""
_ENDED: Final = "the packed value is cut short"


class Span:
    """A part of some bytes, which are read when it is sliced.

    Args:
        source: The bytes.
        start: Where the part begins.
        stop: Where it ends.
    """

    __slots__ = ("_source", "_start", "_stop")

    def __init__(self, source: Sliceable, start: int, stop: int) -> None:
        self._source, self._start, self._stop = source, start, max(start, stop)

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, part: slice, /) -> bytes:
        start, stop, _ = part.indices(len(self))
        return self._source[self._start + start : self._start + stop]


class Joined:
    """Bytes that lie in several places, one after another; they are read when they are sliced."""

    __slots__ = ("_ends", "_parts")

    def __init__(self, parts: Iterable[Sliceable]) -> None:
        self._parts = tuple(parts)
        self._ends = tuple(accumulate(map(len, self._parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, part: slice, /) -> bytes:
        start, stop, _ = part.indices(len(self))
        found: list[bytes] = []
        for number in range(bisect_right(self._ends, start), len(self._parts)):
            begin = self._ends[number] - len(self._parts[number])
            if begin >= stop:
                break
            found.append(self._parts[number][max(start - begin, 0) : stop - begin])
        return found[0] if len(found) == 1 else b"".join(found)


class Run(NamedTuple):
    """Values that lie one after another in a window: their bytes, and where each ends in them."""

    data: bytes
    ends: list[int]

    def values(self) -> list[bytes]:
        """Returns the bytes of each."""
        return [self.data[start:end] for start, end in pairwise((0, *self.ends))]


class Layout(NamedTuple):
    """How a packed value is laid out.

    Attributes:
        kind: What it is; `other` has neither a length nor anything inside.
        inner: Where what it holds begins.
        n_inner: How many values a list or a map holds, keys counted too.
        code: Of an extension.
    """

    kind: Literal["list", "map", "extension", "text", "bytes", "other"]
    inner: int
    n_inner: int = 0
    code: int = 0


def windows_of(source: Sliceable, *, window_bytes: int = WINDOW_BYTES) -> Iterator[bytes]:
    """Yields all bytes, so many at a time."""
    for start in range(0, len(source), window_bytes):
        yield source[start : start + window_bytes]


def layout_at(source: Sliceable, start: int = 0) -> Layout:
    """Returns how the packed value is laid out that begins at a position.

    Raises:
        DecodeError: None begins there.
    """
    window = source[start : start + _LEAST_BYTES]
    if not window:
        raise DecodeError(_ENDED)
    first = window[0]
    if 0xC7 <= first <= 0xC9 or 0xD4 <= first <= 0xD8:
        at = 1 + _LENGTH_BYTES.get(first, 0)
        return Layout("extension", start + at + _EXTENSION_CODE, code=int.from_bytes(window[at : at + 1], signed=True))
    kind = _KINDS.get(first)
    if kind is None:
        return Layout("other", start + 1)
    if kind in ("list", "map"):
        n_bytes, n_inner = _header(window)
        return Layout(kind, start + n_bytes, n_inner)
    return Layout(kind, start + 1 + _LENGTH_BYTES.get(first, 0))


def inner_values(
    source: Sliceable, start: int, n_values: int, *, window_bytes: int = WINDOW_BYTES
) -> Iterator[Run | slice]:
    """Yields packed values that lie one after another: those together that a window holds, a longer one by its place.

    Args:
        source: Holds them.
        start: Where the first begins.
        n_values: How many there are.
        window_bytes: Bytes to read at once, 18 at least.

    Raises:
        DecodeError: There are fewer, or they are damaged.
    """
    position = start
    while n_values:
        window = source[position : position + window_bytes]
        try:
            ends = _ends(window, n_values)
            if not ends:
                end = _end(_Windows(source, window_bytes), position)
        except (ValueError, msgpack.UnpackException) as error:
            raise DecodeError(f"the packed value is damaged: {reason_of(error)}") from error
        if ends:
            yield Run(window[: ends[-1]], ends)
            end = position + ends[-1]
        elif end > len(source):
            raise DecodeError(_ENDED)
        else:
            yield slice(position, end)
        position = end
        n_values -= len(ends) or 1


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
        raise DecodeError(f"the packed map is damaged: {reason_of(error)}") from error
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
        ends = _ends(window, n_left)
        if ends:
            position += ends[-1]
            n_left -= len(ends)
        else:
            n_bytes, n_inner = _header(window)
            position += n_bytes
            n_left += n_inner - 1
    return position


def _ends(window: bytes, most: int) -> list[int]:
    """Returns where each value ends, at most so many, that lies in a window from its beginning on."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)  # lengths are those of the source, not of the window
    unpacker.feed(window)
    ends: list[int] = []
    try:
        while len(ends) < most:
            unpacker.skip()
            ends.append(unpacker.tell())
    except msgpack.OutOfData:
        pass
    return ends


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
