"""What was read at an address, and why something could not be."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, Literal

PageType = Literal["article", "release", "table", "text", "pdf", "unknown"]


class Why(StrEnum):
    """Kinds of reasons for which a page is unreadable: the first word of `reason`."""

    URL = "url"
    ADDRESS = "address"
    ROBOTS = "robots"
    BLOCKED = "blocked"
    PAYWALL = "paywall"
    EMPTY = "empty"
    GONE = "gone"
    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"
    REDIRECTS = "redirects"
    SIZE = "size"
    TYPE = "type"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Declared:
    """What a page declares of itself; None where it does not. Nothing is guessed from its text."""

    title: str | None = None
    publisher: str | None = None
    published_on: date | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What a body says.

    Attributes:
        text: The main content, tables included, normalised.
        type: What kind of page it is.
        declared: What it says of itself.
    """

    text: str
    type: PageType
    declared: Declared = Declared()


class Unreadable(Exception):
    """A page cannot be read, or must not be.

    Attributes:
        why: The kind of reason.
        declared: What the page says of itself all the same.
    """

    def __init__(self, why: Why, detail: str, declared: Declared = Declared()) -> None:
        super().__init__(f"{why}: {detail}")
        self.why = why
        self.declared = declared


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was read, or the note that it could not be.

    Attributes:
        url: Normalised: where the text was found after redirects, or what was asked for where nothing was read.
        accessed_on: The day it was asked for.
        declared: What it says of itself.
        text: Its main content, None where it is unreadable.
        type: What kind of page it is.
        reason: Why it is unreadable: a `Why`, a colon, the detail. None where it is readable.
        duplicate_of: The source id of the page that has the same text, None where it is the first.
        is_cut: Whether the text was longer than the limit.
    """

    url: str
    accessed_on: date
    declared: Declared = Declared()
    text: str | None = None
    type: PageType = "unknown"
    reason: str | None = None
    duplicate_of: str | None = None
    is_cut: bool = False

    @property
    def source_id(self) -> str:
        """The page's id, which depends on its address alone."""
        return source_id(self.url)

    def document(self) -> dict[str, Any]:
        """Returns the page as a JSON document; dates are `YYYY-MM-DD`."""
        published_on = self.declared.published_on
        return {
            "source_id": self.source_id,
            "url": self.url,
            "title": self.declared.title,
            "publisher": self.declared.publisher,
            "type": self.type,
            "accessed_on": self.accessed_on.isoformat(),
            "published_on": None if published_on is None else published_on.isoformat(),
            "text": self.text or "",
            "text_sha256": None if self.text is None else text_sha256(self.text),
            "readable": self.text is not None,
            "reason": self.reason,
            "duplicate_of": self.duplicate_of,
            "is_cut": self.is_cut,
        }


def source_id(url: str) -> str:
    """Returns the id of the source at a normalised URL: `s-` and ten hex digits."""
    return f"s-{hashlib.sha256(url.encode()).hexdigest()[:10]}"


def text_sha256(text: str) -> str:
    """Returns the hex digest of a page's text as UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()
