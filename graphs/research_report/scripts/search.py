"""The search role by rules: search, fetch what was found, note the sentences that answer, sum up."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import ToolCall
from pydantic import ValidationError

from agentctl.testing import Turn
from graphs.research_report.figures import figures
from graphs.research_report.notes import Note, Page, Quote, as_json, origins
from graphs.research_report.scripts.reading import Answered, calls, given, human_texts, number_in, system_text
from graphs.research_report.text import asks_for_figure, sentences, without_hedges, words

# At temperature 1 this share of turns looks at the first result only.
SLIP_RATE = 0.4
_DEFINITE = "definite line"
_LONGEST_QUOTE = 600
_LINE = r"^{}: (.+)$"


def search_script(turn: Turn) -> AIMessage:
    """Plays one turn of a search subagent; where nothing that was read answers, it searches in other words."""
    if not turn.tools:
        return AIMessage("What was found so far is in the notes files.")
    searched, fetched = calls(turn.messages, "web_search"), calls(turn.messages, "fetch_page")
    if not searched:
        known = [_fetch(turn, url, n) for n, url in enumerate(_known(turn.messages), 1)]
        return AIMessage("", tool_calls=[_search(turn, 0), *known])
    if _has_just_searched(turn.messages) and (urls := _pages_to_read(turn, searched, fetched)):
        return AIMessage("", tool_calls=[_fetch(turn, url, n) for n, url in enumerate(urls)])
    notes, written = _notes(turn, fetched), calls(turn.messages, "write_file")
    is_answered = any(note.quotes for note in notes)
    if not is_answered and not written and len(searched) < _n_searches(turn):
        return AIMessage("", tool_calls=[_search(turn, len(searched))])
    if notes and not written:
        return AIMessage("", tool_calls=[_write(turn, note, n) for n, note in enumerate(notes)])
    return AIMessage(_summary(turn, notes, searched, fetched))


def _search(turn: Turn, number: int) -> ToolCall:
    limit = number_in(system_text(turn.messages), r"the first (\d+) results", 5)
    return turn.call("web_search", {"query": _queries(turn.messages)[number], "limit": limit})


def _fetch(turn: Turn, url: str, position: int) -> ToolCall:
    return turn.call("fetch_page", {"url": url}, position)


def _write(turn: Turn, note: Note, position: int) -> ToolCall:
    return turn.call("write_file", {"file_path": note.path, "content": as_json(note)}, position)


def _n_searches(turn: Turn) -> int:
    queries = _queries(turn.messages)
    return min(len(queries), number_in(system_text(turn.messages), r"at most (\d+) searches", len(queries)))


def _queries(messages: Sequence[BaseMessage]) -> list[str]:
    """Returns what to search for: the aspect, then with the words of the question, then the question alone."""
    aspect, question = _aspect(messages), _question(messages)
    return list(dict.fromkeys(_key_words(wording) for wording in (aspect, f"{aspect} {question}", question)))


def _key_words(text: str) -> str:
    kept = [word for word in re.findall(r"[\w%.-]+", text) if words(word)]
    return " ".join(dict.fromkeys(word.strip(".") for word in kept))[:300] or text[:300]


def _has_just_searched(messages: Sequence[BaseMessage]) -> bool:
    latest = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return latest is not None and any(call["name"] == "web_search" for call in latest.tool_calls)


def _pages_to_read(turn: Turn, searched: Sequence[Answered], fetched: Sequence[Answered]) -> list[str]:
    allowed = number_in(system_text(turn.messages), r"and (\d+) pages", 8) - len(fetched)
    trusted, blocked = _list(turn.messages, "Trusted domains"), _list(turn.messages, "Blocked domains")
    read = {str(each.args["url"]) for each in fetched}
    urls = list(dict.fromkeys(str(result["url"]) for result in _results(searched)))
    found = [url for url in urls if url not in read and not _is_of(url, blocked)]
    found.sort(key=lambda url: not _is_of(url, trusted))
    if turn.slips(SLIP_RATE):
        found = found[:1]
    return found[: max(allowed, 0)]


def _known(messages: Sequence[BaseMessage]) -> list[str]:
    return _list(messages, "Known sources")


def _results(searched: Sequence[Answered]) -> list[dict[str, Any]]:
    return [result for _, document in given(searched) for result in document.get("results", ())]


def _notes(turn: Turn, fetched: Sequence[Answered]) -> list[Note]:
    pages = list(
        {page.source_id: page for page in map(_page, (document for _, document in given(fetched))) if page}.values()
    )
    copies = origins(pages)
    most = number_in(system_text(turn.messages), r"at most (\d+) quotes", 2)
    made = []
    for page in pages:
        quotes = _quotes(turn.messages, page.text, most) if page.readable else []
        if page.readable and not quotes:
            continue
        alike = [
            other.source_id
            for other in pages
            if other is not page and copies[other.source_id] == copies[page.source_id]
        ]
        made.append(_note(turn, page, quotes, alike))
    return made


def _note(turn: Turn, page: Page, quotes: list[str], alike: list[str]) -> Note:
    return Note(
        source_id=page.source_id,
        sub_question=_sub_question(turn.messages),
        url=page.url,
        title=page.title,
        publisher=page.publisher,
        type=page.type,
        accessed_on=page.accessed_on,
        published_on=page.published_on,
        duplicates=sorted({*alike, *([page.duplicate_of] if page.duplicate_of else [])}),
        readable=page.readable,
        reason=page.reason,
        quotes=[Quote(quote=quote, claim=quote[:500]) for quote in quotes],
    )


def _page(document: dict[str, Any]) -> Page | None:
    try:
        return Page.model_validate(document)
    except ValidationError:
        return None


def _quotes(messages: Sequence[BaseMessage], text: str, most: int) -> list[str]:
    """Picks the sentences that answer: at least half of the aspect's words, and a figure where one is asked for."""
    aspect, question = words(_aspect(messages)), words(_question(messages))
    needed, needs_figure = max(1, math.ceil(len(aspect) / 2)), asks_for_figure(_aspect(messages))
    scored = [
        (-(2 * len(aspect & mine) + len(question & mine) + (1 if figures(sentence) else 0)), place, sentence)
        for place, sentence in enumerate(sentences(text))
        if len(sentence) <= _LONGEST_QUOTE
        and len((mine := words(sentence)) & aspect) >= needed
        and sentence.rstrip("\"'").endswith((".", "!"))
        and (figures(sentence) or not needs_figure)
    ]
    return [sentence for _, _, sentence in sorted(scored)[:most]]


