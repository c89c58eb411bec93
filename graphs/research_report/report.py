"""The report as a schema: what is found, on which sources, how certain it is, and what stays open."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Confidence = Literal["high", "medium", "uncertain"]
Flag = Literal["single_source", "only_old", "conflict"]
DATE = r"^\d{4}-\d{2}-\d{2}$"
SOURCE_ID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Finding(_Part):
    """One finding."""

    id: str = Field(pattern=r"^f\d{1,3}$", description="f1, f2, ...")
    sub_question: str = Field(pattern=r"^q\d{1,2}$", description="The sub-question it answers.")
    statement: str = Field(min_length=1, max_length=800, description="Anchored in time: as of when this holds.")
    sources: list[str] = Field(description="Ids of the sources that support it; both sides of a conflict.")
    confidence: Confidence = Field(description="high needs two independent sources that say so without doubt.")
    flags: list[Flag] = Field(default_factory=list, description="What weakens its support.")


class Source(_Part):
    """One source that a finding cites."""

    id: str = Field(pattern=SOURCE_ID, description="As fetch_page gave it.")
    url: str = Field(pattern=r"^https?://", description="As fetch_page gave it.")
    title: str
    accessed_on: str = Field(pattern=DATE, description="When the page was read.")
    published_on: str | None = Field(default=None, pattern=DATE, description="The page's own date.")
    quotes: list[str] = Field(min_length=1, description="Verbatim, from the page.")


class Change(_Part):
    """What became of a finding of the report that is refreshed."""

    finding: str = Field(description="Id of the finding in the previous report.")
    kind: Literal["changed", "gone", "contradicted"]
    detail: str


class Report(_Part):
    """A research report."""

    title: str = Field(min_length=1, max_length=200)
    summary: str = Field(min_length=1, max_length=2000)
    outline: list[str] = Field(description="The sub-questions, in order, each as `q1: ...`.")
    findings: list[Finding]
    sources: list[Source]
    open_questions: list[str]
    changes: list[Change] = Field(default_factory=list, description="For a refresh: what changed since.")


def report_sha256(report: Report) -> str:
    """Returns the hash by which a report is known: the same for the same contents, however they were written."""
    text = json.dumps(report.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def summary_of(findings: Sequence[Finding], open_questions: Sequence[str]) -> str:
    """Sums findings up by rule: what is certain first, what is not said to be so, and how much is open."""
    certain = [finding.statement for finding in findings if finding.confidence != "uncertain"]
    doubtful = [f"Uncertain: {finding.statement}" for finding in findings if finding.confidence == "uncertain"]
    still_open = [f"Open: {len(open_questions)} questions."] if open_questions else []
    return " ".join([*certain, *doubtful, *still_open])[:2000] or "Nothing was found."


def summed_up(report: Report) -> Report:
    """Returns a report whose summary says no more than its findings do, after these have changed."""
    return report.model_copy(update={"summary": summary_of(report.findings, report.open_questions)})


def report_text(report: Report, outcome: str) -> str:
    """Writes a report as people read it; `outcome` says whether it was published."""
    findings = [
        f"{finding.id} ({', '.join([finding.confidence, *finding.flags])}): {finding.statement} "
        f"[{', '.join(finding.sources)}]"
        for finding in report.findings
    ]
    changes = [
        f"Since the last version {change.finding} is {change.kind}: {change.detail}" for change in report.changes
    ]
    questions = [f"Open: {question}" for question in report.open_questions]
    sources = [f"[{source.id}] {source.title}, {source.url}, read on {source.accessed_on}" for source in report.sources]
    return "\n".join([f"{report.title} ({outcome})", *findings, *changes, *questions, *sources])
