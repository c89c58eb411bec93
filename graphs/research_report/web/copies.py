"""Pages that say the same: equal texts, and copies of one release with a line more or less."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol

from graphs.research_report.web.pages import text_sha256

_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_SHINGLE = 5
_MIN_SHINGLES = 30
_SHARED = 0.8


class Originals(Protocol):
    """Knows texts, and which came first."""

    def original_of(self, source_id: str, text: str) -> str | None:
        """Returns the source id of the first page with this text, None where it is this page."""
        ...


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two texts are compared by.

    Attributes:
        sha256: Of the text.
        shingles: Every five words in a row.
        numbers: Every number.
    """

    sha256: str
    shingles: frozenset[int]
    numbers: frozenset[str]

    def matches(self, other: Fingerprint) -> bool:
        """Tells whether two texts are copies.

        Near copies share four fifths of the shorter one, and every number of it: pages made from one template for two
        years share their words and not their figures.
        """
        if self.sha256 == other.sha256:
            return True
        shorter, longer = sorted((self, other), key=lambda each: len(each.shingles))
        if len(shorter.shingles) < _MIN_SHINGLES or not shorter.numbers <= longer.numbers:
            return False
        return len(shorter.shingles & longer.shingles) >= _SHARED * len(shorter.shingles)


def fingerprint(text: str) -> Fingerprint:
    """Returns what a text is compared by."""
    words = _WORD.findall(text.lower())
    shingles = (tuple(words[start : start + _SHINGLE]) for start in range(len(words) - _SHINGLE + 1))
    return Fingerprint(
        text_sha256(text),
        frozenset(map(hash, shingles)),
        frozenset(word for word in words if word[0].isdigit()),
    )


@dataclass(slots=True)
class SeenTexts:
    """The texts that were read, oldest first. Safe between threads.

    One belongs to one run, or at most to one tenant: what it answers tells what was read before.

    Attributes:
        max_texts: The oldest are forgotten beyond that.
    """

    max_texts: int = 1000
    _seen: OrderedDict[str, Fingerprint] = field(default_factory=OrderedDict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def original_of(self, source_id: str, text: str) -> str | None:
        """Returns the source id of the first page with this text, None where it is this page."""
        mine = fingerprint(text)
        with self._lock:
            for known, other in self._seen.items():
                if known != source_id and mine.matches(other):
                    return known
            self._seen[source_id] = mine
            while len(self._seen) > self.max_texts:
                self._seen.popitem(last=False)
        return None
