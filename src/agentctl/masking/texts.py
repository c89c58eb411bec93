"""Free text: what is personal in it, and the text with tokens in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from agentctl.codec.secrets import secrets_in
from agentctl.masking.encoded import Replacement, base64_in, percent_in
from agentctl.masking.fields import Field
from agentctl.masking.finding.dates import birth_dates_in
from agentctl.masking.finding.emails import emails_in
from agentctl.masking.finding.hits import Find, Hit, apart
from agentctl.masking.finding.ips import ips_in
from agentctl.masking.finding.labels import labelled_in
from agentctl.masking.finding.numbers import ibans_in, numbers_of_people_in
from agentctl.masking.finding.people import introduced_in
from agentctl.masking.finding.phones import certain_phones_in, phones_in
from agentctl.masking.finding.places import addresses_in
from agentctl.masking.issuing import Tokens
from agentctl.masking.learned import Learned
from agentctl.masking.rules import MaskRules
from agentctl.masking.tally import Found, Tally

_ESCAPES = re.compile(r"(\\+(?:[nrt\"'/]|u00(?:22|27|0[aAdD9])))")
"""What a text that was made for a program has between words; letters of it are no part of a word."""
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/_=-]{12}|%[0-9A-Fa-f]{2}")
_WORDS = re.compile(r"[^\W_]")


class Texts:
    """Masks free text.

    Args:
        rules: Those of a configuration.
        tokens: What makes tokens.
        learned: What is known to be personal.
        tally: Where it is counted.
        inside: Masks a text that was encoded in another one.
    """

    def __init__(
        self, rules: MaskRules, tokens: Tokens, learned: Learned, tally: Tally, inside: Callable[[str, Field], str]
    ) -> None:
        self._tokens = tokens
        self._learned = learned
        self._tally = tally
        self._inside = inside
        self._rules = rules.texts
        self._all: tuple[Find, ...] = (
            emails_in,
            partial(phones_in, tokens.phone_of, tokens.is_known_phone),
            numbers_of_people_in,
            ips_in,
            birth_dates_in,
            introduced_in,
            addresses_in,
            labelled_in,
        )
        self._certain: tuple[Find, ...] = (emails_in, partial(certain_phones_in, tokens.phone_of), ibans_in)

    def masked(self, text: str, field: Field) -> str:
        """Returns a text with tokens where it is personal: the same object where it is not."""
        if _WORDS.search(text) is None:
            return text
        if "\\" in text:
            pieces = _ESCAPES.split(text)
            if len(pieces) > 1:
                new = [piece if number % 2 else self._piece(piece, field) for number, piece in enumerate(pieces)]
                return text if new == pieces else "".join(new)
        return self._piece(text, field)

    def introduced(self, text: str) -> Iterator[tuple[Hit, str]]:
        """Yields what a text tells by itself and other texts may repeat: names, labelled values, phone numbers."""
        for find in (introduced_in, addresses_in, labelled_in, self._certain[1]):
            for hit in find(text, ""):
                yield hit, text[hit.start : hit.end]

    def _piece(self, text: str, field: Field) -> str:
        encoded = list(self._encoded(text, field)) if _ENCODED.search(text) else []
        hits = [hit for hit in self._hits(text, field) if not any(_overlap(hit, part) for part in encoded)]
        if not hits and not encoded:
            return text
        parts: list[str] = []
        end = 0
        for start, stop, new in sorted([*encoded, *(self._replacement(text, hit) for hit in apart(hits))]):
            parts += [text[end:start], text[start:stop] if new is None else new]
            end = stop
        return "".join([*parts, text[end:]])

    def _hits(self, text: str, field: Field) -> Iterator[Hit]:
        for rule in self._rules:
            for found in rule.regex.finditer(text):
                yield Hit(*found.span("value" if "value" in rule.regex.groupindex else 0), rule.kind, 0)
        for start, end in secrets_in(text):
            yield Hit(start, end, "secret", 0)
        if field.reading == "identifier":
            yield from self._learned.phrases_in(text)
        else:
            yield from self._learned.hits_in(text)
        for find in self._certain if field.reading == "identifier" else self._all:
            yield from find(text, field.name)

    def _encoded(self, text: str, field: Field) -> Iterator[Replacement]:
        def mask(inner: str) -> str:
            return self._inside(inner, field._replace(kind=None))

        for part in (*percent_in(text, mask), *(base64_in(text, mask) if len(text) >= 12 else ())):
            if part.new is None:
                self._tally.pending.append(Found(None, "", part.end - part.start))
            yield part

    def _replacement(self, text: str, hit: Hit) -> Replacement:
        written = text[hit.start : hit.end]
        self._tally.pending.append(Found(hit.kind, written))
        return Replacement(hit.start, hit.end, self._tokens.of(hit.kind, written))


def _overlap(hit: Hit, part: Replacement) -> bool:
    return hit.start < part.end and part.start < hit.end
