"""Numbers of cards, bank accounts and national documents: what proves them, or what stands beside them, tells.

Source: ISO/IEC 7812-1 (Luhn), first digits of card networks; ISO 13616 (IBAN), through python-stdnum 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentctl.masking.finding.groups import Written, numbers_in
from agentctl.masking.finding.hits import Hit, is_of_a_thing, words_around, words_before
from agentctl.masking.schemes import SCHEMES, Scheme, could_be_one
from agentctl.masking.tokens.cards import luhn_digit

_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3}){0,2}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35[0-9]{14}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}|62[0-9]{14,17}|(?:50|5[6-8]|60|6[0-9]|8[12])[0-9]{14}"
)
_CARD_WORDS = re.compile(r"card|visa|master|amex|carte|karte|tarjeta|cartão|cartao|carta\b|pan\b", re.IGNORECASE)
_IN_FOURS = re.compile(r"[0-9]{4}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}")
"""How cards are printed, and few other things are."""
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_PLAIN: Final = re.compile("[0-9]+")


def numbers_of_people_in(text: str, name: str) -> Iterator[Hit]:
    """Finds numbers of cards, IBANs and national documents."""
    for number in numbers_in(text):
        if _is_card(number, text, name):
            yield Hit(number.start, number.end, "card", 3)
        elif _is_iban(number):
            yield Hit(number.start, number.end, "iban", 0)
        elif could_be_one(number.compact) and any(_is_one(scheme, number, text, name) for scheme in SCHEMES):
            yield Hit(number.start, number.end, "national_id", 3)


def ibans_in(text: str, name: str) -> Iterator[Hit]:
    """Finds IBANs alone, which nothing else could be."""
    for number in numbers_in(text):
        if _is_iban(number):
            yield Hit(number.start, number.end, "iban", 0)


def _is_card(number: Written, text: str, name: str) -> bool:
    digits = number.compact
    if number.is_part or _CARD.fullmatch(digits) is None or luhn_digit(digits[:-1]) != digits[-1] or "." in number.text:
        return False
    told = _CARD_WORDS.search(f"{name} {words_before(text, number.start)}") or _IN_FOURS.fullmatch(number.text)
    return told is not None or not is_of_a_thing(text, number.start, name)


def _is_iban(number: Written) -> bool:
    if number.is_part or _IBAN.fullmatch(number.compact) is None:
        return False
    from stdnum import iban

    return iban.is_valid(number.compact, check_country=False)


def _is_one(scheme: Scheme, number: Written, text: str, name: str) -> bool:
    compact = number.text.upper() if scheme.name == "fi.hetu" else number.compact
    if scheme.shape.fullmatch(compact) is None:
        return False
    told = scheme.words.search(f"{name} {words_around(text, number.start, number.end)}") is not None
    if not told:
        if number.is_part or scheme.written is None or scheme.written.fullmatch(number.text) is None:
            return False
        if is_of_a_thing(text, number.start, name):
            return False
    return scheme.is_right(compact)
