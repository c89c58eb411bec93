"""Where a setting came from: flag before environment before file before default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OriginKind = Literal["flag", "environment", "file", "default"]


@dataclass(frozen=True, slots=True)
class Origin:
    """What decided a setting. `where` is the flag, the variable, `FILE:LINE`, or '' for a default."""

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}" if self.where else self.kind


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of `config show`. Passwords in `value` are replaced; `${NAME}` stays as written."""

    key: str
    value: str
    origin: Origin
