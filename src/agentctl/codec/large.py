"""Values that are too large to be held: looked through, told apart and cut short without their text.

Of a packed value what lies in a window is decoded together; only text, bytes, lists and maps that are longer are gone
through by themselves. Values of other forms (JSON, encrypted) can only be read whole.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import Final, Protocol, runtime_checkable

from xxhash import xxh3_128, xxh3_128_digest

from agentctl.codec.tree import DELTA_SNAPSHOT, DELTA_SNAPSHOT_TYPE, NUMPY_ARRAY, NUMPY_ARRAY_TYPE, Opaque, Typed
from agentctl.codec.values import unpack, unpack_packed
from agentctl.codec.windows import Layout, Run, Span, inner_values, layout_at, windows_of
from agentctl.errors import DecodeError
from agentctl.records.rows import Large, Sliceable, Stored

HELD_BYTES: Final = 1024 * 1024
"""Parts up to this size are held and decoded at once."""

_BEGUN_CHARACTERS: Final = 10_000

RAW_TYPES: Final = frozenset({"bytes", "bytearray"})
"""Values of these types are stored as they are."""

Cut = Callable[[Iterator[str]], str]
"""Makes of a long text, given in pieces, the text that stands for it."""

CutBytes = Callable[[Sliceable], bytes]
"""Makes of long bytes those that stand for them."""


def whole(value: Stored | Large) -> Stored:
    """Returns a value with all its bytes."""
    return value if isinstance(value, Stored) else Stored(value.type, value.data[:])


@runtime_checkable
class Hashed(Protocol):
    """Bytes of which their store can tell a hash, without giving them."""

    def digest(self) -> bytes:
        """Returns it; that of other bytes, and of other stores, is another one."""
        ...


@runtime_checkable
class Sound(Protocol):
    """A packed value of which its store has seen that it can be read."""

    is_sound: bool


def same_bytes(left: Sliceable, right: Sliceable) -> bool:
    """Says whether two are the same; of different stores both are read."""
    if len(left) != len(right):
        return False
    if isinstance(left, Hashed) and isinstance(right, Hashed):
        return left.digest() == right.digest()
    return _read_digest(left) == _read_digest(right)


def digest_of(data: Sliceable) -> bytes:
    """Returns a hash by which bytes of one store are told apart: what the store tells, else the XXH3 hash, 16 long."""
    return data.digest() if isinstance(data, Hashed) else _read_digest(data)


def _read_digest(data: Sliceable) -> bytes:
    if isinstance(data, bytes):
        return xxh3_128_digest(data)
    state = xxh3_128()
    for window in windows_of(data, window_bytes=HELD_BYTES):
        state.update(window)
    return state.digest()


def no_bytes(_: Sliceable) -> bytes:
    """Cuts long bytes to none, unread."""
    return b""


def begun_bytes(data: Sliceable) -> bytes:
    """Cuts long bytes to their beginning, and their XXH3 hash."""
    return data[:_BEGUN_CHARACTERS] + digest_of(data)


def abridged(value: Stored | Large, cut: Cut, cut_bytes: CutBytes = no_bytes) -> object:
    """Returns the tree of a value (`codec.tree`) in which long text and bytes are cut.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    if isinstance(value, Large) and value.type in RAW_TYPES:
        return cut_bytes(value.data)
    if isinstance(value, Stored) or value.type != "msgpack":
        return unpack(whole(value))
    return _tree(value.data, cut, cut_bytes)


def begun(pieces: Iterator[str]) -> str:
    """Cuts a long text to its beginning, how long it is, and by its XXH3 hash which text it is."""
    beginning, n_characters, digest = "", 0, xxh3_128()
    for piece in pieces:
        beginning += piece[: max(_BEGUN_CHARACTERS - n_characters, 0)]
        n_characters += len(piece)
        digest.update(piece.encode("utf-8", "surrogatepass"))
    return f"{beginning}... ({n_characters:,} characters, XXH3 {digest.hexdigest()[:12]})"


