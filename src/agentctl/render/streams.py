"""Events of a run for people, pipes and programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps, timestamp
from agentctl.codec.messages import message_of, messages_in
from agentctl.codec.secrets import hide_secrets
from agentctl.records.messages import Message
from agentctl.records.streams import StreamEvent
from agentctl.render.clean import clean, cut
from agentctl.render.conversation import MAX_TEXT
from agentctl.render.messages import ROLE_STYLE, call_text, message_document
from agentctl.render.words import count, names
from agentctl.stores.reading.layout import INTERRUPT

if TYPE_CHECKING:
    from rich.text import Text

Fragment = tuple["Text", str]
"""A text and what ends it: a line's end, or nothing where the line goes on."""

LABEL = 9
_INDENT = " " * LABEL
_MIN_ROOM = 24
_MODE_STYLE = {"updates": "green", "values": "blue", "messages": "", "custom": "magenta", "debug": "dim"}


class EventLines:
    """Makes lines of events; the pieces of a message go on on one line as they come.

    Of several messages that come at the same time one is shown, and the others after it, each whole.

    Args:
        width: The terminal's columns.
    """

    def __init__(self, width: int) -> None:
        self._room = max(width - LABEL, _MIN_ROOM)
        self._live: str | None = None
        self._held: dict[str, list[StreamEvent]] = {}

    def of(self, event: StreamEvent) -> Iterator[Fragment]:
        """Yields what an event adds to the screen."""
        if event.piece:
            yield from self._piece(event)
            return
        yield from self._end_line()
        for line in self._lines(event):
            yield line, "\n"

    def end(self) -> Iterator[Fragment]:
        """Yields what ends a line that goes on, and messages that were held back."""
        yield from self._end_line()
        held, self._held = self._held, {}
        for pieces in held.values():
            yield from self._whole(pieces)

    def _piece(self, event: StreamEvent) -> Iterator[Fragment]:
        if self._live not in (None, event.piece):
            self._held.setdefault(event.piece, []).append(event)
            return
        if self._live is None:
            self._live = event.piece
            earlier = self._held.pop(event.piece, [])
            yield self._head(event), ""
            for one in earlier:
                yield _piece_text(one), ""
        yield _piece_text(event), ""
        if event.is_last:
            yield from self._end_line()
            for done in [key for key, pieces in self._held.items() if pieces[-1].is_last]:
                yield from self._whole(self._held.pop(done))

    def _whole(self, pieces: Sequence[StreamEvent]) -> Iterator[Fragment]:
        head = self._head(pieces[0])
        for piece in pieces:
            head.append_text(_piece_text(piece))
        yield head, "\n"

    def _end_line(self) -> Iterator[Fragment]:
        if self._live is not None:
            self._live = None
            yield _text(""), "\n"

    def _head(self, event: StreamEvent) -> Text:
        head = _text(f"{event.mode:<{LABEL}}", _MODE_STYLE[event.mode])
        return head.append(hide_secrets(clean(event.node)), "cyan").append("  ") if event.node else head

    def _lines(self, event: StreamEvent) -> Iterator[Text]:
        head = self._head(event)
        parts = [(hide_secrets(clean(label)), _shown(text), style) for label, text, style in _parts(event)]
        room = self._room - (len(head) - LABEL)
        if len(parts) == 1 and len(parts[0][0]) < room // 2:
            label, text, style = parts[0]
            lines = self._fitted(event, text, room - len(label))
            yield head.append(label, style).append(lines[0])
            yield from (_text(_INDENT + line) for line in lines[1:])
            return
        head.rstrip()
        yield head
        for label, text, style in parts:
            lines = self._fitted(event, text, self._room - len(label))
            yield _text(_INDENT).append(label, style).append(lines[0])
            yield from (_text(_INDENT + line) for line in lines[1:])

    def _fitted(self, event: StreamEvent, text: str, room: int) -> list[str]:
        """Returns a value on one line, cut; a message, which is there to be read, on as many as it takes."""
        if event.mode != "messages":
            return [cut(text, max(room, _MIN_ROOM))]
        lines: list[str] = []
        for line in (text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}...").splitlines():
            width = self._room if lines else max(room, _MIN_ROOM)
            first, *rest = textwrap.wrap(line, width, break_on_hyphens=False) or [""]
            lines += [first, *textwrap.wrap(" ".join(rest), self._room, break_on_hyphens=False)]
        return lines or [""]


def _shown(text: str) -> str:
    return hide_secrets(clean(text, keep_newlines=True))


