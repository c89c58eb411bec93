"""The critique role by rules: read draft and notes, compare each finding with its quotes, answer with issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import ValidationError

from agentctl.testing import Turn
from graphs.research_report.critique import Critique, Issue
from graphs.research_report.evidence import Evidence, notes_evidence
from graphs.research_report.figures import figures
from graphs.research_report.notes import DRAFT, NOTES, Note
from graphs.research_report.report import Finding, Report
from graphs.research_report.scripts.reading import calls, given, system_text
from graphs.research_report.text import contains, is_hedged, words

_OVERSTATED = "- overstated:"
_SUPPORT = 0.5


def critique_script(turn: Turn) -> AIMessage:
    """Plays one turn of the critique."""
    if not turn.tools:
        return AIMessage("Draft and notes are in their files.")
    listed = calls(turn.messages, "glob")
    if not listed:
        return AIMessage(
            "",
            tool_calls=[
                turn.call("read_file", {"file_path": DRAFT}, 0),
                turn.call("glob", {"pattern": "**/*.json", "path": NOTES}, 1),
            ],
        )
    paths = sorted({part.strip(" '\"[],") for part in listed[0].text.replace(",", "\n").splitlines()})
    paths = [path if path.startswith("/") else f"{NOTES}/{path}" for path in paths if path.endswith(".json")]
    read = {str(each.args["file_path"]) for each in calls(turn.messages, "read_file")}
    if unread := [path for path in paths if path not in read]:
        return AIMessage(
            "", tool_calls=[turn.call("read_file", {"file_path": path}, n) for n, path in enumerate(unread)]
        )
    answer = Critique(issues=list(_issues(turn.messages)))
    return AIMessage("", tool_calls=[turn.call("Critique", answer.model_dump(mode="json"))])


def _issues(messages: Sequence[BaseMessage]) -> Iterator[Issue]:
    draft, notes = _read(messages)
    if draft is None:
        return
    evidence = notes_evidence(notes)
    looks_for_doubt = _OVERSTATED in system_text(messages)
    for finding in draft.findings:
        yield from _finding_issues(finding, evidence, looks_for_doubt=looks_for_doubt)
    for heading in draft.outline:
        sub_question = heading.partition(":")[0]
        answered = {finding.sub_question for finding in draft.findings}
        if sub_question not in answered and not any(sub_question in each for each in draft.open_questions):
            yield Issue(kind="gap", finding=sub_question, detail="neither a finding nor an open question")


def _finding_issues(finding: Finding, evidence: Evidence, *, looks_for_doubt: bool) -> Iterator[Issue]:
    said = [each for each in evidence.said(finding.sub_question) if each.source_id in finding.sources]
    quotes = [each.quote for each in said]

    def issue(kind: str, detail: str) -> Issue:
        return Issue.model_validate(
            {"kind": kind, "finding": finding.id, "statement": finding.statement, "detail": detail}
        )

    if finding.confidence != "uncertain" and not _is_supported(finding.statement, quotes):
        yield issue("unsupported", "no quote of its sources says this")
    elif looks_for_doubt and finding.confidence != "uncertain" and _is_overstated(finding.statement, quotes):
        yield issue("overstated", f"the source is not certain: {next(q for q in quotes if is_hedged(q))}")
    by_source = {source: [each.quote for each in said if each.source_id == source] for source in finding.sources}
    for other in evidence.contradicting(finding.sub_question, by_source):
        yield issue("hidden_conflict", f"{other.source_id} says otherwise: {other.quote}")
    flags = evidence.flags(finding.sources, by_source)
    if len(finding.sources) > 1 and "single_source" in flags:
        yield issue("duplicate_sources", "its sources are copies of one text")
    if "only_old" in flags:
        yield issue("old_sources", "everything it cites is old")


def _is_supported(statement: str, quotes: Sequence[str]) -> bool:
    claimed = {(f.value, f.unit) for f in figures(statement)}
    told = {(f.value, f.unit) for quote in quotes for f in figures(quote)}
    said = {word for quote in quotes for word in words(quote)}
    mine = words(statement)
    return claimed <= told and bool(mine) and len(mine & said) / len(mine) >= _SUPPORT


def _is_overstated(statement: str, quotes: Sequence[str]) -> bool:
    supporting = [quote for quote in quotes if words(quote) & words(statement)]
    if any(contains(statement, quote) for quote in quotes if not is_hedged(quote)):
        return False
    return not is_hedged(statement) and any(is_hedged(quote) for quote in supporting)


def _read(messages: Sequence[BaseMessage]) -> tuple[Report | None, list[Note]]:
    draft, notes = None, []
    for each, document in given(calls(messages, "read_file")):
        try:
            if each.args["file_path"] == DRAFT:
                draft = Report.model_validate(document)
            else:
                notes.append(Note.model_validate(document))
        except ValidationError:
            continue
    return draft, notes
