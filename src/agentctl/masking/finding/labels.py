"""Values after a label in text: `Name: Ana Souza`, `'phone': '555 01 99'`, `street = 12 Mill Lane`.

A label is read as the name of a field is. So the forms in which programs print objects count too, where they are no
JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentctl.masking.fieldnames import LABELS_OF_NAMES
from agentctl.masking.fields import is_person, kind_of, words_of
from agentctl.masking.finding.hits import Hit
from agentctl.masking.finding.people import NAME, looks_like_name, name_end
from agentctl.masking.plausible import is_plausible
from agentctl.masking.tokens.dates import WRITTEN
from agentctl.records.masking import MaskKind

_SEPARATOR = re.compile(r"(?P<quote>[\"'`]?)[*_]{0,2}[ ]?(?::|=>?|\||>)[ ]?[*_]{0,2}(?P<open>[\"'`]?)[ ]?(?=[^\s])")
_OF_PERSONS: Final = frozenset({"birth_date", "email", "phone", "national_id", "address"})
"""Kinds whose labels make a person of what is called by a name beside them."""
_LONGEST_LABEL: Final = 40
_JOINS: Final = frozenset({"and", "or", "where", "set", "with", "the", "my", "your", "his", "her"})
"""Words before a label that are no part of it."""
_MOST_LABEL_WORDS: Final = 5
_LINE = re.compile(r"[^\n|;{}<>\[\]]{1,160}")
_WORD = re.compile(r"[^\s,;|{}\[\]<>\"'`]+")
_NAME = re.compile(NAME)
_NUMBER = re.compile(r"[+(]?[0-9][0-9A-Za-z ().+/-]*[0-9A-Za-z]|[A-Za-z]{1,5}[ -]?[0-9][0-9A-Za-z-]*")
_TAIL = re.compile(r"(?:\s*[.,*_)]+)?\s*\Z|\.\s.*\Z", re.DOTALL)
_OTHER_LABEL = re.compile(r",?\s+[^\W\d_][\w ]{0,24}[:=].*\Z", re.DOTALL)
_BREAK = re.compile(r"[\n,;|{}()\[\]<>\"'`:=*]|\. ")


def labelled_in(text: str, name: str) -> Iterator[Hit]:
    """Finds values after labels."""
    if not any(sign in text for sign in ":=|>"):
        return
    labels = [(found, _label_before(text, found.start())) for found in _SEPARATOR.finditer(text)]
    kinds = [_kind_of(label) for _, label in labels]
    of_person = any(kind in _OF_PERSONS for kind in kinds)
    for (found, label), kind in zip(labels, kinds, strict=True):
        if kind is None:
            continue
        least = 2 if _is_vague(label) and not (of_person and label[0] in LABELS_OF_NAMES) else 1
        span = _value(text, found.end(), found["open"], kind, least=least)
        if span is not None and is_plausible(kind, text[slice(*span)], " ".join(label)):
            yield Hit(*span, kind, 0)


def _label_before(text: str, end: int) -> tuple[str, ...]:
    """Returns the words between the last break and a separator."""
    before = text[max(0, end - _LONGEST_LABEL) : end]
    breaks = [found.end() for found in _BREAK.finditer(before)]
    words = words_of(before[breaks[-1] if breaks else 0 :])
    joins = [number for number, word in enumerate(words, 1) if word in _JOINS]
    return words[joins[-1] if joins else 0 :]


def _kind_of(label: tuple[str, ...]) -> MaskKind | None:
    if not 0 < len(label) <= _MOST_LABEL_WORDS:
        return None
    if _is_vague(label):
        return "name"
    return kind_of(label)


def _is_vague(label: tuple[str, ...]) -> bool:
    """Says whether what follows a label could be a name: `Name:`, `Passenger:`."""
    return len(label) == 1 and (label[0] in LABELS_OF_NAMES or is_person(label[0]))


def _value(text: str, start: int, quote: str, kind: MaskKind, *, least: int) -> tuple[int, int] | None:
    """Returns where the value after a label stands, or None where there is none; a name has `least` words."""
    closed = text.find(quote, start) if quote else -1
    if closed > start and (least == 1 or looks_like_name(text[start:closed])):
        return start, closed
    match kind:
        case "name":
            found = _NAME.match(text, start)
            end = name_end(text, start, found.end(), least=least) if found else None
            return None if end is None else (start, end)
        case "birth_date":
            return _span(WRITTEN.match(text, start))
        case "address":
            found = _LINE.match(text, start)
            if found is None:
                return None
            line = _TAIL.sub("", _OTHER_LABEL.sub("", found[0]))
            return (start, start + len(line)) if any(c.isdigit() for c in line) or len(line.split()) > 1 else None
        case "phone" | "card" | "iban" | "national_id":
            return _span(_NUMBER.match(text, start))
        case _:
            return _span(_WORD.match(text, start))


def _span(found: re.Match[str] | None) -> tuple[int, int] | None:
    return None if found is None else found.span()
