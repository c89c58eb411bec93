"""Texts of the same shape: a digit for a digit, a letter for a letter, all else as it is."""

from __future__ import annotations

import re
from typing import Final

from agentctl.masking.tokens.draws import Draws

DIGITS: Final = "0123456789"
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CONSONANTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"
_RUNS = re.compile(r"[0-9]+|[^\W\d_]+")
_FEW_DIGITS: Final = 4
"""With fewer of them the letters of a number are replaced too."""


def spoken(draws: Draws, n_letters: int) -> str:
    """Returns a word that can be spoken, in lower case."""
    return "".join(draws.one_of(_VOWELS if i % 2 else _CONSONANTS) for i in range(n_letters))


def in_case_of(word: str, written: str) -> str:
    """Returns a word in capitals, with one capital, or in lower case, as another is written."""
    if written.isupper() and len(written) > 1:
        return word.upper()
    return word.capitalize() if written[:1].isupper() or not written.lower().isascii() else word


def other_digits(draws: Draws, digits: str) -> str:
    """Returns as many digits; the first is 0 where it was, and only there."""
    if digits[0] == "0":
        return "0" + draws.text(DIGITS, len(digits) - 1)
    return draws.text(DIGITS[1:], 1) + draws.text(DIGITS, len(digits) - 1)


def same_shape(draws: Draws, text: str) -> str:
    """Returns a number of a document in its shape: other digits, and other letters where there are few digits."""
    few = sum(character in DIGITS for character in text) < _FEW_DIGITS

    def replaced(found: re.Match[str]) -> str:
        run = found[0]
        if run[0] in DIGITS:
            return other_digits(draws, run)
        return "".join(_letter(draws, letter) for letter in run) if few else run

    return _RUNS.sub(replaced, text)


def _letter(draws: Draws, letter: str) -> str:
    drawn = draws.one_of(LETTERS)
    return drawn if letter.isupper() else drawn.lower()
