"""What is masked, by whose rules, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, get_args

MaskKind = Literal[
    "name",
    "address",
    "birth_date",
    "email",
    "phone",
    "card",
    "iban",
    "national_id",
    "ip",
    "secret",
    "other",
]
"""Kinds of personal data. `other` is what a rule of agentctl.yaml names and no kind fits."""

KEY_VARIABLE: Final = "AGENTCTL_MASK_KEY"
"""Environment variable of the key, in place of the one that is kept beside the debug store."""

KINDS: Final[tuple[MaskKind, ...]] = get_args(MaskKind)

REGIONS: Final = ("US", "IN", "GB", "DE", "FR", "ES", "IT", "BR", "MX", "AU")
"""Whose way of writing a phone number without a country code is known, unless a configuration says which."""

Where = Literal["channel", "write", "metadata", "memory", "argument", "answer", "text"]


class ValuePlace(NamedTuple):
    """Where a value stands: what kind of place, and its name (channel, key, tool); the name counts as a field's."""

    where: Where
    name: str

    def __str__(self) -> str:
        return f"{self.where} {self.name}"


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A field whose value is personal whatever it looks like.

    Attributes:
        pattern: A key, or the end of a dotted path of keys (`customer.nickname`); `*` and `?` stand for any text.
            Case, `_`, `-` and camelCase make no difference, and positions in lists are no part of a path.
        kind: What the value is.
    """

    pattern: str
    kind: MaskKind


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A text that is personal wherever it stands.

    Attributes:
        name: How it is called in messages.
        regex: Regular expression of Python; where it has a group named `value`, that is what is masked.
        kind: What it is.
    """

    name: str
    regex: str
    kind: MaskKind = "other"


@dataclass(frozen=True, slots=True)
class MaskSettings:
    """The `masking:` section of a configuration, as written.

    Attributes:
        fields: Before the fields known anyway.
        patterns: Besides the texts known anyway.
        never: Fields, as in `FieldRule.pattern`, whose values are left as they are.
        regions: Countries (ISO 3166, two letters) whose phone numbers are known without their country code.
    """

    fields: tuple[FieldRule, ...] = ()
    patterns: tuple[PatternRule, ...] = ()
    never: tuple[str, ...] = ()
    regions: tuple[str, ...] = REGIONS


class Unmasked(NamedTuple):
    """Bytes that nobody can look into, left as they are: how many values of a place, and their bytes together."""

    place: str
    n_values: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class MaskReport:
    """What a masker did since it was made.

    Attributes:
        counts: Occurrences replaced, by kind; kinds without any are left out.
        n_distinct: How many different values these are, by kind.
        n_values_changed: Stored values, metadata and memory items in which something was replaced.
        unmasked: Bytes left alone, by place.
        key: Name of the key, the same for the same key; it tells nothing about the key.
    """

    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    n_distinct: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    n_values_changed: int = 0
    unmasked: tuple[Unmasked, ...] = ()
    key: str = ""