def nothing(_: Iterator[str]) -> str:
    """Cuts a long text to an empty one, unread."""
    return ""


def runs_of(data: Sliceable) -> Iterator[list[object] | Sliceable]:
    """Yields what a packed list, or a packed map with its keys, holds.

    Those are lists of trees, of what lies together in a window, and what is longer as it lies there.

    Raises:
        DecodeError: Damaged bytes.
    """
    layout = layout_at(data)
    for found in inner_values(data, layout.inner, layout.n_inner, window_bytes=HELD_BYTES):
        yield _trees(found) if isinstance(found, Run) else Span(data, found.start, found.stop)


def check(value: Stored | Large) -> None:
    """Looks through a value.

    Raises:
        DecodeError: Some of it cannot be read, or it is encrypted without a key.
    """
    if value.type in RAW_TYPES or isinstance(value.data, Sound):
        return
    if isinstance(value, Stored) or value.type != "msgpack":
        unpack(whole(value))
        return
    todo = [value.data]
    while todo:
        data = todo.pop()
        layout = layout_at(data)
        if layout.kind in ("list", "map"):
            todo += (found for found in runs_of(data) if not isinstance(found, list))
        elif layout.kind == "text":
            for _ in texts_of(Span(data, layout.inner, len(data))):
                pass
        elif layout.kind == "extension" and 0 <= layout.code <= DELTA_SNAPSHOT:
            todo.append(Span(data, layout.inner, len(data)))


def texts_of(data: Sliceable) -> Iterator[str]:
    """Yields long text in pieces.

    Raises:
        DecodeError: It is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for window in windows_of(data, window_bytes=HELD_BYTES):
            yield decoder.decode(window)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise DecodeError(f"the value is damaged: {error.reason}") from error


def _tree(data: Sliceable, cut: Cut, cut_bytes: CutBytes) -> object:
    if len(data) <= HELD_BYTES:
        return unpack(Stored("msgpack", data[:]))
    layout = layout_at(data)
    match layout.kind:
        case "list":
            return list(_inner(data, cut, cut_bytes))
        case "map":
            inner = _inner(data, cut, cut_bytes)
            return dict(zip(inner, inner, strict=True))
        case "text":
            return cut(texts_of(Span(data, layout.inner, len(data))))
        case "extension":
            return _typed(Span(data, layout.inner, len(data)), layout, cut, cut_bytes)
        case _:
            return cut_bytes(Span(data, layout.inner, len(data)))


def _typed(inside: Sliceable, layout: Layout, cut: Cut, cut_bytes: CutBytes) -> object:
    """Returns the node of a long extension, as `codec.values.unpack` does."""
    if not 0 <= layout.code <= DELTA_SNAPSHOT:
        return Opaque(layout.code, cut_bytes(inside))
    parts = _tree(inside, cut, cut_bytes)
    if layout.code == DELTA_SNAPSHOT:
        return Typed(layout.code, *DELTA_SNAPSHOT_TYPE, parts)
    if layout.code == NUMPY_ARRAY:
        return Typed(layout.code, *NUMPY_ARRAY_TYPE, parts)
    match parts:
        case [str(module), str(name), payload, *rest]:
            return Typed(layout.code, module, name, payload, tuple(rest))
        case _:
            return Opaque(layout.code, cut_bytes(inside))


def _inner(data: Sliceable, cut: Cut, cut_bytes: CutBytes) -> Iterator[object]:
    for found in runs_of(data):
        if isinstance(found, list):
            yield from found
        else:
            yield _tree(found, cut, cut_bytes)


def _trees(run: Run) -> list[object]:
    """Returns the trees of values that lie together, decoded as one list."""
    header = b"\xdd" + len(run.ends).to_bytes(4, "big")
    found = unpack_packed(header + run.data)
    assert isinstance(found, list)
    return found
