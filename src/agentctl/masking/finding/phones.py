"""Phone numbers: with their country code anywhere; without it where the writing or a word beside it tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from agentctl.masking.finding.groups import MANY_DIGITS
from agentctl.masking.finding.hits import Hit, is_of_a_thing, words_before
from agentctl.masking.tokens.phones import Phone
from agentctl.masking.tokens.writing import digits_of

_WITH_COUNTRY = re.compile(r"(?<![\w+])(?:\+|00)[1-9](?:[ ().\-/\u00a0\u2010-\u2013]{0,3}[0-9]){6,14}(?![0-9])")
_WITHOUT = re.compile(r"(?<![\w.,@#/+:-])\(?[0-9](?:[ ().\-/]{0,2}[0-9]){6,12}(?![\w@]|[-.:/][0-9]|,[0-9])")
_WORDS = re.compile(
    r"phone|mobile|\bcell|\btel\b|\btel[.:]|telef|téléf|telegram|whatsapp|\bsms\b|\bcall\b|calling|called|caller"
    r"|\b(?:my|his|her|our|new|wrong) number\b"
    r"|\bring\b|\btext\b|reach (?:me|us)|contact|handy|móvil|movil|celular|portable|numéro|cellulare|फोन"
    r"|मोबाइल|电话|電話",
    re.IGNORECASE,
)
_STYLES = re.compile(
    r"\([0-9]{2,5}\) ?[0-9]{3,5}[ -]?[0-9]{3,5}"  # an area in brackets
    r"|[2-9][0-9]{2}([ .-])[2-9][0-9]{2}\1[0-9]{4}"  # North America
    r"|0[0-9]{1,4}[ /-][0-9]{3,5}(?:[ -]?[0-9]{2,4}){0,3}"  # a leading zero and an area
    r"|0[1-9](?:([ .-])[0-9]{2})(?:\2[0-9]{2}){3}"  # France
    r"|[6-9][0-9]{4}[ -][0-9]{5}"  # India, mobile
    r"|[1-9][0-9] 9[0-9]{4}-[0-9]{4}"  # Brazil, mobile
)
_LEAST_DIGITS: Final = 7
_SEPARATOR = re.compile(r"[ ().\-/\u00a0\u2010-\u2013]+(?=[0-9]*[^0-9]*$)")


def phones_in(
    phone_of: Callable[[str], Phone | None], is_known: Callable[[str], bool], text: str, name: str
) -> Iterator[Hit]:
    """Finds phone numbers.

    Args:
        phone_of: Says which number a text is.
        is_known: Says whether digits were seen as a number with its country code.
        text: Where to look.
        name: The name of the field that the text is the value of.
    """
    yield from certain_phones_in(phone_of, text, name)
    if MANY_DIGITS.search(text) is None:
        return
    for found in _WITHOUT.finditer(text):
        start, written = found.start(), found[0]
        if not written[0].isdigit() and ")" not in written:
            continue
        if is_known(digits_of(written)):
            yield Hit(start, found.end(), "phone", 3)
            continue
        told = _WORDS.search(f"{name} {words_before(text, start)}") is not None
        if not told and (_STYLES.fullmatch(written) is None or is_of_a_thing(text, start, name)):
            continue
        if phone_of(written) is not None:
            yield Hit(start, found.end(), "phone", 4)


def certain_phones_in(phone_of: Callable[[str], Phone | None], text: str, name: str) -> Iterator[Hit]:
    """Finds phone numbers with their country code."""
    if "+" not in text and "00" not in text:
        return
    for found in _WITH_COUNTRY.finditer(text):
        start, written = found.start(), found[0]
        while len(digits_of(written)) >= _LEAST_DIGITS:
            if phone_of(written) is not None:
                yield Hit(start, start + len(written), "phone", 0)
                break
            cut = _SEPARATOR.search(written)
            if cut is None:
                break
            written = written[: cut.start()]
