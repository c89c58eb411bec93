"""Putting a token into the writing of the value that it stands for: spaces, dashes and brackets where they were."""

from __future__ import annotations

import re
from typing import Final

_DIGIT: Final = re.compile("[0-9]")


def digits_of(text: str) -> str:
    """Returns the digits of a number, however it is written."""
    return "".join(_DIGIT.findall(text))


def compact(text: str) -> str:
    """Returns the letters and digits of a number, in capitals."""
    return "".join(character for character in text if character.isalnum()).upper()


def written_like(token: str, text: str) -> str:
    """Returns a compact token with everything that is no letter or digit where it is in a text of as many of them."""
    if len(token) != sum(character.isalnum() for character in text):
        return token
    characters = iter(token)
    return "".join(_in_case(next(characters), c) if c.isalnum() else c for c in text)


def last_digits(digits: str, text: str) -> str:
    """Returns a text with its last digits replaced by others, as many as are given."""
    places = [found.start() for found in _DIGIT.finditer(text)][-len(digits) :]
    characters = list(text)
    for place, digit in zip(places, digits[-len(places) :], strict=True):
        characters[place] = digit
    return "".join(characters)


def _in_case(character: str, written: str) -> str:
    return character.lower() if written.islower() else character
