"""A diff for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps
from agentctl.records.copies import Place
from agentctl.records.diffs import ABSENT, Change, Diff, MessageDiff, ToolCallDiff
from agentctl.render import views
from agentctl.render.machine import document
from agentctl.render.messages import call_document, call_text, message_document, message_text
from agentctl.render.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

LABEL = 11


def human(diff: Diff, width: int) -> Iterable[RenderableType]:
    """Yields what differs, left lines with `-`, right with `+`.

    First in the workflow's words, then messages, tool calls, reply, state, interrupts; what the workflow's words say in
    full already is not said twice.
    """
    common = f"common ancestor {diff.common}" if diff.common else "no common ancestor"
    yield f"- {diff.left.target}\n+ {diff.right.target}\n{common}, {count(diff.n_common_messages, 'message')} shared"
    if diff.equal:
        yield "equal"
        return
    label = views.label_width(diff.view, LABEL)
    yield from views.change_lines(diff.view, width, label)
    yield from message_lines(diff.messages, width, label)
    yield from call_lines(diff.tool_calls, width, label)
    if diff.reply and not reply_is_told(diff):
        yield from change_lines("reply", [diff.reply], width, label, with_path=False)
    yield from state_lines(diff, width, label)
    yield from change_lines("interrupt", diff.interrupts, width, label)


def reply_is_told(diff: Diff) -> bool:
    """Tells whether a field of the view says how the final reply differs."""
    fields = [change.fields[0] for change in diff.view if change.key is None]
    return diff.reply is not None and any(
        (field.left.value if field.left else ABSENT, field.right.value if field.right else ABSENT)
        == (diff.reply.left, diff.reply.right)
        for field in fields
    )


def state_lines(diff: Diff, width: int, label: int) -> Iterable[Text]:
    """Yields changes of the state but for those that the view tells: of its fields, and of items of its lists."""
    fields = [change.path for change in diff.view if change.path and change.key is None]
    lists = dict.fromkeys(change.path for change in diff.view if change.path and change.key is not None)
    untold = [entry for entry in diff.state if not any(_is_inside(entry.path, path) for path in (*fields, *lists))]
    yield from change_lines("state", untold, width, label)
    heading = "" if untold else "state"
    for path in lists:
        if n_told := sum(_is_inside(entry.path, path) for entry in diff.state):
            yield views.signed_line(heading, "~", f"{path}: {count(n_told, 'change')}, by item above", width, label)
            heading = ""


def _is_inside(path: str, whole: str) -> bool:
    return path == whole or path.startswith((f"{whole}.", f"{whole}["))


def message_lines(messages: Sequence[MessageDiff], width: int, column: int = LABEL) -> Iterable[Text]:
    """Yields one or two lines a differing message."""
    label = "message"
    for entry in messages:
        if entry.side in ("left", "both") and entry.left:
            yield views.signed_line(label, "-", f"{entry.left.role}: {message_text(entry.left)}", width, column)
            label = ""
        if entry.side in ("right", "both") and entry.right:
            yield views.signed_line(label, "+", f"{entry.right.role}: {message_text(entry.right)}", width, column)
            label = ""


def call_lines(calls: Sequence[ToolCallDiff], width: int, column: int = LABEL) -> Iterable[Text]:
    """Yields one line a call that only one side made, and one a changed argument."""
    label = "tool call"
    for entry in calls:
        if entry.side == "both" and entry.right:
            for change in entry.changes:
                text = f"{entry.right.name} {change.path}: {_value(change.left)} -> {_value(change.right)}"
                yield views.signed_line(label, "~", text, width, column)
                label = ""
            continue
        call = entry.left or entry.right
        if call:
            yield views.signed_line(label, "-" if entry.side == "left" else "+", call_text(call), width, column)
            label = ""


def change_lines(
    label: str, changes: Sequence[Change], width: int, column: int = LABEL, *, with_path: bool = True
) -> Iterable[Text]:
    """Yields the two sides of each change, an absent side left out."""
    for change in changes:
        path = f"{change.path}: " if with_path else ""
        if change.left is not ABSENT:
            yield views.signed_line(label, "-", path + _value(change.left), width, column)
            label = ""
        if change.right is not ABSENT:
            yield views.signed_line(label, "+", path + _value(change.right), width, column)
            label = ""


def _value(value: object) -> str:
    return value if isinstance(value, str) else "absent" if value is ABSENT else dumps(value)


def plain(diff: Diff) -> Iterable[Sequence[str | int | None]]:
    """Yields kind, sign, path or name, left, right; whole values as JSON, those of the view as text."""
    for told in diff.view:
        yield from views.change_plain(told)
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
        "view": [views.change_document(told) for told in diff.view],
    }


def change(entry: Change) -> dict[str, object]:
    """Returns a change as an object; an absent side is `{"$absent": true}`."""
    return {"path": entry.path, "left": entry.left, "right": entry.right}


def place(where: Place) -> dict[str, object]:
    """Returns a place as an object: store, thread, id, target."""
    return {"store": where.store, "thread": where.thread, "id": where.id, "target": where.target}
