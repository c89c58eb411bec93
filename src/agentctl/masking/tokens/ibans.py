"""IBANs: the same country and layout, other digits and letters, right check digits.

Where the country checks the rest of the number too, numbers are drawn until one is right.
"""

from __future__ import annotations

from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.shapes import DIGITS, LETTERS

_TRIES: Final = 2_000


def iban_token(iban: str, key: Key, attempt: int) -> str:
    """Returns another number of the same country; `iban` is in capitals without spaces."""
    from stdnum import iban as rules

    draws = Draws(key, "iban", iban, attempt)
    checked = rules.is_valid(iban)
    token = iban
    for _ in range(_TRIES):
        body = "".join(draws.one_of(DIGITS if c in DIGITS else LETTERS) for c in iban[4:])
        token = iban[:2] + rules.calc_check_digits(f"{iban[:2]}00{body}") + body
        if token != iban and (not checked or rules.is_valid(token)):
            break
    return token
