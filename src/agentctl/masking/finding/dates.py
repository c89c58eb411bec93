"""Birth dates in text: a date after a word that says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentctl.masking.finding.groups import MANY_DIGITS
from agentctl.masking.finding.hits import Hit, words_around
from agentctl.masking.tokens.dates import WRITTEN

_BORN = re.compile(
    r"\bborn\b|\bb\. ?|\bdob\b|\bd\.o\.b|birth|geboren|\bgeb\.|\bnacid[oa]\b|\bnacimiento|\bnée?\b|naissance"
    r"|\bnat[oa]\b|nascita|nascid[oa]|nascimento|जन्म|出生|生年月日",
    re.IGNORECASE,
)

_SIGNS: Final = ("bo", "b.", "d.o.b", "geb", "naci", "né", "nais", "nat", "nasc", "dob", "birt", "जन्म", "出生", "生年")
"""Texts of which one stands where `_BORN` finds anything; quicker to look for."""


def birth_dates_in(text: str, name: str) -> Iterator[Hit]:
    """Finds dates that are said to be of a birth."""
    if MANY_DIGITS.search(text) is None or not any(sign in text.lower() for sign in _SIGNS):
        return
    for found in WRITTEN.finditer(text):
        if _BORN.search(words_around(text, *found.span())):
            yield Hit(found.start(), found.end(), "birth_date", 2)
