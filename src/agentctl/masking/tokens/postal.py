"""Postal addresses: other digits and made-up words; words that only say what follows stay (street, Flat, P.O. Box)."""

from __future__ import annotations

import re
from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.shapes import other_digits, spoken
from agentctl.masking.words import LETTERS, listed

WORD = re.compile(rf"{LETTERS}|[0-9]+")
KEPT: Final = listed(
    """
    street st road rd avenue ave av lane ln drive dr court ct square sq place pl boulevard blvd way close highway hwy
    apartment apt flat floor fl suite ste unit block building bldg house no number near opp opposite behind po p o box
    rue calle via viale piazza plaza rua avenida travessa strasse straße str weg platz allee gasse nagar marg sector
    phase cross main north south east west n s e w de da do das dos del della di du la le les el the of and und et y
    """
)
_CODE_LETTERS: Final = 2
"""A word of so many letters is part of a code, such as a British postcode's, and becomes as many letters."""
_LEAST_LETTERS: Final = 4


def is_kept(word: str) -> bool:
    """Says whether a word of an address tells nothing by itself."""
    return word.casefold() in KEPT


def segment_tokens(words: tuple[str, ...], key: Key, attempt: int) -> tuple[str, ...]:
    """Returns what the words of one line of an address (in lower case) become, in lower case."""
    draws = Draws(key, "address", " ".join(words), attempt)
    return tuple(_word(word, draws) for word in words)


def _word(word: str, draws: Draws) -> str:
    if is_kept(word):
        return word
    if word[0].isdigit():
        return other_digits(draws, word) if word[0] in "0123456789" else word
    if len(word) <= _CODE_LETTERS:
        return spoken(draws, len(word))
    return spoken(draws, max(len(word), _LEAST_LETTERS))
