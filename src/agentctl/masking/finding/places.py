"""Postal addresses that a text introduces: `my address is`, `I live at`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentctl.masking.finding.hits import Hit

_INTRODUCED = re.compile(
    r"\b(?:address is(?: now)?|i live (?:at|in)|i(?: have|'ve)? moved to|my place is|mi dirección es|vivo en"
    r"|mon adresse est|j'habite(?: au)?|meine adresse ist|ich wohne (?:in der|in|am)|moro na|abito in)"
    r" (?P<line>[^\n.;!?]{6,120})",
    re.IGNORECASE,
)
_END = re.compile(r"\s+(?:and|but|so|now|please|since|because|which|thanks|y|und|et|e)\b.*|[\s,]+$", re.IGNORECASE)


def addresses_in(text: str, name: str) -> Iterator[Hit]:
    """Finds addresses that a text introduces and that have a number."""
    for found in _INTRODUCED.finditer(text):
        line = _END.sub("", found["line"])
        if any(character.isdigit() for character in line):
            yield Hit(found.start("line"), found.start("line") + len(line), "address", 3)
