"""Drafting by rules: one finding for each sub-question, from the newest quote, with everything that says the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphs.research_report.brief import Brief
from graphs.research_report.changes import changes_since
from graphs.research_report.evidence import Evidence, Said, notes_evidence, supporting
from graphs.research_report.notes import Note
from graphs.research_report.plan import SubQuestion
from graphs.research_report.report import Confidence, Finding, Report, Source, summary_of
from graphs.research_report.text import is_hedged, is_second_hand, words


@dataclass(frozen=True, slots=True)
class Summary:
    """What a search subagent answered: its notes files, its claims by source, what it tried."""

    notes: tuple[str, ...]
    claims: tuple[tuple[str, str], ...]
    tried: tuple[str, ...]


def draft_report(
    brief: Brief,
    plan: Sequence[SubQuestion],
    notes: Sequence[Note],
    summaries: Mapping[str, Summary],
    *,
    from_summaries: bool,
) -> Report:
    """Drafts a report.

    Args:
        brief: What was asked.
        plan: The sub-questions.
        notes: The notes, as read from their files.
        summaries: What the search subagents answered, by sub-question.
        from_summaries: Whether statements are taken from the summaries, as an earlier prompt has it.
    """
    evidence = notes_evidence(notes)
    findings: list[Finding] = []
    quotes: dict[str, list[str]] = {}
    open_questions = []
    for item in plan:
        chosen = _chosen(evidence, evidence.said(item.id), item)
        if not chosen:
            open_questions.append(_open_question(item, notes, summaries.get(item.id)))
            continue
        claims = dict(summaries[item.id].claims) if from_summaries and item.id in summaries else {}
        finding = _finding(f"f{len(findings) + 1}", item, chosen, evidence, claims)
        findings.append(finding)
        if "conflict" in finding.flags:
            open_questions.append(f"{item.id}: sources disagree on {item.text}")
        for said in chosen:
            quotes.setdefault(said.source_id, []).append(said.quote)
    by_id = {note.source_id: note for note in notes}
    sources = [_source(by_id[source], list(dict.fromkeys(said))) for source, said in sorted(quotes.items())]
    return Report(
        title=brief.question.rstrip("?"),
        summary=summary_of(findings, open_questions),
        outline=[item.heading for item in plan],
        findings=findings,
        sources=sources,
        open_questions=open_questions,
        changes=changes_since(brief.previous.report, findings, notes) if brief.previous else [],
    )


def _chosen(evidence: Evidence, said: Sequence[Said], item: SubQuestion) -> list[Said]:
    """Picks the best quote, those that say the same, and those that contradict them.

    The best is first-hand, not old, no copy, closest to what is asked, and of those the newest. Copies are not cited
    beside their original.
    """
    if not said:
        return []
    asked = words(item.text)
    best = max(
        said,
        key=lambda each: (
            not is_second_hand(each.quote),
            not evidence.is_old(each.source_id),
            evidence.is_original(each.source_id),
            len(asked & words(each.quote)),
            evidence.pages[each.source_id].published_on or "",
        ),
    )
    agreed = [
        each
        for each in supporting(best.quote, [best, *said])
        if each.source_id == best.source_id or evidence.independent([best.source_id, each.source_id]) == 2
    ]
    cited: dict[str, list[str]] = {}
    for each in agreed:
        cited.setdefault(each.source_id, []).append(each.quote)
    against = {each.source_id: each for each in evidence.contradicting(best.sub_question, cited)}
    return [*agreed, *against.values()]


def _finding(
    number: str, item: SubQuestion, chosen: Sequence[Said], evidence: Evidence, claims: Mapping[str, str]
) -> Finding:
    quotes: dict[str, list[str]] = {}
    for said in chosen:
        quotes.setdefault(said.source_id, []).append(said.quote)
    flags = evidence.flags(quotes, quotes)
    told = [(said.source_id, claims.get(said.source_id, said.quote)) for said in chosen]
    doubted = is_hedged(told[0][1])
    confidence: Confidence = "high"
    if doubted or flags & {"conflict", "only_old"}:
        confidence = "uncertain"
    elif flags:
        confidence = "medium"
    return Finding(
        id=number,
        sub_question=item.id,
        statement=_statement(told, evidence, is_conflict="conflict" in flags),
        sources=sorted(quotes),
        confidence=confidence,
        flags=sorted(flags),
    )


def _statement(told: Sequence[tuple[str, str]], evidence: Evidence, *, is_conflict: bool) -> str:
    source, claim = told[0]
    if not is_conflict:
        return f"{_as_of(evidence, source)}: {claim}"[:800]
    other, against = told[-1]
    return f"Sources disagree. {_as_of(evidence, source)}: {claim} {_as_of(evidence, other)}: {against}"[:800]


def _as_of(evidence: Evidence, source: str) -> str:
    page = evidence.pages[source]
    return f"As of {page.published_on}" if page.published_on else f"As read on {page.accessed_on}"


def _source(note: Note, quotes: list[str]) -> Source:
    return Source(
        id=note.source_id,
        url=note.url,
        title=note.title,
        accessed_on=note.accessed_on,
        published_on=note.published_on,
        quotes=quotes,
    )


def _open_question(item: SubQuestion, notes: Sequence[Note], summary: Summary | None) -> str:
    unread = [f"{note.url} ({note.reason})" for note in notes if note.sub_question == item.id and not note.readable]
    tried = [each for each in (summary.tried if summary else ()) if each]
    return "; ".join(
        [
            f"{item.id}: no source answers {item.text}",
            *([f"tried: {', '.join(tried)}"] if tried else []),
            *([f"unreadable: {', '.join(unread)}"] if unread else []),
        ]
    )
