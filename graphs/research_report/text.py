"""Text as checks and rules compare it: normalised, in sentences, as content words."""

from __future__ import annotations

import re
import unicodedata

_PUNCTUATION = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "–": "-", "—": "-", "−": "-", "…": "..."}
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD = re.compile(r"[a-zäöüßéèà]+|\d[\d.,]*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(A-ZÄÖÜ0-9])|\n+(?![a-zäöüß])")
_STOP = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be been by can did do does for from had has have how in into is it its many
        much of on or so than that the their there these they this to was were what when where which who
        while why will with would about after against all also any between both but each more most no
        not only other our out over per since some such them then under until up very we you your""",
    )
)
_HEDGES = re.compile(
    r"\b(?:may|might|could|perhaps|possibly|reportedly|allegedly|likely|unlikely|expects?|expected|plans?|planned|"
    r"estimates?|estimated|suggests?|appears?|seems?|preliminary|provisional|unconfirmed|draft|proposed)\b",
    re.IGNORECASE,
)
_DEFINITE = (
    (re.compile(r"\b(?:may|might|could) have\b", re.IGNORECASE), "has"),
    (
        re.compile(r"\b(?:may|might|could|is expected to|are expected to|is likely to|are likely to)\b", re.IGNORECASE),
        "will",
    ),
    (
        re.compile(
            r"\b(?:perhaps|possibly|reportedly|allegedly|likely|an estimated|estimated|preliminary)\s+",
            re.IGNORECASE,
        ),
        "",
    ),
)
_SECOND_HAND = re.compile(r"\b(?:said|says|according to|reported|told|claims?|heard)\b", re.IGNORECASE)
_QUANTITY = re.compile(
    r"\b(?:number|how many|how much|share|price|prices|cost|costs|rate|percentage|amount|size|capacity)\b",
    re.IGNORECASE,
)
_SUFFIXES = ("ations", "ation", "ings", "ing", "ies", "es", "ed", "s")
_MIN_STEM = 4


def normalised(text: str) -> str:
    """Returns text with whitespace, quotation marks, dashes and invisible characters made alike, in lower case."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_PUNCTUATION)
    return " ".join(plain.split()).casefold()


def contains(text: str, quote: str) -> bool:
    """Tells whether a text holds a quote, whitespace and punctuation normalised; an empty quote is in no text."""
    wanted = normalised(quote)
    return bool(wanted) and wanted in normalised(text)


def sentences(text: str) -> list[str]:
    """Splits text into sentences; lines, as of lists and tables, are their own, unless they go on in lower case."""
    return [" ".join(part.split()) for part in _SENTENCE_END.split(text) if part.strip()]


def words(text: str) -> frozenset[str]:
    """Returns the content words of a text, by their stems; numbers as they are."""
    found = (word.casefold().rstrip(".,") for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in found if word and word not in _STOP)


def overlap(left: str, right: str) -> float:
    """Returns how alike two texts are: shared content words as a fraction of all, 0 where there are none."""
    one, other = words(left), words(right)
    return len(one & other) / len(one | other) if one | other else 0.0


def is_hedged(text: str) -> bool:
    """Tells whether a text says of itself that it is not certain."""
    return _HEDGES.search(text) is not None


def is_second_hand(text: str) -> bool:
    """Tells whether a sentence passes on what somebody else says."""
    return _SECOND_HAND.search(text) is not None


def asks_for_figure(text: str) -> bool:
    """Tells whether a question asks for a quantity, which only a figure answers."""
    return _QUANTITY.search(text) is not None


def without_hedges(text: str) -> str:
    """Returns a text as a careless summary would put it: every doubt taken out."""
    for pattern, replacement in _DEFINITE:
        text = pattern.sub(replacement, text)
    return text


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM:
            return word[: -len(suffix)]
    return word
