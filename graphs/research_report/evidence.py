"""What is known of the sources of a run: pages, notes, which are copies, which are old, which contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from graphs.research_report.figures import agree, contradict
from graphs.research_report.notes import Files, Note, Page, origins, read_notes, read_pages
from graphs.research_report.report import Flag
from graphs.research_report.text import normalised


@dataclass(frozen=True, slots=True)
class Said:
    """One quote of one note."""

    source_id: str
    sub_question: str
    quote: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The sources of a run.

    Attributes:
        pages: By source id.
        notes: Every note.
        old_after_days: Age from which a source is old.
    """

    pages: Mapping[str, Page]
    notes: tuple[Note, ...]
    old_after_days: int

    def said(self, sub_question: str) -> list[Said]:
        """Returns the quotes that were noted for a sub-question, by source and place."""
        return [
            Said(note.source_id, note.sub_question, quote.quote)
            for note in self.notes
            if note.sub_question == sub_question and note.readable
            for quote in note.quotes
        ]

    def independent(self, sources: Iterable[str]) -> int:
        """Counts sources, copies of one release as one: said by a page, seen by its text, or by the same sentence."""
        return len({self._origin(source) for source in sources if source in self.pages})

    def is_old(self, source: str) -> bool:
        """Tells whether a source was old on the day it was read; one without a date is not called old."""
        page = self.pages.get(source)
        if page is None or not page.published_on:
            return False
        return (date.fromisoformat(page.accessed_on) - date.fromisoformat(page.published_on)).days > self.old_after_days

    def contradicting(self, sub_question: str, cited: Mapping[str, Sequence[str]]) -> list[Said]:
        """Returns what notes say against quotes, by source, from sources that are not among these."""
        return [
            other
            for other in self.said(sub_question)
            if other.source_id not in cited
            and any(
                self._contradict(source, q, other.source_id, other.quote) for source in cited for q in cited[source]
            )
        ]

    def flags(self, sources: Iterable[str], quotes: Mapping[str, Sequence[str]]) -> set[Flag]:
        """Returns what weakens a finding: one independent source, only old ones, sources that contradict each other."""
        cited = [source for source in sources if source in self.pages]
        found: set[Flag] = set()
        if cited and self.independent(cited) == 1:
            found.add("single_source")
        if cited and all(self.is_old(source) for source in cited):
            found.add("only_old")
        if any(
            self._contradict(one, q, other, r)
            for one in cited
            for other in cited
            if one < other
            for q in quotes.get(one, ())
            for r in quotes.get(other, ())
        ):
            found.add("conflict")
        return found

    def _contradict(self, source: str, quote: str, other: str, against: str) -> bool:
        """Two sentences contradict, unless one page is so much older that the newer one supersedes it."""
        years = (self._date(source)[:4], self._date(other)[:4])
        return contradict(quote, against, years=years) and not self._is_superseded(source, other)

    def _is_superseded(self, source: str, other: str) -> bool:
        dates = [date.fromisoformat(each) for each in (self._date(source), self._date(other)) if each]
        return len(dates) == 2 and abs((dates[0] - dates[1]).days) > self.old_after_days

    def _date(self, source: str) -> str:
        page = self.pages.get(source)
        return (page.published_on if page else None) or ""

    def is_original(self, source: str) -> bool:
        """Tells whether a source is not known to be a copy of another."""
        return self._origin(source) == source

    def _origin(self, source: str) -> str:
        root = origins(self.pages.values()).get(source, source)
        mine = self._sentences(source)
        alike = [
            origins(self.pages.values()).get(other, other)
            for other in self.pages
            if other != source and mine & self._sentences(other)
        ]
        return min([root, *alike])

    def _sentences(self, source: str) -> frozenset[str]:
        return frozenset(
            normalised(quote.quote) for note in self.notes if note.source_id == source for quote in note.quotes
        )


def evidence_of(files: Files, old_after_days: int) -> Evidence:
    """Reads what a run's files hold."""
    return Evidence(read_pages(files), tuple(read_notes(files)), old_after_days)


def supporting(quote: str, among: Iterable[Said]) -> list[Said]:
    """Returns those that say the same as a quote, one for each source."""
    found: dict[str, Said] = {}
    for other in among:
        if other.quote == quote or (agree(quote, other.quote) and not contradict(quote, other.quote)):
            found.setdefault(other.source_id, other)
    return list(found.values())


def notes_evidence(notes: Sequence[Note], old_after_days: int = 365) -> Evidence:
    """Returns what notes alone tell: the same, but for the text of the pages."""
    pages = {
        note.source_id: Page(
            source_id=note.source_id,
            url=note.url,
            title=note.title,
            publisher=note.publisher,
            type=note.type,
            accessed_on=note.accessed_on,
            published_on=note.published_on,
            readable=note.readable,
            reason=note.reason,
            duplicate_of=next((each for each in note.duplicates if each < note.source_id), None),
        )
        for note in notes
    }
    return Evidence(pages, tuple(notes), old_after_days)
