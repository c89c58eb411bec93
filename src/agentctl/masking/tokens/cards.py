"""Card numbers: the network's test range, the same length, a right check digit.

Source: the test numbers that payment providers publish (docs.stripe.com/testing, Adyen test card numbers).
"""

from __future__ import annotations

from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.shapes import DIGITS

_TEST_RANGES: Final = (
    ("34", "378282"),
    ("37", "378282"),
    ("30", "305693"),
    ("36", "305693"),
    ("38", "305693"),
    ("35", "356600"),
    ("62", "620000"),
    ("60", "601111"),
    ("64", "601111"),
    ("65", "601111"),
    ("5", "555555"),
    ("2", "555555"),
    ("", "400000"),
)
"""The first digits of a card, and those of test cards of the same network (of Visa where the network has none)."""


def card_token(digits: str, key: Key, attempt: int) -> str:
    """Returns a test number of as many digits."""
    start = next(test for first, test in _TEST_RANGES if digits.startswith(first))
    body = start + Draws(key, "card", digits, attempt).text(DIGITS, len(digits) - len(start) - 1)
    return body + luhn_digit(body)


def luhn_digit(body: str) -> str:
    """Returns the digit that makes a number right by Luhn's rule (ISO/IEC 7812-1)."""
    total = 0
    for position, digit in enumerate(reversed(body)):
        value = int(digit) * (2 if position % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)
