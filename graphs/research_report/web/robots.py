"""robots.txt: what a site lets this agent read (RFC 9309)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from protego import Protego

from graphs.research_report.web.pages import Unreadable, Why

MAX_BYTES = 512 * 1024
_KEPT_S = 3600.0

# Gets robots.txt for an origin: its text, None where the site has none.
GetRobots = Callable[[str], str | None]


@dataclass(slots=True)
class Robots:
    """The rules of the sites, kept for an hour. Safe between threads.

    Attributes:
        agent: The product token that rules name.
        clock: Returns seconds that only grow.
    """

    agent: str
    clock: Callable[[], float]
    _kept: dict[str, tuple[float, Protego]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def check(self, url: str, get: GetRobots) -> None:
        """Passes where a normalised URL may be read.

        Args:
            url: The URL.
            get: Gets the rules where they are not known yet.

        Raises:
            Unreadable: the rules forbid it, or cannot be had: then nothing of the site may be read.
        """
        parts = urlsplit(url)
        if not self._rules(f"{parts.scheme}://{parts.netloc}", get).can_fetch(url, self.agent):
            raise Unreadable(Why.ROBOTS, f"{parts.netloc} does not let it be read by robots")

    def _rules(self, origin: str, get: GetRobots) -> Protego:
        with self._lock:
            kept = self._kept.get(origin)
        if kept is not None and self.clock() - kept[0] < _KEPT_S:
            return kept[1]
        rules = Protego.parse(get(origin) or "")
        with self._lock:
            self._kept[origin] = (self.clock(), rules)
        return rules
