"""One line that says what happened in a step, from the writes that made its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from agentctl.codec import jsontext
from agentctl.codec.inert import TYPE, plain
from agentctl.codec.messages import coerced_messages, message_of, messages_in
from agentctl.codec.tree import Typed
from agentctl.codec.values import unpack, unpack_last
from agentctl.errors import DecodeError
from agentctl.records.messages import Message, ToolCall
from agentctl.records.rows import Stored, WriteRow
from agentctl.records.threads import Task
from agentctl.stores.reading import layout
from agentctl.stores.reading.taskrows import TaskRows
from agentctl.stores.reading.taskview import readable

_MESSAGES: Final = "messages"
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_MAX_TEXT: Final = 80
_MAX_LINE: Final = 400
_LONG_LIST: Final = 10
"""Of a list of more messages, such as a whole window written anew, only the newest is told."""
_LIST_HEADS: Final = frozenset({*(bytes([0x90 + n]) for n in range(_LONG_LIST + 1, 16)), b"\xdc", b"\xdd"})
"""How packed lists of more than `_LONG_LIST` items begin: with their length, or with the width of its number."""
_BESIDE_TEXT: Final = ("tool_calls", "invalid_tool_calls", "additional_kwargs")
"""Fields in which a message asks for tools."""
_TELLING_KEYS: Final[tuple[str, ...]] = (
    "error",
    "status",
    "state",
    "decision",
    "result",
    "outcome",
    "verdict",
    "answer",
    "ok",
)
"""Fields of a tool result that say most, best first; after them numbers, then texts that are no ids."""


def of_writes(makers: Iterable[TaskRows]) -> str:
    """Returns what a step's tasks wrote: calls, results, replies, then other channels with small values."""
    return _line([part for task in makers for write in task.output for part in _parts(write)])


def of_input(tasks: Iterable[TaskRows]) -> str:
    """Returns the input that a run was given, from the rows of the task that takes it in."""
    return of_writes(task for task in tasks if task.path.node == layout.START)


def of_change(channel: str, before: object, after: object) -> str:
    """Returns what an update changed in one channel, from its inert values before and after."""
    old = {message.id: message for message in messages_in(before) if message.id}
    new = messages_in(after)
    if not new:
        return f"{channel} = {short(after)}"
    kept = {message.id for message in new}
    parts = [_message(message) for message in new if message.id is None or not _same(old.get(message.id), message)]
    removed = [f"removed {short(message.text)}" for message in old.values() if message.id not in kept]
    return _line([*parts, *removed]) or f"{channel} unchanged"


def of_tasks(tasks: Iterable[Task]) -> str:
    """Returns what a step's tasks left open: errors and questions."""
    parts: list[str] = []
    for task in tasks:
        if task.error is not None:
            parts.append(f"{task.name} failed: {_cut(task.error)}{_after_error(task)}")
        parts += [f"asks: {_question(interrupt.value)}" for interrupt in task.interrupts]
    return _line(dict.fromkeys(parts))


def _after_error(task: Task) -> str:
    if task.handled_by is not None:
        return f", handled by {task.handled_by}"
    return ", then finished" if task.finished else ""


def short(value: object) -> str:
    """Returns a value in a few words: small ones whole, others by what they are."""
    match value:
        case str():
            return _quoted(_cut(value))
        case None | bool() | float():
            return json.dumps(value)
        case int():
            return str(value)
        case {"$unread": int(n_bytes)}:
            return f"({n_bytes:,} bytes)"
        case {"$type": str(), "$value": str() | int() | float() as inner}:
            return str(inner)
        case {"$type": str(name)}:
            return name.rpartition(".")[2]
        case Mapping():
            text = json.dumps(value, ensure_ascii=False, default=str)
            return text if len(text) <= _MAX_TEXT else _keys(value)
        case list():
            text = json.dumps(value, ensure_ascii=False, default=str)
            return text if len(text) <= _MAX_TEXT else f"[{len(value)} items]"
        case _:
            return _cut(str(value))


def _parts(write: WriteRow) -> Sequence[str]:
    """Returns what one write says: nothing, or one text, or one a message."""
    channel = write.channel
    if not (layout.is_state_channel(channel) or channel == layout.END):
        return ()
    if newest := _newest_message(write.value):
        return (newest,)
    try:
        return _told(_tree(write), channel)
    except DecodeError as error:
        return (f"{channel}: {error.message}",)


def _told(tree: object, channel: str) -> Sequence[str]:
    """Returns what an unpacked value says.

    Raises:
        DecodeError: It is nested too deeply to be shown.
    """
    if texts := _messages(tree, channel):
        return texts
    if channel == layout.END:
        return (f"returns {short(plain(tree))}",)
    if type(tree) is int:
        return (f"{channel} = {tree}",)
    return (f"{channel} = {short(_only_update(plain(tree)))}",) if tree or channel != _MESSAGES else ()


