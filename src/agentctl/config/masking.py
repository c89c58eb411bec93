"""The `masking:` section: what is personal besides what is known anyway, and what is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentctl.config.yamlfile import Section
from agentctl.records.masking import KINDS, REGIONS, FieldRule, MaskKind, MaskSettings, PatternRule

_KEYS: Final = frozenset({"fields", "patterns", "never", "regions"})
_OTHER: Final[MaskKind] = "other"
_EXAMPLE: Final = r"such as 'B-\d{6}'"
_is_region = re.compile(r"[A-Z]{2}").fullmatch


def read_masking(section: Section) -> MaskSettings:
    """Returns the rules of `masking:`; those known anyway hold where it is empty.

    Raises:
        ConfigError: an unknown key or kind, or a regular expression that is none; the message names file, line and key.
    """
    section.only(_KEYS)
    return MaskSettings(
        fields=tuple(_fields(section.section("fields"))),
        patterns=tuple(_patterns(section.section("patterns"))),
        never=section.texts("never"),
        regions=_regions(section),
    )


def _fields(section: Section) -> Iterator[FieldRule]:
    for pattern in section.data:
        yield FieldRule(pattern, section.choice(pattern, KINDS, _OTHER))


def _patterns(section: Section) -> Iterator[PatternRule]:
    """A pattern is a regular expression alone, or a mapping with one under `regex` and its kind."""
    for name in section.data:
        if isinstance(section.data[name], dict):
            own = section.section(name)
            own.only({"regex", "kind"})
            if "regex" not in own.data:
                raise section.error(name, "has no regex", hint=_EXAMPLE)
            yield PatternRule(name, _regex(own, "regex"), own.choice("kind", KINDS, _OTHER))
        else:
            yield PatternRule(name, _regex(section, name))


def _regex(section: Section, key: str) -> str:
    text = section.text(key)
    if text is None:
        raise section.error(key, "is missing: a regular expression", hint=_EXAMPLE)
    try:
        finds_nothing = re.compile(text).search("")
    except re.error as error:
        raise section.error(key, f"is no regular expression: {error}") from error
    if finds_nothing:
        raise section.error(key, "matches empty text, so it would match everywhere")
    return text


def _regions(section: Section) -> tuple[str, ...]:
    regions = section.texts("regions")
    for region in regions:
        if not _is_region(region):
            raise section.error(
                "regions", f"are countries in two capital letters, not {region}", hint="such as [DE, US]"
            )
    return regions or REGIONS
