"""Rules ready for use: those of a configuration and those known anyway."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentctl.errors import ConfigError
from agentctl.records.masking import MaskKind, MaskSettings


@dataclass(frozen=True, slots=True)
class TextRule:
    """A compiled regular expression of a configuration, and what it finds."""

    regex: re.Pattern[str]
    kind: MaskKind


@dataclass(frozen=True, slots=True)
class MaskRules:
    """What a masker goes by."""

    settings: MaskSettings
    texts: tuple[TextRule, ...]


def rules_of(settings: MaskSettings) -> MaskRules:
    """Returns the rules of a configuration.

    Raises:
        ConfigError: A regular expression is none, or finds text that is empty.
    """
    return MaskRules(
        settings, tuple(TextRule(_compiled(rule.name, rule.regex), rule.kind) for rule in settings.patterns)
    )


def _compiled(name: str, regex: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(regex)
    except re.error as error:
        raise ConfigError(f"the masking pattern {name} is no regular expression: {error}") from error
    if compiled.search(""):
        raise ConfigError(f"the masking pattern {name} matches empty text, so it would match everywhere")
    return compiled
