"""Two values that are too large to be held: what both have alike is passed over, and what differs is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Final, NamedTuple

from agentctl.codec.inert import MARKS
from agentctl.codec.large import same_bytes
from agentctl.codec.messages import message_of
from agentctl.codec.parts import parts_of
from agentctl.codec.windows import Span, layout_at, value_spans
from agentctl.errors import DecodeError
from agentctl.records.messages import Message
from agentctl.records.rows import Large, Stored
from agentctl.stores.reading.large_state import inert

_ALIKE: Final = None
"""Stands on both sides for an item of a list that both have alike at its place."""


class Leading(NamedTuple):
    """The messages that two lists begin with alike: how many, and the final reply of a conversation that ends there."""

    n_messages: int = 0
    reply: str | None = None

    def after(self, message: Message) -> Leading:
        """Returns the same with one more message."""
        if message.role == "human":
            return Leading(self.n_messages + 1)
        return Leading(self.n_messages + 1, message.text if message.role == "ai" and message.text else self.reply)


class Pair(NamedTuple):
    """Two inert values without what both have alike: `left` and `right` differ as the whole values do.

    Of lists that hold messages and nothing else, the messages that both begin with are only in `leading`.
    """

    left: object
    right: object
    leading: Leading = Leading()


def without_alike(left: Stored | Large, right: Stored | Large, *, is_cut: bool) -> Pair:
    """Returns two values as far as they differ.

    Args:
        left: One value.
        right: The other.
        is_cut: Whether text and bytes over 1 MB are cut; they are equal only where the whole ones are.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    if is_list(left) and is_list(right):
        return _lists(left, right, is_cut)
    if alike(left, right):
        return Pair(_ALIKE, _ALIKE)
    fields = _fields(left), _fields(right)
    if fields[0] is not None and fields[1] is not None:
        return _maps(fields[0], fields[1], is_cut)
    return Pair(inert(left, is_cut=is_cut), inert(right, is_cut=is_cut))


def alike(left: Stored | Large, right: Stored | Large) -> bool:
    """Says whether two values are stored as the same bytes."""
    return left.type == right.type and same_bytes(left.data, right.data)


def is_list(value: Stored | Large) -> bool:
    """Says whether a value is a list; of a DeltaChannel's snapshot, whether what it holds is one.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    return parts_of(value).is_list


def _lists(left: Stored | Large, right: Stored | Large, is_cut: bool) -> Pair:
    """Goes through two lists side by side; they are gone through again where an item is no message after all."""
    leading = Leading()
    ours: list[object] = []
    theirs: list[object] = []
    begins_alike = True
    for one, other in _side_by_side(left, right):
        if begins_alike and one is not None and other is not None and alike(one, other):
            message = message_of(inert(one, is_cut=is_cut))
            if message is None:
                return _other_lists(left, right, is_cut)
            leading = leading.after(message)
            continue
        begins_alike = False
        for item, side in ((one, ours), (other, theirs)):
            if item is not None:
                side.append(inert(item, is_cut=is_cut))
                if message_of(side[-1]) is None:
                    return _other_lists(left, right, is_cut)
    return Pair(ours, theirs, leading)


def _other_lists(left: Stored | Large, right: Stored | Large, is_cut: bool) -> Pair:
    """Returns lists that are not of messages alone, in which items that are alike are left out and not moved."""
    ours: list[object] = []
    theirs: list[object] = []
    for one, other in _side_by_side(left, right):
        is_alike = one is not None and other is not None and alike(one, other)
        for item, side in ((one, ours), (other, theirs)):
            if item is not None:
                side.append(_ALIKE if is_alike else inert(item, is_cut=is_cut))
    return Pair(ours, theirs)


def _side_by_side(
    left: Stored | Large, right: Stored | Large
) -> Iterator[tuple[Stored | Large | None, Stored | Large | None]]:
    yield from zip_longest(parts_of(left).items, parts_of(right).items)


def _maps(left: Mapping[str, Large], right: Mapping[str, Large], is_cut: bool) -> Pair:
    found: tuple[dict[str, object], dict[str, object]] = ({}, {})
    for name in {**left, **right}:
        sides = left.get(name), right.get(name)
        if sides[0] is not None and sides[1] is not None and alike(sides[0], sides[1]):
            continue
        for value, side in zip(sides, found, strict=True):
            if value is not None:
                side[name] = inert(value, is_cut=is_cut)
    return Pair(*found)


def _fields(value: Stored | Large) -> Mapping[str, Large] | None:
    """Returns the values of a packed map by their keys, None for anything else and where its keys are no plain text."""
    if value.type != "msgpack" or layout_at(value.data).kind != "map":
        return None
    try:
        spans = value_spans(value.data)
    except DecodeError:
        return None
    if not MARKS.isdisjoint(spans):
        return None
    return {name: Large("msgpack", Span(value.data, span.start, span.stop)) for name, span in spans.items()}
