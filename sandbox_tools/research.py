"""The research workflow's sandbox: publishing is a stub; the web is the recorded one, read from its files.

Searching and fetching are pure functions of the recorded pages, through the library that reads real ones, so that a
plan that was never recorded can still be tried. A page that is not recorded is not invented: fetching it fails.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import json_text
from graphs.research_report.catalog import registry_of
from graphs.research_report.report import Report, report_sha256
from sandbox_tools.answers import NoAnswer

if TYPE_CHECKING:
    from fixtures.web.recorded import RecordedWeb
    from graphs.research_report.web.connecting import Deadline
    from graphs.research_report.web.downloading import Answer
    from graphs.research_report.web.fetching import Fetcher


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """Downloads from the files of the recorded web, without a network.

    Attributes:
        web: Its hosts and pages.
        folder: The bodies.
    """

    web: RecordedWeb
    folder: Path

    def __call__(self, url: str, deadline: Deadline, max_bytes: int) -> Answer:
        """Returns what a recorded page answered.

        Raises:
            Unreadable: a redirect leads to where nothing may be read, or the answer is too large.
        """
        from fixtures.web.recorded import content_type
        from graphs.research_report.web.downloading import Answer
        from graphs.research_report.web.pages import Unreadable, Why

        page = self.web.pages.get(url)
        if page is None:
            if urlsplit(url).hostname not in self.web.hosts:
                raise Unreadable(Why.ADDRESS, "this host is not on the recorded web")
            return Answer(404, {}, b"")
        if page.generated:
            raise Unreadable(Why.SIZE, f"more than {max_bytes} bytes")
        headers = {"content-type": content_type(page.file)} if page.file else {}
        is_read = page.file is not None and page.status < 300
        body = (self.folder / str(page.file)).read_bytes() if is_read else b""
        return Answer(page.status, {**headers, **page.headers}, body)


@dataclass(slots=True)
class ResearchSandbox:
    """Answers without a network: pure functions of their arguments, so that every run gets the same.

    The recorded web is read at the first call that needs it.
    """

    _web: RecordedWeb | None = field(default=None, init=False)
    _fetcher: Fetcher | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def web_search(self, query: str, limit: int = 5) -> str:
        """Searches the recorded web."""
        from fixtures.web.searching import search

        return json_text({"query": query, "results": search(self._opened()[0], query, limit)})

    def fetch_page(self, url: str) -> str:
        """Reads a recorded page.

        Raises:
            NoAnswer: it is not recorded.
        """
        from graphs.research_report.web.urls import normalise

        web, fetcher = self._opened()
        if normalise(url) not in web.pages:
            raise NoAnswer(f"no recorded page {url}")
        return json_text(fetcher.fetch(url).document())

    def publish_report(self, artifact: str, report: Report) -> str:
        """Takes every report, and publishes none."""
        sha256 = report_sha256(report)
        answer = {"publication_id": f"pu_sandbox_{sha256[:10]}", "artifact": artifact, "sha256": sha256}
        return json_text({**answer, "version": 1, "status": "published"})

    def _opened(self) -> tuple[RecordedWeb, Fetcher]:
        with self._lock:
            if self._web is None or self._fetcher is None:
                self._web, self._fetcher = _recorded()
            return self._web, self._fetcher


def _recorded() -> tuple[RecordedWeb, Fetcher]:
    from fixtures.web.fetching import KnownPages
    from fixtures.web.recorded import PAGES, load
    from graphs.research_report.web.fetching import Fetcher

    web = load()
    files = RecordedFiles(web, PAGES)
    known = KnownPages(web, Fetcher(files, today=lambda: web.recorded_on))
    return web, Fetcher(files, originals=known, today=lambda: web.recorded_on)


def registry() -> ToolRegistry:
    """Builds the sandbox registry: the names, argument schemas and effects of production, nothing behind them."""
    sandbox = ResearchSandbox()
    return registry_of(
        {
            "web_search": sandbox.web_search,
            "fetch_page": sandbox.fetch_page,
            "publish_report": sandbox.publish_report,
        }
    )
