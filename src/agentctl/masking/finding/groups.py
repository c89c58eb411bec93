"""Numbers as they are written: groups of digits and letters with single spaces, dots or dashes between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_GROUP: Final = r"(?:[A-Za-z&Ñ]*[0-9][A-Za-z0-9&Ñ]*|[A-Z&Ñ]{1,6}(?![a-z]))"
_CLUSTER = re.compile(rf"(?<![\w@#/+.-])(?<!\w[./@-]){_GROUP}(?:[ .+-]{_GROUP})*(?![\w@/]|-\w|\.[0-9])")
_IN_CLUSTER = re.compile(_GROUP)
_DIGIT = re.compile("[0-9]")
_JOINS: Final = ("-", "+", ".")
"""Where one of these is next to it, a stretch is part of a longer number."""
_MOST_GROUPS: Final = 9
_MOST_CHARACTERS: Final = 44
_CHARACTERS_OF_GROUP: Final = 3
"""At least, with the sign after it and but for one group: rows of small numbers are no number of anybody."""
_FEWEST_DIGITS: Final = 4
MANY_DIGITS = re.compile(r"[0-9](?:[^0-9\n]{0,4}[0-9]){3}")
"""A sign of numbers that could be somebody's."""
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_TIME = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9](?:[T ][0-2][0-9]:[0-5][0-9](?::[0-5][0-9])?)?")


class Written(NamedTuple):
    """A number that could be one: where it stands, and its letters and digits in capitals.

    `is_part` says that more is joined to it by a dash or a dot, so that only a name beside it tells what it is.
    """

    start: int
    end: int
    text: str
    compact: str
    is_part: bool


def numbers_in(text: str) -> Iterator[Written]:
    """Yields every run of groups that could be one number, longer ones of the same start first.

    Parts of UUIDs and times are none.
    """
    if MANY_DIGITS.search(text) is None:
        return
    machine = [found.span() for pattern in (_UUID, _TIME) for found in pattern.finditer(text)]
    for cluster in _CLUSTER.finditer(text):
        groups = [found.span() for found in _IN_CLUSTER.finditer(text, *cluster.span())]
        for first, (start, _) in enumerate(groups):
            near = groups[first : first + _MOST_GROUPS]
            for n_groups, (_, end) in reversed([*enumerate(near, 1)]):
                if n_groups > (end - start) // _CHARACTERS_OF_GROUP + 1:
                    continue
                if end - start > _MOST_CHARACTERS or any(a < end and start < b for a, b in machine):
                    continue
                is_part = text[cluster.start() : start][-1:] in _JOINS or text[end : cluster.end()][:1] in _JOINS
                written = text[start:end]
                if len(_DIGIT.findall(written)) >= _FEWEST_DIGITS:
                    yield Written(start, end, written, re.sub("[ .+-]", "", written).upper(), is_part)
