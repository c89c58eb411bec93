"""Short checkpoint ids: suffixes, because LangGraph's ids are time-ordered and their prefixes collide.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/id.py (uuid6: time first, random node last).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

SHORT_DIGITS = 8
"""Hex digits of a short id where they are enough."""

MIN_DIGITS = 4
"""Fewest hex digits that are taken as a suffix."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX = re.compile(r"[0-9a-f-]+")


def is_uuid(checkpoint_id: str) -> bool:
    """Returns whether the id is a UUID as LangGraph writes it: lower case, with dashes."""
    return _UUID.fullmatch(checkpoint_id) is not None


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Returns a short form of every id that names only it among `ids`.

    UUIDs become their last 8 hex digits, more where two end alike; other ids stay whole. Each short form given to
    `match_id` with the same ids finds exactly its id.

    Args:
        ids: All checkpoint ids of the thread (of every namespace that is shown), in any order.
    """
    shorts: dict[str, str] = {}
    alike: dict[str, list[str]] = {}
    for id in set(ids):
        if is_uuid(id):
            alike.setdefault(id[-SHORT_DIGITS:], []).append(id)
        else:
            shorts[id] = id
    whole = {id.lower() for id in shorts}
    for suffix, uuids in alike.items():
        if len(uuids) == 1 and suffix not in whole:
            shorts[uuids[0]] = suffix
        else:
            shorts.update(_told_apart(uuids, whole))
    return shorts


def _told_apart(uuids: Iterable[str], whole: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields ids that end alike with suffixes long enough to tell them apart, from each other and from `whole` ids."""
    by_digits = {_reversed_digits(uuid): uuid for uuid in uuids}
    for digits, n_shared in _longest_shared(sorted(by_digits)).items():
        uuid = by_digits[digits]
        n_digits = max(SHORT_DIGITS, n_shared + 1)
        while (short := _suffix(uuid, n_digits)) in whole:
            n_digits += 1
        yield uuid, short


def match_id(text: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Returns the ids that `text` names, in the order of `ids`.

    An id that equals the text wins alone. Otherwise 4 or more hex digits (dashes do not count, nor does case) match
    every UUID that ends in them.
    """
    wanted = text.lower()
    exact = tuple(id for id in ids if id == text) or tuple(id for id in ids if id.lower() == wanted)
    if exact:
        return exact
    digits = wanted.replace("-", "")
    if not _HEX.fullmatch(wanted) or len(digits) < MIN_DIGITS:
        return ()
    return tuple(id for id in ids if is_uuid(id) and id.replace("-", "").endswith(digits))


def _reversed_digits(uuid: str) -> str:
    return uuid.replace("-", "")[::-1]


def _longest_shared(ordered: Sequence[str]) -> Mapping[str, int]:
    """Maps each string to the length of the longest prefix that it shares with another; neighbours are enough."""
    shared = dict.fromkeys(ordered, 0)
    for left, right in pairwise(ordered):
        n = next((i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b), len(left))
        shared[left] = max(shared[left], n)
        shared[right] = max(shared[right], n)
    return shared


def _suffix(uuid: str, n_digits: int) -> str:
    """Cuts the id so that `n_digits` hex digits remain, its dashes among them kept."""
    position = len(uuid)
    while n_digits and position:
        position -= 1
        if uuid[position] != "-":
            n_digits -= 1
    return uuid[position:]
