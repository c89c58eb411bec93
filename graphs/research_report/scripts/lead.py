"""The lead role by rules: plan, delegate, read the notes, draft, have it criticised, publish, answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import ValidationError

from agentctl.testing import Turn
from graphs.research_report.brief import Brief
from graphs.research_report.critique import Critique, critique_in
from graphs.research_report.digest import progress
from graphs.research_report.drafting import Summary, draft_report
from graphs.research_report.notes import DRAFT, NOTES, Note, as_json
from graphs.research_report.plan import SubQuestion, ready, sub_questions
from graphs.research_report.report import Report
from graphs.research_report.revising import after_critique, after_problems, after_rejection
from graphs.research_report.scripts.reading import (
    Answered,
    calls,
    document_in,
    given,
    number_in,
    system_text,
)

_FROM_SUMMARIES = "Draft from the summaries"
_MOST_OFFERS = 4
_DEPENDS = re.compile(r"\b(?:compar\w*|differ\w*|trends?|why|outlook|versus|vs)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Desk:
    """What a turn of the lead decides from, read out of its messages."""

    brief: dict[str, Any]
    plan: list[SubQuestion]
    summaries: dict[str, Summary]
    notes: list[Note]
    unread: list[str]
    draft: Report | None
    critique: Critique | None
    offers: list[Answered] = field(default_factory=list)


def lead_script(turn: Turn) -> AIMessage:
    """Plays one turn of the lead."""
    desk = _desk(turn.messages)
    if not desk.plan:
        return _plan(turn, desk)
    if batch := ready(desk.plan, desk.summaries):
        return _delegate(turn, desk, batch)
    if desk.unread:
        return _read(turn, desk)
    if desk.draft is None:
        report = draft_report(
            _brief(desk),
            desk.plan,
            desk.notes,
            desk.summaries,
            from_summaries=_FROM_SUMMARIES in system_text(turn.messages),
        )
        return _call(turn, "write_file", {"file_path": DRAFT, "content": as_json(report)})
    if desk.critique is None and not _criticised(turn.messages):
        task = {"subagent_type": "critique", "description": f"Check {DRAFT} against the notes files in {NOTES}."}
        return _call(turn, "task", task)
    return _offer(turn, desk)


def _offer(turn: Turn, desk: Desk) -> AIMessage:
    last = desk.offers[-1] if desk.offers else None
    report = _offered(last) if last else None
    if last is None or report is None:
        assert desk.draft is not None
        return _publish(turn, desk, after_critique(desk.draft, desk.critique, desk.notes))
    answer = document_in(last.text) or {}
    if not last.failed:
        return _call(turn, "Report", report.model_dump(mode="json"))
    if len(desk.offers) >= _MOST_OFFERS:
        unpublished = [*report.open_questions, f"The report was not published: {last.text[:300]}"]
        return _call(turn, "Report", report.model_copy(update={"open_questions": unpublished}).model_dump(mode="json"))
    if "rejected" in answer:
        return _publish(turn, desk, after_rejection(report, str(answer["rejected"])))
    return _publish(turn, desk, after_problems(report, answer.get("problems", []), desk.notes))


def _offered(offer: Answered) -> Report | None:
    try:
        return Report.model_validate(offer.args["report"])
    except ValidationError:
        return None


def _publish(turn: Turn, desk: Desk, report: Report) -> AIMessage:
    return _call(turn, "publish_report", {"artifact": desk.brief["artifact"], "report": report.model_dump(mode="json")})


def _plan(turn: Turn, desk: Desk) -> AIMessage:
    most = number_in(system_text(turn.messages), r"at most (\d+) sub-questions", 5)
    todos = [{"content": item.todo, "status": "pending"} for item in planned(desk.brief)[:most]]
    return _call(turn, "write_todos", {"todos": todos})


def planned(brief: dict[str, Any]) -> list[SubQuestion]:
    """Splits a brief into sub-questions: its aspects, or the outline that a refresh starts from.

    One that compares or explains needs the answers of those before it that do not.
    """
    if brief.get("previous"):
        headings = brief["previous"]["report"]["outline"]
        texts = [str(heading).partition(": ")[2] or str(heading) for heading in headings]
    else:
        texts = [str(aspect) for aspect in brief.get("scope") or [brief["question"]]]
    numbered = [(f"q{n}", text) for n, text in enumerate(texts, 1)]
    alone = [number for number, text in numbered if len(texts) == 1 or not _DEPENDS.search(text)]
    return [
        SubQuestion(number, text, () if number in alone else tuple(each for each in alone if each < number))
        for number, text in numbered
    ]


def _delegate(turn: Turn, desk: Desk, batch: Sequence[SubQuestion]) -> AIMessage:
    most = number_in(system_text(turn.messages), r"at most (\d+) at once", 3)
    running = list(batch)[:most]
    tasks = [
        turn.call("task", {"subagent_type": "search", "description": _description(desk, item)}, place)
        for place, item in enumerate(running, 1)
    ]
    return AIMessage("", tool_calls=[turn.call("write_todos", {"todos": _todos(desk, running)}), *tasks])


def _todos(desk: Desk, running: Sequence[SubQuestion]) -> list[dict[str, str]]:
    def status(item: SubQuestion) -> str:
        return "completed" if item.id in desk.summaries else "in_progress" if item in running else "pending"

    return [{"content": item.todo, "status": status(item)} for item in desk.plan]


def _description(desk: Desk, item: SubQuestion) -> str:
    preferences = desk.brief.get("preferences", {})
    known = [
        f"{each}: {'; '.join(claim for _, claim in desk.summaries[each].claims) or 'unresolved'}" for each in item.after
    ]
    lines = {
        f"Sub-question {item.id}": item.text,
        "Question": desk.brief["question"],
        "Audience": desk.brief.get("audience", ""),
        "Trusted domains": ", ".join(preferences.get("trusted_domains") or ()),
        "Blocked domains": ", ".join(preferences.get("blocked_domains") or ()),
        "Known sources": ", ".join(_previous_urls(desk.brief, item.id)),
        "Known so far": " | ".join(known),
    }
    return "\n".join(f"{name}: {' '.join(value.split())}" for name, value in lines.items() if value)


def _previous_urls(brief: dict[str, Any], sub_question: str) -> list[str]:
    if not brief.get("previous"):
        return []
    report = brief["previous"]["report"]
    cited = {s for finding in report["findings"] if finding["sub_question"] == sub_question for s in finding["sources"]}
    return [source["url"] for source in report["sources"] if source["id"] in cited]


def _read(turn: Turn, desk: Desk) -> AIMessage:
    reads = [turn.call("read_file", {"file_path": path}, place) for place, path in enumerate(desk.unread, 1)]
    return AIMessage("", tool_calls=[turn.call("write_todos", {"todos": _todos(desk, ())}), *reads])


def _desk(messages: Sequence[BaseMessage]) -> Desk:
    known = progress(messages)
    summaries = {sub_question: _summary(text) for sub_question, text in known["answers"].items()}
    reads = {str(each.args["file_path"]): each for each in calls(messages, "read_file")}
    paths = sorted({path for summary in summaries.values() for path in summary.notes})
    drafts = [each for each in calls(messages, "write_file") if each.args.get("file_path") == DRAFT and not each.failed]
    return Desk(
        brief=known["brief"],
        plan=sub_questions(known["todos"]),
        summaries=summaries,
        notes=_notes([reads[path] for path in paths if path in reads]),
        unread=[path for path in paths if path not in reads],
        draft=Report.model_validate_json(drafts[-1].args["content"]) if drafts else None,
        critique=critique_in(messages),
        offers=[each for each in calls(messages, "publish_report") if each.is_answered],
    )


def _summary(text: str) -> Summary:
    """Reads what a search subagent answered; one that makes no sense has resolved nothing."""
    document = document_in(text) or {"tried": [text[:200]]}
    claims = [(str(line["source"]), str(line["claim"])) for line in document.get("summary", ())]
    return Summary(tuple(document.get("notes", ())), tuple(claims), tuple(document.get("tried", ())))


def _notes(reads: Sequence[Answered]) -> list[Note]:
    found = []
    for _, document in given(reads):
        try:
            found.append(Note.model_validate(document))
        except ValidationError:
            continue
    return found


def _criticised(messages: Sequence[BaseMessage]) -> bool:
    return any(each.args.get("subagent_type") == "critique" and each.is_answered for each in calls(messages, "task"))


def _brief(desk: Desk) -> Brief:
    return Brief.model_validate({name: value for name, value in desk.brief.items() if name in Brief.model_fields})


def _call(turn: Turn, tool: str, args: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=[turn.call(tool, args)])
