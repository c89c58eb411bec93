"""Short checkpoint ids: suffixes, because LangGraph's ids are time-ordered and their prefixes collide.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/id.py (uuid6: time first, random node last).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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
    every = set(ids)
    uuids = sorted(_reversed_digits(id) for id in every if is_uuid(id))
    shared = _longest_shared(uuids)
    whole = {id.lower() for id in every if not is_uuid(id)}
    shorts: dict[str, str] = {}
    for id in every:
        if not is_uuid(id):
            shorts[id] = id
            continue
        digits = max(SHORT_DIGITS, shared[_reversed_digits(id)] + 1)
        while (short := _suffix(id, digits)) in whole:
            digits += 1
        shorts[id] = short
    return shorts


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