def event_row(event: StreamEvent) -> Sequence[str | None]:
    """Returns mode, at, ns, node, data as JSON."""
    return event.mode, timestamp(event.at), event.ns, event.node, dumps(_data(event))


def event_object(event: StreamEvent) -> dict[str, object]:
    """Returns an event as an object."""
    return {
        "mode": event.mode,
        "at": timestamp(event.at),
        "ns": event.ns,
        "node": event.node,
        "piece": bool(event.piece),
        "is_last": event.is_last,
        "data": _data(event),
    }


def _data(event: StreamEvent) -> object:
    """Returns the data of an event: of a message its common form, with the parts of calls where it is a piece."""
    message = message_of(event.data) if event.mode == "messages" else None
    if message is None:
        return event.data
    if not event.piece:
        return message_document(message)
    return {**(message_document(message) or {}), "tool_call_chunks": list(_call_chunks(message))}


def _parts(event: StreamEvent) -> Iterator[tuple[str, str, str]]:
    """Yields (label, text, style) of what an event says, one at least."""
    data = event.data
    match event.mode:
        case "messages" if (message := message_of(data)) is not None:
            yield from _message_parts(message)
        case "updates" | "values" if isinstance(data, Mapping) and data:
            for channel, value in data.items():
                if channel == INTERRUPT:
                    yield from _asked_parts(value)
                    continue
                yield from _channel_parts(str(channel), value, whole=event.mode == "values")
        case "updates" if data is None or data == {}:
            yield "", "nothing", ""
        case "debug" if isinstance(data, Mapping):
            yield from _debug_parts(data)
        case _:
            yield "", data if isinstance(data, str) else dumps(data), ""


def _asked_parts(questions: object) -> Iterator[tuple[str, str, str]]:
    for asked in questions if isinstance(questions, list) else []:
        yield f"asks {asked['id']}  ", dumps(asked["value"]), "yellow"


def _channel_parts(channel: str, value: object, *, whole: bool) -> Iterator[tuple[str, str, str]]:
    messages = messages_in(value)
    if not messages:
        yield f"{channel} ", value if isinstance(value, str) else dumps(value), "bold"
    elif whole:
        last = " ".join(label + text for label, text, _ in _message_parts(messages[-1]))
        yield f"{channel} ", f"{count(len(messages), 'message')}, the last: {last}", "bold"
    else:
        for message in messages:
            yield from _message_parts(message)


def _message_parts(message: Message) -> Iterator[tuple[str, str, str]]:
    style = ROLE_STYLE.get(message.role, "")
    who = f"{message.role} {message.name}" if message.role == "tool" and message.name else message.role
    if message.text or not message.tool_calls:
        yield f"{who}: ", message.text, style
    for call in message.tool_calls:
        yield f"{who} calls ", call_text(call), style


def _debug_parts(data: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    kind, payload = str(data.get("type")), data.get("payload")
    told = payload if isinstance(payload, Mapping) else {}
    label = f"step {data.get('step')} {kind.replace('_', ' ')}  "
    match kind:
        case "checkpoint":
            nodes = told.get("next")
            config = told.get("config")
            where = config.get("configurable", {}) if isinstance(config, Mapping) else {}
            short = str(where.get("checkpoint_id", ""))[-8:]
            yield label, f"{short}  next: {names(nodes) if isinstance(nodes, list) else '-'}", ""
        case "task":
            yield label, dumps(told.get("input")), ""
        case "task_result" if told.get("error"):
            yield label, f"failed: {dumps(told.get('error'))}", "red"
        case "task_result" if told.get("interrupts"):
            yield from ((label + each, text, style) for each, text, style in _asked_parts(told.get("interrupts")))
        case _:
            yield label, dumps(told.get("result", told)), ""


def _piece_text(event: StreamEvent) -> Text:
    """Returns the text of a piece; a call begins with its name, and its arguments follow as they come."""
    message = message_of(event.data)
    if message is None:
        return _text("")
    said = message.text
    for chunk in _call_chunks(message):
        said += f" -> {chunk['name']} " if chunk.get("name") else ""
        said += str(chunk.get("args") or "")
    return _text(hide_secrets(clean(said, keep_newlines=True)).replace("\n", "\n" + _INDENT), ROLE_STYLE.get("ai", ""))


def _call_chunks(message: Message) -> list[Mapping[str, object]]:
    chunks = message.raw.get("tool_call_chunks") if message.raw else None
    return [chunk for chunk in chunks if isinstance(chunk, Mapping)] if isinstance(chunks, list) else []


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style) if not style else Text().append(text, style)