def _summary(turn: Turn, notes: Sequence[Note], searched: Sequence[Answered], fetched: Sequence[Answered]) -> str:
    definite = _DEFINITE in system_text(turn.messages)
    said = [(note.source_id, quote.quote) for note in notes for quote in note.quotes]
    failed = [each for each in (*searched, *fetched) if each.failed]
    return json.dumps(
        {
            "sub_question": _sub_question(turn.messages),
            "notes": [note.path for note in notes],
            "summary": [
                {"source": source, "claim": without_hedges(quote) if definite else quote} for source, quote in said
            ],
            "unresolved": not said,
            "tried": [str(each.args.get("query", "")) for each in searched] + [each.text[:200] for each in failed],
        },
        ensure_ascii=False,
    )


def _sub_question(messages: Sequence[BaseMessage]) -> str:
    found = re.match(r"Sub-question (q\d{1,2}):", _task(messages))
    return found[1] if found else "q1"


def _aspect(messages: Sequence[BaseMessage]) -> str:
    return _line(messages, r"Sub-question q\d{1,2}")


def _question(messages: Sequence[BaseMessage]) -> str:
    return _line(messages, "Question") or _aspect(messages)


def _list(messages: Sequence[BaseMessage], name: str) -> list[str]:
    return [part.strip() for part in _line(messages, name).split(",") if part.strip()]


def _line(messages: Sequence[BaseMessage], name: str) -> str:
    found = re.search(_LINE.format(name), _task(messages), re.MULTILINE)
    return found[1].strip() if found else ""


def _task(messages: Sequence[BaseMessage]) -> str:
    return next(iter(human_texts(messages)), "")


def _is_of(url: str, domains: Sequence[str]) -> bool:
    host = urlsplit(url).hostname or ""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