def _newest_message(value: Stored | None) -> str:
    """Returns the end of a long list of messages, without unpacking the rest of it; '' for anything else."""
    if value is None or value.type != "msgpack" or value.data[:1] not in _LIST_HEADS:
        return ""
    try:
        total, last = unpack_last(value.data)
    except DecodeError:
        return ""
    text = _typed_message(last) if total > _LONG_LIST else ""
    return f"({total - 1} messages before), {text}" if text else ""


def _tree(write: WriteRow) -> object:
    """Returns the unpacked value of a write, or a stand-in where it was not read or cannot be."""
    if write.value is None:
        return readable(write)
    try:
        return unpack(write.value)
    except DecodeError:
        return readable(write)


def _messages(tree: object, channel: str) -> Sequence[str]:
    """Returns what the messages say that a write holds; [] where it holds something else.

    Messages are looked at as they were unpacked: making their whole content inert would cost most of a history's time.
    """
    if tree is None or isinstance(tree, int | float):
        return []
    items = tree if isinstance(tree, list) else [tree]
    texts = [_typed_message(item) for item in items]
    if texts and all(texts):
        return texts
    inert = plain(tree)
    return [_message(m) for m in (coerced_messages(inert) if channel == _MESSAGES else messages_in(inert))]


def _keys(value: Mapping[str, object]) -> str:
    """Returns the keys of a mapping that is too long to be shown, or how many there are."""
    text = f"{{{', '.join(map(str, value))}}}"
    return text if len(text) <= _MAX_TEXT else f"{{{len(value)} fields}}"


def _typed_message(item: object) -> str:
    """Returns what an unpacked message says, '' for anything else."""
    if not (isinstance(item, Typed) and item.code >= 0 and isinstance(item.payload, dict)):
        return ""
    fields = item.payload
    kind, text = fields.get("type"), fields.get("content")
    if kind in ("human", "ai") and type(text) is str and not any(map(fields.get, _BESIDE_TEXT)):
        # Most messages are text and nothing else, and need no record made of them.
        return short(text) if kind == "human" else f"reply {short(text)}"
    message = message_of({TYPE: item.type_name, **fields})
    return _message(message) if message is not None else ""


def _only_update(value: object) -> object:
    """Returns the value inside an Overwrite."""
    match value:
        case {"__overwrite__": inner}:
            return inner
        case {"$type": "langgraph.types.Overwrite", "value": inner}:
            return inner
        case _:
            return value


def _message(message: Message) -> str:
    match message.role:
        case "ai" if message.tool_calls:
            return "calls " + ", ".join(map(_call, message.tool_calls))
        case "ai":
            return f"reply {short(message.text)}"
        case "tool":
            return _result(message)
        case "remove":
            return f"removes message {message.id}"
        case "human":
            return short(message.text)
        case role:
            return f"{role}: {short(message.text)}"


def _call(call: ToolCall) -> str:
    args = call.args
    if isinstance(args, Mapping):
        small = [_argument(value) for value in args.values()]
        return f"{call.name}({', '.join(small)})"
    return f"{call.name}({_cut(str(args))})"


def _argument(value: object) -> str:
    return _cut(value, 30) if isinstance(value, str) else short(value)


def _result(message: Message) -> str:
    name = message.name or "tool"
    if message.status == "error":
        return f"{name} failed: {_cut(message.text)}"
    try:
        value = jsontext.parse(message.text)
    except ValueError:
        value = message.text
    return f"{name} -> {_telling(value)}"


def _telling(value: object) -> str:
    """Returns the field of a tool result that says most, with its name."""
    if not isinstance(value, Mapping) or not value:
        return short(value)
    scalars = {str(key): item for key, item in value.items() if isinstance(item, str | int | float | bool)}
    told = (key for key in _TELLING_KEYS if key in scalars)
    numbers = (key for key, item in scalars.items() if not isinstance(item, str))
    texts = (key for key in scalars if not key.lower().endswith("id"))
    key = next(chain[str](told, numbers, texts, scalars), None)
    return f"{key} {short(scalars[key])}" if key is not None else short(value)


def _question(value: object) -> str:
    """Returns a question in a few words; a request to approve tool calls names them."""
    match value:
        case {"action_requests": list(requests)}:
            names = [str(r.get("name") or r.get("action")) for r in requests if isinstance(r, Mapping)]
            return "approve " + ", ".join(names)
        case _:
            return short(value)


def _same(old: Message | None, new: Message) -> bool:
    return old is not None and old.raw == new.raw


def _cut(text: str, length: int = _MAX_TEXT) -> str:
    """Returns text with every white space a single blank, cut to a length."""
    if len(text) <= length and "  " not in text and text.isprintable() and text == text.strip():
        return text
    # The beginning is enough unless it is mostly white space; texts can be long, and most of a long one is cut.
    n_read = length + 16
    start = " ".join(text[:n_read].split())
    while len(start) <= length and n_read < len(text):
        n_read *= 4
        start = " ".join(text[:n_read].split())
    return start if len(start) <= length else start[: length - 1] + "…"


def _line(parts: Iterable[str]) -> str:
    return _cut(", ".join(filter(None, parts)), _MAX_LINE)
