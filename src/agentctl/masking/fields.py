"""What a field's name says of its value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from agentctl.codec.secrets import is_secret_name
from agentctl.masking.fieldnames import (
    BY_END,
    IDENTIFIERS,
    IN_ADDRESS,
    IN_PERSON,
    IN_VALUE,
    NEUTRAL,
    PERSONS,
    STRUCTURE,
)
from agentctl.masking.words import WORD
from agentctl.records.masking import KINDS, MaskKind, MaskSettings

Reading = Literal["text", "identifier", "nothing"]
"""How a value without a kind is read: all that is known to be personal, only what is beyond doubt, or nothing."""

_WORDS = re.compile(WORD)
_HUMP = re.compile(r"(?<=[a-zß-ÿ0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Field(NamedTuple):
    """Where a value stands, as far as masking asks.

    Attributes:
        path: The keys from the outermost one, in lower case without separators.
        kind: What the value is by its field's name, or None.
        reading: How it is read where it has no kind.
        holder: The object that it stands in: `person`, `address`, a kind, or ''.
        name: The words of the key, as a context for what its value could be.
    """

    path: tuple[str, ...] = ()
    kind: MaskKind | None = None
    reading: Reading = "text"
    holder: str = ""
    name: str = ""


ROOT: Final = Field()


_VALUE_HOLDERS: Final[Mapping[str, MaskKind]] = MappingProxyType(
    {kind: kind for kind in KINDS if kind not in ("name", "address")}
)
"""Kinds that may stand in an object of their own: `{"phone": {"number": ...}}`."""
_OF_PERSONS: Final = frozenset({"name", "birth_date", "email", "phone", "national_id"})
"""Kinds whose fields make a person of the object that has them."""


class Fields:
    """The fields of a configuration and those known anyway."""

    def __init__(self, settings: MaskSettings) -> None:
        self._rules = tuple((_pattern(rule.pattern), rule.kind) for rule in settings.fields)
        self._never = tuple(_pattern(pattern) for pattern in settings.never)
        self._known: dict[tuple[Field, str], Field] = {}

    def inside(self, field: Field, key: str) -> Field:
        """Returns the field of a key in the object that is the value of a field."""
        known = self._known.get((field, key))
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[field, key] = self._made(field, key)
        return known

    def of_object(self, field: Field, keys: Collection[str]) -> Field:
        """Returns the field of an object with these keys: one that has an e-mail address or the like is a person."""
        if field.holder or field.reading == "nothing":
            return field
        if any(self.inside(field, key).kind in _OF_PERSONS for key in keys):
            return field._replace(holder="person")
        return field

    def _made(self, field: Field, key: str) -> Field:
        words = words_of(key)
        name = " ".join(words)
        flat = "".join(words)
        path = (*field.path, flat or key.casefold())
        if any(_ends(path, pattern) for pattern in self._never):
            return Field(path, None, "nothing", "", name)
        kind = next((kind for pattern, kind in self._rules if _ends(path, pattern)), None)
        if kind is None and key in STRUCTURE:
            return Field(path, None, "nothing", "", name)
        kind = kind or kind_of(words, field.holder)
        reading: Reading = "nothing" if field.reading == "nothing" else "text"
        if kind is None and reading == "text" and words and _is_identifier(words, flat):
            reading = "identifier"
        return Field(path, kind, reading, _holder(words, kind, field), name)


_MOST_KNOWN: Final = 100_000
"""Fields remembered; maps whose keys are data have no end of them."""


def words_of(key: str) -> tuple[str, ...]:
    """Returns the words of a key, in lower case: of `customerName`, `customer-name` and `CUSTOMER_NAME` the same."""
    return tuple(word.casefold() for word in _WORDS.findall(_HUMP.sub("_", key)))


def kind_of(words: tuple[str, ...], holder: str = "") -> MaskKind | None:
    """Returns what the values of a field with these words in its name are, inside an object of some kind."""
    if not words:
        return None
    if holder == "person" and "".join(words) in IN_PERSON:
        return IN_PERSON["".join(words)]
    if holder == "address" and "".join(words) in IN_ADDRESS:
        return IN_ADDRESS["".join(words)]
    for start in range(len(words)):
        kind = BY_END.get("".join(words[start:]))
        if kind is not None:
            return kind
    if words[-1] in IN_PERSON and len(words) > 1 and is_person(words[-2]):
        return "name"
    if len(words) == 1 and words[0].endswith("name") and words[0].removesuffix("name") in PERSONS:
        return "name"
    if is_secret_name("_".join(words)):
        return "secret"
    return _VALUE_HOLDERS.get(holder) if "".join(words) in IN_VALUE else None


def is_person(word: str) -> bool:
    """Says whether a word is what a person is called in objects and labels, or its plural."""
    return word in PERSONS or (word.endswith("s") and word[:-1] in PERSONS)


def _is_identifier(words: tuple[str, ...], flat: str) -> bool:
    return words[-1] in IDENTIFIERS or flat in IDENTIFIERS


def _holder(words: tuple[str, ...], kind: MaskKind | None, field: Field) -> str:
    if kind == "name":
        return "person"
    if kind is not None:
        return kind
    if words and is_person(words[-1]):
        return "person"
    return field.holder if "".join(words) in NEUTRAL else ""


def _pattern(text: str) -> tuple[str, ...]:
    """Returns a rule's path as paths are written here, with its wildcards."""
    return tuple("".join(re.findall(rf"{WORD}|[*?]", part)).casefold() for part in text.split("."))


def _ends(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return len(path) >= len(pattern) and all(
        fnmatchcase(key, part) for key, part in zip(path[-len(pattern) :], pattern, strict=True)
    )
