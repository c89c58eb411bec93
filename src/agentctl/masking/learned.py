"""What fields told is personal, so that it is known in free text too.

A name of several words is known wherever these stand together, in any case. One of its words alone is known where it is
written with a capital (or in a script without them), has three letters or more, and is no ordinary word or place; in
lower case it needs five. So `Al` and `may` do not eat a text. A line of an address is known where it has a number and a
word, or three words; other values where they have six letters and digits, one digit at least.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Final

from agentctl.masking.finding.hits import Hit
from agentctl.masking.ordinary import AMBIGUOUS, NOT_NAMES
from agentctl.masking.tokens.dates import WRITTEN, date_in, dates_in
from agentctl.masking.tokens.names import is_kept
from agentctl.masking.words import WORD
from agentctl.records.masking import MaskKind

_WORD = re.compile(rf"{WORD}(?:['’](?!s\b){WORD})*")
_SEGMENT = re.compile(r"[^,;\n|]+")
_LETTERS_ALONE: Final = 3
_LETTERS_ALONE_IN_LOWER_CASE: Final = 5
_LEAST: Final = 6
_LEAST_ADDRESS_WORDS: Final = 3
_LONGEST_GAP: Final = 3
_LONGEST_VALUE: Final = 200
_UNSPACED: Final = 0x2E80
"""From here on scripts have no spaces between words: Chinese, Japanese; Korean puts particles behind a name."""
_MOST_WORDS: Final = 16


class Learned:
    """Personal values by their first words."""

    def __init__(self) -> None:
        self._phrases: defaultdict[str, set[tuple[tuple[str, ...], MaskKind]]] = defaultdict(set)
        self._n_phrases = 0
        self._alone: set[str] = set()
        self._exact: dict[str, MaskKind] = {}
        self._dates: set[date] = set()

    @property
    def n_values(self) -> int:
        """How much was learned; the same number means that nothing came in between."""
        return self._n_phrases + len(self._alone) + len(self._exact) + len(self._dates)

    def add(self, kind: MaskKind, text: str) -> None:
        """Keeps a value that is personal."""
        if len(text) > _LONGEST_VALUE or kind in ("email", "ip"):
            return
        if kind == "name":
            self._add_name(text)
        elif kind == "address":
            for segment in _SEGMENT.findall(text):
                words = _words(segment)
                has_number = any(word[0].isdigit() for word in words)
                if len(words) >= _LEAST_ADDRESS_WORDS or (has_number and len(words) > 1):
                    self._add_phrase(words, kind)
        elif kind == "birth_date":
            self._dates.update(written.day for written in dates_in(text))
        elif sum(c.isalnum() for c in text) >= _LEAST and any(c.isdigit() for c in text):
            if kind in ("secret", "other"):
                self._exact[text.strip()] = kind
            else:
                self._add_phrase(_words(text), kind)

    def hits_in(self, text: str) -> Iterator[Hit]:
        """Finds what was learned."""
        if self._phrases or self._alone:
            words = [(found.start(), found.end(), _plain(found[0])) for found in _WORD.finditer(text)]
            for number, (start, end, word) in enumerate(words):
                for phrase, kind in self._phrases.get(word, ()):
                    last = self._reaches(text, words, number, phrase)
                    if last is not None:
                        yield Hit(start, last, kind, 0)
                if word in self._alone and _stands_out(text[start:end]):
                    yield Hit(start, end, "name", 1)
        for value, kind in self._exact.items():
            if value in text:
                for found in re.finditer(re.escape(value), text):
                    yield Hit(*found.span(), kind, 0)
        if self._dates:
            for found in WRITTEN.finditer(text):
                written = date_in(found)
                if written is not None and written.day in self._dates:
                    yield Hit(*found.span(), "birth_date", 0)

    def phrases_in(self, text: str) -> Iterator[Hit]:
        """Finds what was learned but for names of which one word stands there alone."""
        return (hit for hit in self.hits_in(text) if hit.rank == 0)

    def kind_of_number(self, digits: str) -> MaskKind | None:
        """Returns what these digits were learned as, or None."""
        return next((kind for phrase, kind in self._phrases.get(digits, ()) if phrase == (digits,)), None)

    def _add_name(self, text: str) -> None:
        words = tuple(word for word in _words(text) if not word.isdigit())
        if any(first >= _UNSPACED for first in map(ord, text)):
            parts = [part for part in (*text.split(), "".join(text.split())) if len(part) > 1]
            self._exact.update(dict.fromkeys(parts, "name"))
            return
        telling = [word for word in words if not is_kept(word) and len(word) > 1]
        if len(words) > 1 and telling:
            self._add_phrase(words, "name")
            bare = tuple(word for word in words if word in telling)
            self._add_phrase((bare[0], bare[-1]), "name")
            self._add_phrase((bare[-1], bare[0]), "name")
        for word in telling:
            if len(word) >= _LETTERS_ALONE and word not in AMBIGUOUS and word not in NOT_NAMES:
                self._alone.add(word)

    def _add_phrase(self, words: tuple[str, ...], kind: MaskKind) -> None:
        if 0 < len(words) <= _MOST_WORDS and (len(words) > 1 or kind != "name"):
            known = self._phrases[words[0]]
            self._n_phrases += (words, kind) not in known
            known.add((words, kind))

    @staticmethod
    def _reaches(text: str, words: list[tuple[int, int, str]], number: int, phrase: tuple[str, ...]) -> int | None:
        """Returns where a phrase ends that begins with a word of the text, or None where it does not stand there."""
        if number + len(phrase) > len(words):
            return None
        for offset, word in enumerate(phrase):
            start, _, found = words[number + offset]
            if found != word or (offset and not _is_gap(text[words[number + offset - 1][1] : start])):
                return None
        return words[number + len(phrase) - 1][1]


def _words(text: str) -> tuple[str, ...]:
    return tuple(_plain(word) for word in _WORD.findall(text))


def _plain(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold()).replace("’", "'")


def _is_gap(text: str) -> bool:
    return len(text) <= _LONGEST_GAP and "\n\n" not in text


def _stands_out(written: str) -> bool:
    return not written[0].islower() or len(written) >= _LETTERS_ALONE_IN_LOWER_CASE
