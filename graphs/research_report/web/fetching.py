"""`fetch_page`: one page of the web, read with care, or the note why it was not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from graphs.research_report.web.connecting import Deadline
from graphs.research_report.web.copies import Originals, SeenTexts
from graphs.research_report.web.downloading import Answer, Download, Network
from graphs.research_report.web.pages import Content, Page, Unreadable, Why, source_id
from graphs.research_report.web.reading import Reading, decoded, read
from graphs.research_report.web.robots import MAX_BYTES as MAX_ROBOTS_BYTES
from graphs.research_report.web.robots import Robots
from graphs.research_report.web.urls import MAX_URL_CHARS, normalise, resolved

AGENT = "agentctl-research"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BLOCKED = frozenset({401, 403, 407, 429, 451})
_GONE = frozenset({404, 410})
_PAYMENT_REQUIRED = 402


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a page is taken.

    Attributes:
        timeout_s: For everything that is asked for: robots.txt, redirects, body, and the pages of a PDF. A resolver
            has a time-out of its own.
        max_bytes: Of a body, as it comes and as it is after decompression.
        max_redirects: In a row.
        max_text_chars: Longer texts are cut at the end of a line.
        reading: What is taken of a body.
    """

    timeout_s: float = 20.0
    max_bytes: int = 5_000_000
    max_redirects: int = 5
    max_text_chars: int = 200_000
    reading: Reading = field(default_factory=Reading)


class Fetcher:
    """Reads pages.

    Args:
        download: Asks for a URL, once.
        originals: Knows the texts that were read before.
        limits: How much is taken.
        today: Returns the present day.
        clock: Returns seconds that only grow.
    """

    def __init__(
        self,
        download: Download | None = None,
        *,
        originals: Originals | None = None,
        limits: Limits | None = None,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._download = download or Network(user_agent=f"{AGENT}/1.0")
        self._originals = originals or SeenTexts()
        self._limits = limits or Limits()
        self._today = today
        self._clock = clock
        self._robots = Robots(AGENT, clock)

    def fetch(self, url: str) -> Page:
        """Reads the page at a URL.

        Whatever is the matter with the page, the answer is a page that says so; nothing is cited from it then.
        """
        asked = url[:MAX_URL_CHARS]
        try:
            asked = normalise(url)
            deadline = Deadline(self._clock() + self._limits.timeout_s, self._clock)
            final, answer = self._followed(asked, deadline)
            content_type = answer.headers.get("content-type", "")
            content = read(answer.body, content_type, self._limits.reading, deadline.left_s)
        except Unreadable as unreadable:
            return Page(asked, self._today(), unreadable.declared, reason=str(unreadable))
        return self._page(final, content)

    def _page(self, url: str, content: Content) -> Page:
        text = _cut(content.text, self._limits.max_text_chars)
        return Page(
            url,
            self._today(),
            content.declared,
            text,
            content.type,
            duplicate_of=self._originals.original_of(source_id(url), text),
            is_cut=len(text) < len(content.text),
        )

    def _followed(self, url: str, deadline: Deadline) -> tuple[str, Answer]:
        """Follows redirects, with every check again at each step.

        Returns:
            The URL where it ended, and what was answered there.
        """
        at = url
        for _ in range(self._limits.max_redirects + 1):
            self._robots.check(at, lambda origin: self._robots_txt(origin, deadline))
            answer = self._download(at, deadline, self._limits.max_bytes)
            target = answer.headers.get("location") if answer.status in _REDIRECTS else None
            if target is None:
                _check_status(answer.status)
                return at, answer
            at = resolved(at, target)
        raise Unreadable(Why.REDIRECTS, f"it redirects more than {self._limits.max_redirects} times")

    def _robots_txt(self, origin: str, deadline: Deadline) -> str | None:
        """Gets a site's robots.txt as RFC 9309 says: none where there is none, an error where nobody can say."""
        at = f"{origin}/robots.txt"
        for _ in range(self._limits.max_redirects + 1):
            answer = self._download(at, deadline, MAX_ROBOTS_BYTES)
            target = answer.headers.get("location") if answer.status in _REDIRECTS else None
            if target is None:
                break
            at = resolved(at, target)
        if answer.status >= 500:
            raise Unreadable(Why.ROBOTS, f"{origin} does not say what robots may read (HTTP {answer.status})")
        return decoded(answer.body, "charset=utf-8") if answer.status < 300 else None


def _check_status(status: int) -> None:
    if 200 <= status < 300:
        return
    if status in _BLOCKED:
        raise Unreadable(Why.BLOCKED, f"HTTP {status}")
    if status == _PAYMENT_REQUIRED:
        raise Unreadable(Why.PAYWALL, f"HTTP {status}")
    raise Unreadable(Why.GONE if status in _GONE else Why.UNAVAILABLE, f"HTTP {status}")


def _cut(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    return text[:max_chars].rpartition("\n")[0] or text[:max_chars]
