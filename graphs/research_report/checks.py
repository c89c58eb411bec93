"""The checks outside the model: what a report must satisfy before a person is even asked about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from graphs.research_report.critique import Critique
from graphs.research_report.evidence import Evidence
from graphs.research_report.report import Finding, Report, Source
from graphs.research_report.text import contains, normalised

Code = Literal[
    "repeated_id", "unknown_source", "uncited", "not_fetched", "unreadable", "differs_from_page", "quote_not_found",
    "bad_url", "no_time", "hidden_conflict", "missing_flag", "too_confident", "criticised", "schema",
]  # fmt: skip
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where: `where` is the id of a finding or source."""

    code: Code
    where: str
    detail: str

    def as_dict(self) -> dict[str, str]:
        """Returns it as the model reads it."""
        return {"code": self.code, "where": self.where, "detail": self.detail}


def check_report(report: Report, evidence: Evidence, critique: Critique | None = None) -> list[Problem]:
    """Checks a report against what was fetched and noted, and against what the critique called wrong.

    It proves that quotes exist, not that they support: that is the critique's and the reviewer's part.
    """
    cited = {source.id: source for source in report.sources}
    return [
        *_repeated(report),
        *(problem for source in report.sources for problem in _source_problems(source, evidence)),
        *(problem for finding in report.findings for problem in _finding_problems(finding, cited, evidence)),
        *_criticised(report, critique),
    ]


def _repeated(report: Report) -> Iterator[Problem]:
    for ids in ([finding.id for finding in report.findings], [source.id for source in report.sources]):
        for repeated in sorted({each for each in ids if ids.count(each) > 1}):
            yield Problem("repeated_id", repeated, "two entries have this id")


def _source_problems(source: Source, evidence: Evidence) -> Iterator[Problem]:
    parts = urlsplit(source.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Problem("bad_url", source.id, f"{source.url} is no http or https address")
    page = evidence.pages.get(source.id)
    if page is None:
        yield Problem("not_fetched", source.id, "no page of this id was fetched")
        return
    if not page.readable:
        yield Problem("unreadable", source.id, page.reason or "the page could not be read")
        return
    for name in ("url", "title", "accessed_on", "published_on"):
        if (getattr(source, name) or None) != (getattr(page, name) or None):
            yield Problem("differs_from_page", source.id, f"{name} is {getattr(page, name)!r} on the page")
    for quote in source.quotes:
        if not contains(page.text, quote):
            yield Problem("quote_not_found", source.id, f"the page does not say: {quote}")


def _finding_problems(finding: Finding, cited: dict[str, Source], evidence: Evidence) -> Iterator[Problem]:
    unknown = [each for each in finding.sources if each not in cited]
    for each in unknown:
        yield Problem("unknown_source", finding.id, f"{each} is not among the report's sources")
    if not finding.sources and finding.confidence != "uncertain":
        yield Problem("uncited", finding.id, "no source: only an uncertain finding may have none")
    if not _YEAR.search(finding.statement):
        yield Problem("no_time", finding.id, "the statement does not say as of when it holds")
    quotes = {each: _quotes_for(finding, cited[each], evidence) for each in finding.sources if each in cited}
    for other in evidence.contradicting(finding.sub_question, quotes):
        yield Problem(
            "hidden_conflict", finding.id, f"{other.source_id} says otherwise and is not cited: {other.quote}"
        )
    flags = evidence.flags(finding.sources, quotes)
    for flag in sorted(flags - set(finding.flags)):
        yield Problem("missing_flag", finding.id, f"it must be flagged {flag}")
    if finding.confidence == "high" and flags:
        yield Problem("too_confident", finding.id, f"high confidence, but {', '.join(sorted(flags))}")
    if finding.confidence != "uncertain" and flags & {"conflict", "only_old"}:
        yield Problem("too_confident", finding.id, f"it must be uncertain: {', '.join(sorted(flags))}")


def _quotes_for(finding: Finding, source: Source, evidence: Evidence) -> list[str]:
    """Returns those of a source's quotes that were noted for the finding's sub-question."""
    noted = {normalised(said.quote) for said in evidence.said(finding.sub_question) if said.source_id == source.id}
    return [quote for quote in source.quotes if normalised(quote) in noted]


def _criticised(report: Report, critique: Critique | None) -> Iterable[Problem]:
    for issue in critique.must_fix if critique else ():
        kept = next((finding for finding in report.findings if finding.id == issue.finding), None)
        if kept is not None and kept.confidence != "uncertain" and kept.statement == issue.statement:
            yield Problem("criticised", kept.id, f"{issue.kind}: {issue.detail}")
