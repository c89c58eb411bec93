"""A refresh: what became of each finding of the previous report, by comparing its quotes with what is read now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphs.research_report.brief import Previous
from graphs.research_report.figures import agree, contradict
from graphs.research_report.notes import Note
from graphs.research_report.report import Change, Finding, Report
from graphs.research_report.text import normalised


def refresh_input(publication: dict[str, Any], *, audience: str | None = None) -> dict[str, Any]:
    """Builds the input of a new thread that refreshes a publication.

    Args:
        publication: The receiver's record: artifact, version, report.
        audience: For whom, where it changes.
    """
    previous = Previous.model_validate({name: publication[name] for name in Previous.model_fields})
    return {
        "question": f"{previous.report.title}?",
        "previous": previous.model_dump(mode="json"),
        **({"audience": audience} if audience else {}),
    }


def changes_since(previous: Report, findings: Sequence[Finding], notes: Sequence[Note]) -> list[Change]:
    """Returns the findings of a previous report that do not hold as they were.

    `gone`: none of its sources can be read, or says anything on it, any more. `changed`: its source says something
    else now. `contradicted`: a source that it did not cite says otherwise.
    """
    return [change for old in previous.findings if (change := _change(old, previous, findings, notes)) is not None]


def _change(old: Finding, previous: Report, findings: Sequence[Finding], notes: Sequence[Note]) -> Change | None:
    quotes = {source.id: source.quotes for source in previous.sources if source.id in old.sources}
    mine = [note for note in notes if note.sub_question == old.sub_question and note.readable and note.quotes]
    same = [note for note in mine if note.source_id in quotes]
    still = [note for note in same if _still_says(note, quotes[note.source_id])]
    against = [
        quote.quote
        for note in mine
        if note.source_id not in quotes
        for quote in note.quotes
        if any(contradict(each, quote.quote) for told in quotes.values() for each in told)
    ]
    if against:
        return Change(finding=old.id, kind="contradicted", detail=against[0])
    if still:
        return None
    if same:
        return Change(finding=old.id, kind="changed", detail=same[0].quotes[0].quote)
    if any(agree(old.statement, finding.statement) for finding in findings if finding.sub_question == old.sub_question):
        return None
    return Change(finding=old.id, kind="gone", detail=f"none of its sources says so any more: {', '.join(old.sources)}")


def _still_says(note: Note, quotes: Sequence[str]) -> bool:
    now = {normalised(quote.quote) for quote in note.quotes}
    return any(normalised(quote) in now for quote in quotes)
