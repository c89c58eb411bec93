"""Events as lines: what goes on on one line, what is cut, what a terminal never gets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime

from agentctl.records.streams import StreamEvent, StreamMode
from agentctl.render.streams import EventLines, event_object, event_row

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def event(mode: StreamMode, data: object, node: str = "agent", ns: str = "") -> StreamEvent:
    return StreamEvent(mode, AT, ns, node, data)


def piece(id: str, text: str, *, last: bool = False, node: str = "agent", **more: object) -> StreamEvent:
    data = {"type": "AIMessageChunk", "content": text, "id": id, **more}
    return StreamEvent("messages", AT, "", node, data, id, last)


def shown(events: Iterable[StreamEvent], width: int = 60) -> str:
    lines = EventLines(width)
    fragments = [fragment for each in events for fragment in lines.of(each)] + list(lines.end())
    return "".join(text.plain + end for text, end in fragments)


def test_pieces_go_on_on_one_line_as_they_come() -> None:
    lines = EventLines(60)
    assert [(text.plain, end) for text, end in lines.of(piece("a", "Your "))] == [
        ("messages agent  ", ""),
        ("Your ", ""),
    ]
    assert [(text.plain, end) for text, end in lines.of(piece("a", "refund"))] == [("refund", "")]
    assert [(text.plain, end) for text, end in lines.of(piece("a", ".", last=True))] == [(".", ""), ("", "\n")]


def test_messages_that_come_at_the_same_time_are_shown_one_after_the_other() -> None:
    events = [
        piece("a", "one "),
        piece("b", "1 ", node="other"),
        piece("a", "two", last=True),
        piece("b", "2", last=True, node="other"),
    ]
    assert shown(events) == "messages agent  one two\nmessages other  1 2\n"
    events = [piece("a", "one "), piece("b", "1", node="other", last=True), piece("a", "two", last=True)]
    assert shown(events) == "messages agent  one two\nmessages other  1\n"


def test_another_event_ends_the_line_and_the_message_goes_on_after_it() -> None:
    events = [piece("a", "one "), event("custom", "halfway"), piece("a", "two", last=True)]
    assert shown(events) == "messages agent  one \ncustom   agent  halfway\nmessages agent  two\n"


def test_what_was_held_back_is_not_lost_when_the_run_ends() -> None:
    assert shown([piece("a", "one"), piece("b", "two", node="other")]) == "messages agent  one\nmessages other  two\n"


def test_a_call_in_pieces_reads_as_a_call() -> None:
    chunks = [{"name": "lookup", "args": '{"id": ', "index": 0}, {"name": None, "args": '"A1"}', "index": 0}]
    events = [piece("a", "", tool_call_chunks=[chunks[0]]), piece("a", "", tool_call_chunks=[chunks[1]], last=True)]
    assert shown(events) == 'messages agent   -> lookup {"id": "A1"}\n'
    assert json.loads(str(event_row(events[0])[-1]))["tool_call_chunks"] == [chunks[0]]


def test_one_small_update_is_a_line_and_more_are_a_block_cut_to_the_width() -> None:
    assert shown([event("updates", {"route": "refunds"})]) == "updates  agent  route refunds\n"
    long = {"order": {"note": "x" * 200}, "route": "refunds"}
    block = shown([event("updates", long)]).splitlines()
    assert block[0] == "updates  agent"
    assert block[1].startswith('         order {"note": "xxx') and block[1].endswith("...") and len(block[1]) == 60
    assert block[2] == "         route refunds"


def test_messages_are_read_in_full_and_wrapped() -> None:
    text = "Your refund of 120.00 EUR is on its way, and will reach you within five working days."
    lines = shown([event("messages", {"type": "ai", "content": text})], 50).splitlines()
    assert all(len(line) <= 50 for line in lines) and len(lines) == 3
    assert " ".join(line[9:].removeprefix("agent  ai: ").strip() for line in lines) == text


def test_messages_in_an_update_and_in_values() -> None:
    said = [
        {"type": "human", "content": "hi"},
        {"type": "tool", "name": "lookup", "content": "lost", "tool_call_id": "c"},
    ]
    assert (
        shown([event("updates", {"messages": said})])
        == "updates  agent\n         human: hi\n         tool lookup: lost\n"
    )
    values = shown([event("values", {"messages": said}, node="")])
    assert values == "values   messages 2 messages, the last: tool lookup: lost\n"


def test_questions_and_debug_events() -> None:
    asked = {"__interrupt__": [{"id": "f00", "value": {"question": "sure?"}}]}
    assert shown([event("updates", asked)]) == 'updates  agent  asks f00  {"question": "sure?"}\n'
    task = {"type": "task_result", "step": 3, "payload": {"error": "down", "result": {}}}
    assert shown([event("debug", task)]) == 'debug    agent  step 3 task result  failed: "down"\n'
    asks = {"type": "task_result", "step": 3, "payload": {"interrupts": [{"id": "f00", "value": 1}]}}
    assert shown([event("debug", asks)]) == "debug    agent\n         step 3 task result  asks f00  1\n"
    checkpoint = {
        "config": {"configurable": {"checkpoint_id": "1f1ece77-1594-6d7d-bfff-4d210f58ad6c"}},
        "next": ["a", "a"],
    }
    told = {"type": "checkpoint", "step": 3, "payload": checkpoint}
    assert shown([event("debug", told, node="")]) == "debug    step 3 checkpoint  0f58ad6c  next: a x2\n"


def test_nothing_that_a_terminal_would_obey_and_no_key_is_shown() -> None:
    bad = "\x1b]0;title\x07red \x1b[31mx sk-abcdefghijklmnopqrstuvwx\x9b31m"
    events = [
        event("custom", bad),
        event("updates", {bad: bad}),
        piece("a", bad, last=True),
        event("custom", 1, node=bad),
    ]
    text = shown(events, 200)
    assert not any(character in text for character in "\x1b\x9b\x07") and "sk-abc" not in text


def test_the_document_of_a_message_has_its_common_form() -> None:
    whole = event_object(event("messages", {"type": "ai", "content": "hi", "id": "m1"}))
    assert (whole["mode"], whole["piece"], whole["is_last"]) == ("messages", False, True)
    assert isinstance(whole["data"], dict) and (whole["data"]["role"], whole["data"]["text"]) == ("ai", "hi")
    assert event_object(event("custom", [1]))["data"] == [1]
    assert event_row(event("custom", {"a": 1}, ns="x:1"))[:4] == (
        "custom",
        "2026-11-30T12:00:00.000000Z",
        "x:1",
        "agent",
    )
