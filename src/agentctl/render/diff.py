"""A diff for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps
from agentctl.records.copies import Place
from agentctl.records.diffs import ABSENT, Change, Diff, MessageDiff, ToolCallDiff
from agentctl.render.clean import cut
from agentctl.render.machine import document
from agentctl.render.messages import call_document, call_text, message_document, message_text
from agentctl.render.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

LABEL = 11


def human(diff: Diff, width: int) -> Iterable[RenderableType]:
    """Yields what differs, left lines with `-`, right with `+`: messages, tool calls, reply, state, interrupts."""
    common = f"common ancestor {diff.common}" if diff.common else "no common ancestor"
    yield f"- {diff.left.target}\n+ {diff.right.target}\n{common}, {count(diff.n_common_messages, 'message')} shared"
    if diff.equal:
        yield "equal"
        return
    yield from message_lines(diff.messages, width)
    yield from call_lines(diff.tool_calls, width)
    if diff.reply:
        yield from change_lines("reply", [diff.reply], width, with_path=False)
    yield from change_lines("state", diff.state, width)
    yield from change_lines("interrupt", diff.interrupts, width)


def message_lines(messages: Sequence[MessageDiff], width: int) -> Iterable[Text]:
    """Yields one or two lines a differing message."""
    label = "message"
    for entry in messages:
        if entry.side in ("left", "both") and entry.left:
            yield _line(label, "-", f"{entry.left.role}: {message_text(entry.left)}", width)
            label = ""
        if entry.side in ("right", "both") and entry.right:
            yield _line(label, "+", f"{entry.right.role}: {message_text(entry.right)}", width)
            label = ""


def call_lines(calls: Sequence[ToolCallDiff], width: int) -> Iterable[Text]:
    """Yields one line a call that only one side made, and one a changed argument."""
    label = "tool call"
    for entry in calls:
        if entry.side == "both" and entry.right:
            for change in entry.changes:
                text = f"{entry.right.name} {change.path}: {_value(change.left)} -> {_value(change.right)}"
                yield _line(label, "~", text, width)
                label = ""
            continue
        call = entry.left or entry.right
        if call:
            yield _line(label, "-" if entry.side == "left" else "+", call_text(call), width)
            label = ""


def change_lines(label: str, changes: Sequence[Change], width: int, *, with_path: bool = True) -> Iterable[Text]:
    """Yields the two sides of each change, an absent side left out."""
    for change in changes:
        path = f"{change.path}: " if with_path else ""
        if change.left is not ABSENT:
            yield _line(label, "-", path + _value(change.left), width)
            label = ""
        if change.right is not ABSENT:
            yield _line(label, "+", path + _value(change.right), width)
            label = ""


def _line(label: str, sign: str, text: str, width: int) -> Text:
    from rich.text import Text

    style = {"-": "red", "+": "green"}.get(sign, "yellow")
    return Text().append(f"{label:<{LABEL}}", "dim").append(cut(f"{sign} {text}", max(width - LABEL, 24)), style)


def _value(value: object) -> str:
    return value if isinstance(value, str) else "absent" if value is ABSENT else dumps(value)


def plain(diff: Diff) -> Iterable[Sequence[str | int | None]]:
    """Yields kind, sign, path or name, left, right; whole values as JSON."""
    for entry in diff.messages:
        sign = {"left": "-", "right": "+", "both": "~"}[entry.side]
        yield "message", sign, None, _json(message_document(entry.left)), _json(message_document(entry.right))
    for call in diff.tool_calls:
        sign = {"left": "-", "right": "+", "both": "~"}[call.side]
        name = (call.left or call.right).name if (call.left or call.right) else None  # type: ignore[union-attr]
        yield "tool_call", sign, name, _json(call_document(call.left)), _json(call_document(call.right))
    for kind, changes in (
        ("reply", [diff.reply] if diff.reply else []),
        ("state", diff.state),
        ("interrupt", diff.interrupts),
    ):
        for change in changes:
            yield kind, "~", change.path, _side(change.left), _side(change.right)


def _json(value: object) -> str | None:
    return None if value is None else dumps(value)


def _side(value: object) -> str | None:
    return None if value is ABSENT else dumps(value)


def as_document(diff: Diff) -> dict[str, object]:
    """Returns the JSON document `agentctl.diff/1`."""
    return document("diff", body(diff))


def body(diff: Diff) -> dict[str, object]:
    """Returns a diff as an object, for a document of its own or inside another."""
    return {
        "left": place(diff.left),
        "right": place(diff.right),
        "common": diff.common,
        "equal": diff.equal,
        "messages": [
            {
                "side": entry.side,
                "left": message_document(entry.left),
                "right": message_document(entry.right),
                "changes": [change(c) for c in entry.changes],
            }
            for entry in diff.messages
        ],
        "tool_calls": [
            {
                "side": entry.side,
                "left": call_document(entry.left),
                "right": call_document(entry.right),
                "changes": [change(c) for c in entry.changes],
            }
            for entry in diff.tool_calls
        ],
        "reply": change(diff.reply) if diff.reply else None,
        "state": [change(c) for c in diff.state],
        "interrupts": [change(c) for c in diff.interrupts],
    }


def change(entry: Change) -> dict[str, object]:
    """Returns a change as an object; an absent side is `{"$absent": true}`."""
    return {"path": entry.path, "left": entry.left, "right": entry.right}


def place(where: Place) -> dict[str, object]:
    """Returns a place as an object: store, thread, id, target."""
    return {"store": where.store, "thread": where.thread, "id": where.id, "target": where.target}
