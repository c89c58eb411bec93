"""What a word is in a regular expression, and lists of words."""

from __future__ import annotations

from typing import Final

MARKS: Final = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
    "\u0980-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b4d"
    "\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c4d\u0c81-\u0c83\u0cbc-\u0ccd\u0d00-\u0d03\u0d3e-\u0d4d\u0e31\u0e34-\u0e3a"
    "\u0e47-\u0e4e\u200c\u200d"
)
"""Signs that belong to the letter before them and are no letters to a regular expression: accents, vowels of Indic
scripts."""
WORD: Final = rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*"
LETTERS: Final = rf"[^\W\d_]+(?:[{MARKS}]+[^\W\d_]*)*"
"""Regular expressions of a word, and of one without digits."""


def listed(text: str) -> frozenset[str]:
    """Returns the words of a text."""
    return frozenset(text.split())
