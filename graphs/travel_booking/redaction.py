"""Card numbers, security codes and passport numbers: taken out of a traveller's words before anything is stored."""

from __future__ import annotations

import re

REMOVED = "[removed]"

_CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")
_CODE = re.compile(r"(?i)\b(cvv2?|cvc2?|cid|security code)(\W{0,3}(?:is|number|:)?\W{0,3})\d{3,4}\b")
_PASSPORT = re.compile(r"(?i)\b(passport)((?:\W+(?:no|nr|number|is|id))*\W{1,3})(?=[a-z0-9]*\d)[a-z0-9]{6,9}\b")


def redacted(text: str) -> str:
    """Returns a text without what must never be stored; everything else stays as it is.

    A run of 13 to 19 digits is a card number where its check digit fits. Better one number too many is removed than
    one too few: codes and passport numbers go wherever they are named.
    """
    text = _CARD.sub(lambda found: REMOVED if _fits(found.group()) else found.group(), text)
    text = _CODE.sub(rf"\1\2{REMOVED}", text)
    return _PASSPORT.sub(rf"\1\2{REMOVED}", text)


def _fits(digits: str) -> bool:
    """Tells whether the last digit is the check digit of the others (Luhn)."""
    numbers = [int(digit) for digit in digits if digit.isdigit()]
    doubled = [number * 2 - 9 if number > 4 else number * 2 for number in numbers[-2::-2]]
    return (sum(numbers[-1::-2]) + sum(doubled)) % 10 == 0
