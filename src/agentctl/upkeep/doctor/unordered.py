"""Hashes of values in which the order of maps and sets does not count: two processes store them in different orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from xxhash import xxh3_128, xxh3_128_digest, xxh3_128_intdigest

from agentctl.codec.large import RAW_TYPES, digest_of, runs_of, texts_of, whole
from agentctl.codec.tree import DELTA_SNAPSHOT, DELTA_SNAPSHOT_TYPE, NUMPY_ARRAY, NUMPY_ARRAY_TYPE, Opaque, Typed
from agentctl.codec.values import unpack
from agentctl.codec.windows import Span, layout_at
from agentctl.records.rows import Large, Sliceable, Stored

_SETS: Final = (("builtins", "set"), ("builtins", "frozenset"))
_N_BITS: Final = 128


def unordered_digest(value: Stored | Large) -> bytes:
    """Returns the hash of a value; a large one, which is gone through in parts, has that which it has read whole.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    if isinstance(value, Large) and value.type == "msgpack":
        return _of_packed(value.data)
    if value.type in RAW_TYPES:
        return digest_of(value.data)
    return _of_tree(unpack(whole(value)))


def _of_tree(tree: object, *, is_set: bool = False) -> bytes:
    match tree:
        case str():
            return _of_text([tree])
        case dict():
            return _of_map(_of_tree(item) for entry in tree.items() for item in entry)
        case list() | tuple():
            return _of_list(map(_of_tree, tree), is_set=is_set)
        case Typed():
            is_set = (tree.module, tree.name) in _SETS
            return _of_typed(tree.code, (tree.module, tree.name), _of_tree(tree.payload, is_set=is_set))
        case Opaque():
            return _of_typed(tree.code, (), xxh3_128_digest(tree.data))
        case _:
            return xxh3_128_digest(repr(tree).encode())


def _of_packed(data: Sliceable, *, is_set: bool = False) -> bytes:
    layout = layout_at(data)
    if layout.kind == "list":
        return _of_list(_inner(data), is_set=is_set)
    if layout.kind == "map":
        return _of_map(_inner(data))
    if layout.kind == "text":
        return _of_text(texts_of(Span(data, layout.inner, len(data))))
    inside = Span(data, layout.inner, len(data))
    if layout.kind == "extension" and 0 <= layout.code <= DELTA_SNAPSHOT:
        return _of_extension(layout.code, inside)
    return _of_tree(unpack(Stored("msgpack", data[:])))


def _of_extension(code: int, inside: Sliceable) -> bytes:
    if code in (DELTA_SNAPSHOT, NUMPY_ARRAY):
        return _of_typed(code, DELTA_SNAPSHOT_TYPE if code == DELTA_SNAPSHOT else NUMPY_ARRAY_TYPE, _of_packed(inside))
    items = [item for run in runs_of(inside) for item in (run if isinstance(run, list) else [run])]
    match items:
        case [str(module), str(name), payload, *_]:
            return _of_typed(code, (module, name), _digest(payload, is_set=(module, name) in _SETS))
        case _:
            return _of_typed(code, (), xxh3_128_digest(inside[:]))


def _digest(item: object, *, is_set: bool = False) -> bytes:
    """Returns the hash of what a run holds: a tree, or what is longer as it lies there."""
    return _of_packed(item, is_set=is_set) if isinstance(item, Span) else _of_tree(item, is_set=is_set)


def _inner(data: Sliceable) -> Iterator[bytes]:
    for run in runs_of(data):
        if isinstance(run, list):
            yield from map(_of_tree, run)
        else:
            yield _of_packed(run)


def _of_text(pieces: Iterable[str]) -> bytes:
    state = xxh3_128(b"text")
    for piece in pieces:
        state.update(piece.encode("utf-8", "surrogatepass"))
    return state.digest()


def _of_list(digests: Iterable[bytes], *, is_set: bool) -> bytes:
    if is_set:
        return _sum(b"set", digests)
    state = xxh3_128(b"list")
    for digest in digests:
        state.update(digest)
    return state.digest()


def _of_map(digests: Iterator[bytes]) -> bytes:
    """Returns the hash of a map from those of its keys and values in turn."""
    return _sum(b"map", (key + value for key, value in zip(digests, digests, strict=True)))


def _of_typed(code: int, names: tuple[str, ...], payload: bytes) -> bytes:
    return xxh3_128_digest(repr((code, *names)).encode() + payload)


def _sum(kind: bytes, parts: Iterable[bytes]) -> bytes:
    total = sum(xxh3_128_intdigest(part) for part in parts) % (1 << _N_BITS)
    return xxh3_128_digest(kind + total.to_bytes(_N_BITS // 8, "big"))
