"""A branch as a conversation, for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import timestamp
from agentctl.records.messages import ConversationTurn, Message
from agentctl.records.threads import Conversation
from agentctl.render.clean import clean
from agentctl.render.machine import document
from agentctl.render.messages import ROLE_STYLE, call_text, message_document
from agentctl.render.words import age, count, short_ids

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_TEXT = 600
"""Characters of a message shown before it is cut, its whole length said."""


def human(
    talk: Conversation, now: datetime, width: int, *, full: bool, ids: Iterable[str] = ()
) -> Iterable[RenderableType]:
    """Yields each message with its number, time, role and checkpoint; each call beside its result, shown once.

    Short ids are unique among `ids`.
    """
    from rich.text import Text

    shorts = short_ids({*ids, *(turn.checkpoint for turn in talk.turns)})
    where = f"{count(talk.n_total, 'message')} in channel {talk.channel}" if talk.channel else "no channel of messages"
    yield f"{talk.thread}  {talk.store}  {where}"
    if len(talk.turns) < talk.n_total:
        yield Text(f"{len(talk.turns)} shown; all: --all", "dim")
    beside: set[int] = set()
    for turn in talk.turns:
        if id(turn.message) in beside:
            continue
        beside.update(id(answer) for answer in turn.answers if answer is not None)
        head = f"{turn.number:>4}  {age(turn.at, now):>4}  {turn.message.role:<6}  {shorts[turn.checkpoint]}  "
        for i, (text, style) in enumerate(_turn_lines(turn, max(width - len(head), 24), full)):
            yield Text().append(head if i == 0 else " " * len(head)).append(text, style)


def _turn_lines(turn: ConversationTurn, width: int, full: bool) -> Iterable[tuple[str, str]]:
    style = ROLE_STYLE.get(turn.message.role, "")
    if turn.message.text or not turn.message.tool_calls:
        yield from ((line, style) for line in _wrap(_body(turn.message, full), width))
    for call, answer in zip(turn.message.tool_calls, turn.answers, strict=False):
        yield from _marked("-> ", _cut(call_text(call), full), "cyan", width)
        if answer is None:
            yield "   unanswered", "red"
        else:
            yield from _marked("<- ", _body(answer, full), "red" if answer.status == "error" else "magenta", width)


def _marked(mark: str, text: str, style: str, width: int) -> Iterable[tuple[str, str]]:
    for i, line in enumerate(_wrap(text, max(width - len(mark), 24))):
        yield (mark if i == 0 else " " * len(mark)) + line, style


def _body(message: Message, full: bool) -> str:
    return _cut(clean(message.text, keep_newlines=True), full)


def _cut(text: str, full: bool) -> str:
    if full or len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}... ({len(text):,} characters; whole: --full)"


def _wrap(text: str, width: int) -> list[str]:
    import textwrap

    lines: list[str] = []
    for line in text.splitlines():
        lines += textwrap.wrap(line, width, break_on_hyphens=False, drop_whitespace=True) or [""]
    return lines or [""]


def plain(talk: Conversation) -> Iterable[Sequence[str | int | None]]:
    """Yields number, at, role, checkpoint, name, text; a call is a row of role `call` with its answer last."""
    for turn in talk.turns:
        yield turn.number, timestamp(turn.at), turn.message.role, turn.checkpoint, turn.message.name, turn.message.text
        for call, answer in zip(turn.message.tool_calls, turn.answers, strict=False):
            yield (
                turn.number,
                timestamp(turn.at),
                "call",
                turn.checkpoint,
                call_text(call),
                answer.text if answer else None,
            )


def as_document(talk: Conversation) -> dict[str, object]:
    """Returns the JSON document `agentctl.messages/1`."""
    return document(
        "messages",
        {
            "store": talk.store,
            "thread": talk.thread,
            "ns": talk.ns,
            "id": talk.tip,
            "channel": talk.channel,
            "items": [_turn(turn) for turn in talk.turns],
            "n_total": talk.n_total,
            "truncated": len(talk.turns) < talk.n_total,
        },
    )


def _turn(turn: ConversationTurn) -> dict[str, object]:
    return {
        "number": turn.number,
        "checkpoint": turn.checkpoint,
        "at": timestamp(turn.at),
        "message": message_document(turn.message),
        "answers": [message_document(answer) for answer in turn.answers],
    }
