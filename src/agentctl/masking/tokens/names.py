"""Names: every part of one becomes a made-up word, so that a first name alone becomes what it is in the full name."""

from __future__ import annotations

import re
from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws, shuffled
from agentctl.masking.tokens.shapes import LETTERS, in_case_of, other_digits, spoken
from agentctl.masking.words import LETTERS as LETTERS_OF_WORDS
from agentctl.masking.words import listed

PART = re.compile(rf"{LETTERS_OF_WORDS}(?:['’]{LETTERS_OF_WORDS})*")
"""A part of a name: letters, with an apostrophe inside."""
DIGITS = re.compile(r"[0-9]+")

KEPT: Final = listed(
    """
    mr mrs ms miss mx dr prof sir madam mme mlle m sr sra srta herr frau fru hr dra don dona doña signor signora
    shri smt kumari jr ii iii iv phd md de da do das dos del della di du la le van von der den ten ter bin bint ibn
    al el y e and und et i
    """
)
"""Parts that name nobody: titles and particles."""
_LETTERS_LEAST: Final = 6
_LETTERS_KINDS: Final = 3


def part_token(part: str, key: Key, attempt: int) -> str:
    """Returns what a part of a name in lower case becomes, in lower case.

    A single Latin letter becomes a letter. Words have 6 to 8 letters, and there are 3.4e5 to 2.4e7 of them.
    """
    if len(part) == 1 and part.upper() in LETTERS:
        return shuffled(key, "initial", LETTERS)[part.upper()].lower()
    draws = Draws(key, "name", part, attempt)
    return spoken(draws, _LETTERS_LEAST + draws.below(_LETTERS_KINDS))


def is_kept(part: str) -> bool:
    """Says whether a part of a name names nobody."""
    return part.casefold() in KEPT


def written_as(word: str, written: str) -> str:
    """Returns a part's token in the case that the part is written in."""
    if len(word) == 1:
        return word.upper() if written.isupper() else word
    return in_case_of(word, written)


def digits_token(digits: str, key: Key) -> str:
    """Returns digits that stand in a name, such as that of an account."""
    return other_digits(Draws(key, "digits of a name", digits), digits)
