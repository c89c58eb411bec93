"""Messages and fields of states: how often each is stored, and what it takes.

Values are read one at a time and cut into items, large ones in parts; an item is looked into once, however often it is
stored. Of one thread the distinct items are remembered, by the hash of their bytes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from agentctl.codec.inert import plain
from agentctl.codec.large import abridged, digest_of, nothing
from agentctl.codec.messages import message_of
from agentctl.codec.parts import Parts, fields_of, may_be_message, parts_of
from agentctl.errors import DecodeError
from agentctl.records.rows import Large, Stored
from agentctl.records.sizes import SizeItem, StateValues

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Place = tuple[str, str]
"""(namespace path, channel)."""


class Described(NamedTuple, Generic[T]):
    """One distinct item of a channel of a thread, and how often it is stored."""

    thread: str
    place: Place
    what: T
    n_copies: int
    n_bytes: int


class _Describe(Protocol[T_co]):
    def __call__(self, item: Stored | Large, *, of_list: bool) -> T_co | None: ...


def messages(slices: Iterable[StateValues], unread: Counter[str]) -> Iterator[SizeItem]:
    """Yields every distinct message with its copies, thread by thread.

    Args:
        slices: Values of states, thread by thread.
        unread: Takes how many values could not be read, by the reason.
    """
    for found in _distinct(slices, unread, _describe_message):
        (path, channel), (name, detail) = found.place, found.what
        yield SizeItem(
            thread=found.thread,
            ns=path,
            channel=channel,
            name=name,
            detail=detail,
            n_values=found.n_copies,
            n_distinct=1,
            state_bytes=found.n_bytes * found.n_copies,
            payload_bytes=found.n_bytes,
        )


def fields(slices: Iterable[StateValues], unread: Counter[str]) -> Iterator[SizeItem]:
    """Yields every field of the values of each channel, all threads together; arguments as in `messages`."""
    counted: dict[tuple[str, str, str], _Field] = {}
    known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def describe(item: Stored | Large, *, of_list: bool) -> _Sizes:
        sizes = _describe_fields(item, of_list=of_list)
        names = tuple(sizes)
        return _Sizes(known.setdefault(names, names), array("Q", sizes.values()))

    for found in _distinct(slices, unread, describe):
        for suffix, n_bytes in zip(*found.what, strict=True):
            path, channel = found.place
            counted.setdefault((path, channel, suffix), _Field()).add(n_bytes, found.n_copies)
    for (path, channel, suffix), field in counted.items():
        yield SizeItem(
            ns=path,
            channel=channel,
            name=f"{channel}{suffix}",
            n_values=field.n_values,
            n_distinct=field.n_distinct,
            state_bytes=field.stored_bytes,
            payload_bytes=field.payload_bytes,
        )


class _Sizes(NamedTuple):
    """Bytes of an item's fields; items with the same fields share their names."""

    suffixes: tuple[str, ...]
    n_bytes: array[int]


class _Field:
    """What was counted of one field."""

    __slots__ = ("n_distinct", "n_values", "payload_bytes", "stored_bytes")

    def __init__(self) -> None:
        self.n_values = self.n_distinct = self.stored_bytes = self.payload_bytes = 0

    def add(self, n_bytes: int, n_copies: int) -> None:
        self.n_values += n_copies
        self.n_distinct += 1
        self.stored_bytes += n_bytes * n_copies
        self.payload_bytes += n_bytes


class _Counted(Generic[T]):
    """One distinct item while its thread is read; `what` None is one that is of no interest."""

    __slots__ = ("n_bytes", "n_copies", "what")

    def __init__(self, what: T | None, n_bytes: int) -> None:
        self.what = what
        self.n_bytes = n_bytes
        self.n_copies = 0


def _distinct(slices: Iterable[StateValues], unread: Counter[str], describe: _Describe[T]) -> Iterator[Described[T]]:
    thread = ""
    seen: dict[Place, dict[bytes, _Counted[T]]] = {}
    for of_state in slices:
        if of_state.thread != thread:
            yield from _described(thread, seen)
            thread, seen = of_state.thread, {}
        if of_state.unread is not None:
            unread[of_state.unread] += 1
        for channel, value in of_state.values.items():
            try:
                _count(parts_of(value), seen.setdefault((of_state.path, channel), {}), unread, describe)
            except DecodeError as error:
                unread[error.message] += 1
    yield from _described(thread, seen)


def _count(parts: Parts, seen: dict[bytes, _Counted[T]], unread: Counter[str], describe: _Describe[T]) -> None:
    for item in parts.items:
        digest = digest_of(item.data)
        counted = seen.get(digest)
        if counted is None:
            try:
                what = describe(item, of_list=parts.is_list)
            except DecodeError as error:
                unread[error.message] += 1
                what = None
            counted = seen[digest] = _Counted(what, len(item.data))
        counted.n_copies += 1


def _described(thread: str, seen: Mapping[Place, Mapping[bytes, _Counted[T]]]) -> Iterator[Described[T]]:
    for place, items in seen.items():
        for counted in items.values():
            if counted.what is not None:
                yield Described(thread, place, counted.what, counted.n_copies, counted.n_bytes)


def _describe_message(item: Stored | Large, *, of_list: bool) -> tuple[str, str] | None:
    """Returns a message's id, and its role with the name of its tool or author; None for what is no message."""
    if not may_be_message(item):
        return None
    message = message_of(plain(abridged(item, nothing)))
    if message is None:
        return None
    return message.id or "", f"{message.role} {message.name}" if message.name else message.role


def _describe_fields(item: Stored | Large, *, of_list: bool) -> Mapping[str, int]:
    """Returns bytes by the suffix that a channel's name takes: `[].content`, `.address`, '' for the value itself."""
    prefix = "[]" if of_list else ""
    return {f"{prefix}.{name}" if name else prefix: n_bytes for name, n_bytes in fields_of(item).items()}
