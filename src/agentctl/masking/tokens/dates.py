"""Birth dates: another day of the same year, in the same writing.

The year stays, so that a rule about ages decides as it did but for the days around a birthday. The days of a year are
put into another order, so different dates stay different; days up to the 12th among themselves, so that a date whose
day and month could be taken for each other stays one.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final, NamedTuple

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import shuffled

_SHORT: Final = tuple(name.casefold() for name in calendar.month_abbr)
_MONTH_WORD: Final = "|".join([*calendar.month_name[1:], "sept", *calendar.month_abbr[1:]])
WRITTEN = re.compile(
    rf"""(?<![\w/.-])(?:
    (?P<iso>(?P<y1>[0-9]{{4}})(?P<s1>[-/.])(?P<m1>[0-9]{{1,2}})(?P=s1)(?P<d1>[0-9]{{1,2}}))
    |(?P<compact>(?P<y2>(?:19|20)[0-9]{{2}})(?P<m2>[0-9]{{2}})(?P<d2>[0-9]{{2}}))
    |(?P<numbers>(?P<a>[0-9]{{1,2}})(?P<s3>[-/.])(?P<b>[0-9]{{1,2}})(?P=s3)(?P<y3>[0-9]{{4}}))
    |(?P<day_first>(?P<d4>[0-9]{{1,2}})(?:st|nd|rd|th)?[ -](?P<m4>{_MONTH_WORD})\.?,?[ -](?P<y4>[0-9]{{4}}))
    |(?P<month_first>(?P<m5>{_MONTH_WORD})\.?[ ](?P<d5>[0-9]{{1,2}})(?:st|nd|rd|th)?,?[ ](?P<y5>[0-9]{{4}}))
    )(?![0-9/-])""",
    re.VERBOSE | re.IGNORECASE,
)
"""A date as people and machines write it; months in words are English."""


_LAST_MONTH: Final = 12


class Written(NamedTuple):
    """A date in a text: which it is, and where its day and month stand (their order of writing does not matter)."""

    day: date
    day_span: tuple[int, int]
    month_span: tuple[int, int]


def date_in(found: re.Match[str]) -> Written | None:
    """Returns the date that `WRITTEN` found, or None where there is no such day.

    Of two numbers that could both be a month, the first is the day.
    """
    match found.lastgroup or "":
        case _ if found["iso"]:
            names = ("y1", "m1", "d1")
        case _ if found["compact"]:
            names = ("y2", "m2", "d2")
        case _ if found["numbers"]:
            names = ("y3", "a", "b") if int(found["b"]) > _LAST_MONTH else ("y3", "b", "a")
        case _ if found["day_first"]:
            names = ("y4", "m4", "d4")
        case _:
            names = ("y5", "m5", "d5")
    year, month, day = (found[name] for name in names)
    try:
        return Written(date(int(year), _month(month), int(day)), found.span(names[2]), found.span(names[1]))
    except ValueError:
        return None


def dates_in(text: str) -> Iterator[Written]:
    """Yields the dates in a text."""
    return (written for found in WRITTEN.finditer(text) if (written := date_in(found)) is not None)


def date_token(day: date, key: Key) -> date:
    """Returns another day of the same year."""
    n_days = 366 if calendar.isleap(day.year) else 365
    year = [date(day.year, 1, 1) + timedelta(days=number) for number in range(n_days)]
    alike = [other.isoformat() for other in year if (other.day > _LAST_MONTH) == (day.day > _LAST_MONTH)]
    return date.fromisoformat(shuffled(key, "birth date", alike)[day.isoformat()])


def rewritten(text: str, found: Written, new: date) -> str:
    """Returns the text with another day and month in place of those of a date in it."""
    parts = sorted([(found.day_span, new.day), (found.month_span, new.month)])
    for (start, end), number in reversed(parts):
        old = text[start:end]
        is_month = (start, end) == found.month_span
        text = text[:start] + (_month_as(number, old) if is_month else _number_as(number, old)) + text[end:]
    return text


def _month(text: str) -> int:
    word = text.casefold()
    if word.isdigit():
        return int(word)
    return _SHORT.index(word[:3])


def _month_as(month: int, written: str) -> str:
    if written.isdigit():
        return _number_as(month, written)
    word = (
        calendar.month_abbr[month] if len(written) <= 4 and written.casefold() != "may" else calendar.month_name[month]
    )
    return word.upper() if written.isupper() else word.lower() if written.islower() else word


def _number_as(number: int, written: str) -> str:
    return f"{number:02d}" if written.startswith("0") or len(written) == 2 else str(number)
