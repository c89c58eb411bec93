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


class Unreadable(Exception):
    """A page cannot be read, or must not be.

    Attributes:
        why: The kind of reason.
        detail: What exactly.
    """

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(f"{why}: {detail}")
        self.why = why
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Content:
    """What a body says.

    Attributes:
        text: The main content, tables included, normalised.
        type: What kind of page it is.
        title: As the page declares it.
        publisher: As the page declares it.
        published_on: As the page declares it; nothing is guessed from the text.
    """

    text: str
    type: PageType
    title: str | None = None
    publisher: str | None = None
    published_on: date | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was read, or the note that it could not be.

    Attributes:
        url: Normalised: where the text was found after redirects, or what was asked for where nothing was read.
        accessed_on: The day it was asked for.
        content: None where it is unreadable.
        reason: Why it is unreadable: a `Why`, a colon, the detail. None where it is readable.
        duplicate_of: The source id of the page that has the same text, None where it is the first.
        is_cut: Whether the text was longer than the limit.
    """

    url: str
    accessed_on: date
    content: Content | None
    reason: str | None = None
    duplicate_of: str | None = None
    is_cut: bool = False

    @property
    def source_id(self) -> str:
        """The page's id, which depends on its address alone."""
        return source_id(self.url)

    def document(self) -> dict[str, Any]:
        """Returns the page as a JSON document; dates are `YYYY-MM-DD`."""
        content = self.content or Content("", "unknown")
        published_on = content.published_on
        return {
            "source_id": self.source_id,
            "url": self.url,
            "title": content.title,
            "publisher": content.publisher,
            "type": content.type,
            "accessed_on": self.accessed_on.isoformat(),
            "published_on": None if published_on is None else published_on.isoformat(),
            "text": content.text,
            "text_sha256": text_sha256(content.text) if self.content else None,
            "readable": self.content is not None,
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
