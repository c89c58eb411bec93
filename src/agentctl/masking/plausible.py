"""Whether a field's value can be what the field's name says."""

from __future__ import annotations

import re
from typing import Final

from agentctl.masking.fieldnames import PLACEHOLDERS
from agentctl.masking.fields import Field
from agentctl.masking.finding.people import looks_like_name
from agentctl.masking.tokens.writing import digits_of
from agentctl.records.masking import MaskKind

_LEAST_DIGITS: Final = {"phone": 5, "card": 8, "birth_date": 2}
_LONGEST: Final = {"name": 100, "address": 300, "other": 1_000_000, "secret": 100_000}
_LONG: Final = 60
_LEAST_LETTERS: Final = 2
_LEAST_SECRET: Final = 8
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Digest)\s+", re.IGNORECASE)
_PASSWORDS = re.compile(r"pass(?:word|wd)?|pwd|secret|api ?key|private ?key|access ?key|credential")
_PROSE = re.compile(r"[.!?]\s|[{}<>=]|\b(?:is|are|was|the|please|and then)\b")


def kind_of_text(text: str, field: Field) -> MaskKind | None:
    """Returns what a text is by its field, or None; the value of `customer` or `passengers` may be a name."""
    if field.kind is None:
        return "name" if field.holder == "person" and looks_like_name(text) else None
    return field.kind if is_plausible(field.kind, text, field.name) else None


def is_plausible(kind: MaskKind, text: str, name: str) -> bool:
    """Says whether a text can be a value of a kind; what cannot is read as any text.

    Args:
        kind: What the field's name says.
        text: The value.
        name: The words of the field's name.
    """
    bare = text.strip()
    if not bare or bare.casefold() in PLACEHOLDERS or len(bare) > _LONGEST.get(kind, _LONG):
        return False
    match kind:
        case "name":
            return sum(c.isalpha() for c in bare) >= 1 and "@" not in bare and not _PROSE.search(bare)
        case "address":
            return any(c.isalnum() for c in bare) and "@" not in bare and "://" not in bare
        case "email":
            return "@" in bare and " " not in bare
        case "iban":
            return len(digits_of(bare)) >= _LEAST_DIGITS["card"]
        case "national_id":
            return any(c.isdigit() for c in bare) and len(bare) > _LEAST_LETTERS
        case "ip":
            return ":" in bare or bare.count(".") == 3
        case "secret":
            return _is_secret(bare, name)
        case "phone" | "card" | "birth_date":
            return len(digits_of(bare)) >= _LEAST_DIGITS[kind]
        case _:
            return True


def secret_span(text: str, start: int) -> int:
    """Returns where a secret begins in a value: after the scheme of an authorization, where it has one."""
    found = _SCHEME.match(text, start)
    return found.end() if found else start


def _is_secret(text: str, name: str) -> bool:
    """Words that say a state (`auth: required`) are no secrets; of a password every value is."""
    text = _SCHEME.sub("", text)
    if _PASSWORDS.search(name):
        return " " not in text
    return len(text) >= _LEAST_SECRET and not any(c.isspace() for c in text) and any(c.isdigit() for c in text)
