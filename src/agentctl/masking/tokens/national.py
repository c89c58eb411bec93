"""Numbers of national documents: another right one of the same kind; without a known kind, one of the same shape.

The birth date in a number becomes another day of the same year, as a birth date by itself does.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.schemes import Scheme, scheme_of
from agentctl.masking.tokens.dates import date_token
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.shapes import DIGITS, LETTERS, same_shape

_TRIES: Final = 4_000
_CENTURY: Final = 1900
"""Of two digits; only whether the year has a 29 February depends on it."""


def national_token(compact: str, key: Key, attempt: int) -> str:
    """Returns the token of a number in capitals without spaces, dots and dashes."""
    draws = Draws(key, "national id", compact, attempt)
    scheme = scheme_of(compact)
    if scheme is not None:
        dated = _with_other_date(compact, scheme, key)
        for _ in range(_TRIES):
            token = _drawn(compact, dated, scheme, draws)
            if token != compact and scheme.is_right(token):
                return token
    return same_shape(draws, compact)


def _with_other_date(compact: str, scheme: Scheme, key: Key) -> dict[int, str]:
    """Returns the new characters of the birth date by position; none where the number has none that is a date."""
    if scheme.dated is None:
        return {}
    start, order = scheme.dated
    start %= len(compact)
    width = {"Y": 4, "y": 2, "m": 2, "d": 2}
    parts: dict[str, tuple[int, int]] = {}
    for name in order:
        parts[name.lower()] = (start, start + width[name])
        start += width[name]
    year, month, day = (int(compact[slice(*parts[name])]) for name in "ymd")
    try:
        new = date_token(date(year if year > 99 else _CENTURY + year, month, day), key)
    except ValueError:
        return {}
    changed: dict[int, str] = {}
    for name, number in (("m", new.month), ("d", new.day)):
        first, _ = parts[name]
        changed |= {first: f"{number:02d}"[0], first + 1: f"{number:02d}"[1]}
    first, end = parts["y"]
    return changed | {position: compact[position] for position in range(first, end)}


def _drawn(compact: str, fixed: dict[int, str], scheme: Scheme, draws: Draws) -> str:
    characters = []
    for position, character in enumerate(compact):
        if position in fixed:
            characters.append(fixed[position])
        elif position in scheme.kept or not character.isalnum():
            characters.append(character)
        else:
            characters.append(draws.one_of(DIGITS if character in DIGITS else LETTERS))
    return "".join(characters)
