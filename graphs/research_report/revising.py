"""Revising by rules: what the critique, the checks or the reviewer found is put right, or marked uncertain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graphs.research_report.critique import Critique
from graphs.research_report.evidence import notes_evidence
from graphs.research_report.notes import Note
from graphs.research_report.report import Finding, Flag, Report, summed_up

_DROP = re.compile(r"\b(?:remove|drop|delete)\b", re.IGNORECASE)
_DOUBT = re.compile(r"\buncertain\b", re.IGNORECASE)
_FINDING = re.compile(r"\bf\d{1,3}\b")


def after_critique(report: Report, critique: Critique | None, notes: Sequence[Note]) -> Report:
    """Puts right what the critique calls wrong: overstated findings are told as their quotes tell it, others marked."""
    kinds = {issue.finding: issue.kind for issue in (critique.must_fix if critique else ())}
    quotes = {(note.source_id, note.sub_question): note.quotes for note in notes}
    findings = []
    for finding in report.findings:
        if finding.id not in kinds:
            findings.append(finding)
            continue
        told = [quote.quote for source in finding.sources for quote in quotes.get((source, finding.sub_question), ())]
        statement = _retold(finding, told[0]) if told and kinds[finding.id] == "overstated" else finding.statement
        findings.append(finding.model_copy(update={"statement": statement, "confidence": "uncertain"}))
    return _with(report, findings)


def after_problems(report: Report, problems: Sequence[Mapping[str, str]], notes: Sequence[Note]) -> Report:
    """Puts right what the checks found: sources that do not hold are dropped, the rest is marked uncertain."""
    wrong = {problem["where"] for problem in problems}
    sources = [source for source in report.sources if source.id not in wrong]
    kept = {source.id for source in sources}
    evidence = notes_evidence([note for note in notes if note.source_id in kept])
    findings = []
    for finding in report.findings:
        cited = [source for source in finding.sources if source in kept]
        flags: list[Flag] = sorted({*finding.flags, *evidence.flags(cited, {})})
        changed = finding.id in wrong or cited != finding.sources
        update = {"sources": cited, "flags": flags, **({"confidence": "uncertain"} if changed else {})}
        findings.append(finding.model_copy(update=update))
    return _with(report.model_copy(update={"sources": sources}), findings)


def after_rejection(report: Report, feedback: str) -> Report:
    """Follows a reviewer's feedback: findings it names are dropped or marked; what else it says stays open."""
    named = set(_FINDING.findall(feedback))
    if named and _DROP.search(feedback):
        return _with(report, [finding for finding in report.findings if finding.id not in named])
    if named and _DOUBT.search(feedback):
        marked = [
            finding.model_copy(update={"confidence": "uncertain"}) if finding.id in named else finding
            for finding in report.findings
        ]
        return _with(report, marked)
    questions = [*report.open_questions, f"Reviewer: {feedback}"[:500]]
    return summed_up(report.model_copy(update={"open_questions": questions}))


def _retold(finding: Finding, quote: str) -> str:
    anchor = finding.statement.partition(": ")[0]
    return f"{anchor}: {quote}"[:800]


def _with(report: Report, findings: list[Finding]) -> Report:
    cited = {source for finding in findings for source in finding.sources}
    sources = [source for source in report.sources if source.id in cited]
    return summed_up(report.model_copy(update={"findings": findings, "sources": sources}))
