"""Reading the model answers of a branch from its rows.

A model's answer is an AI message that a task stored and that was not there before. Which call of the task gave it is
not stored, so all that is kept is their order, and what the task was given.

Source: langgraph 1.2.24, pregel/_loop.py (a task's writes are stored before they are merged into channels) and
graph/message.py (`add_messages` gives a message without an id a UUID, after that); langchain-core 1.8.3,
language_models/chat_models.py (every answer of a model has an id, `lc_run--...` where the provider gives none).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentctl.codec.messages import message_of
from agentctl.codec.tree import Typed
from agentctl.codec.values import decode, pack, plain, unpack
from agentctl.errors import DecodeError
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow, Lineage, StoredCheckpoint
from agentctl.revisions.namespaces import node_path
from agentctl.sandbox.models.given import SENT, Given, digest, given, label, said
from agentctl.sandbox.models.recording import ModelAnswer, ModelRecording, Visit
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.calls import PARENTS, lineages_below
from agentctl.stores.reading.lineage import read_lineage
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.taskrows import TaskRows, group_writes

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENTRY_CHANNELS: Final = (layout.START, layout.PREVIOUS)
"""What an entrypoint of the functional API is given."""


def record_models(
    reader: Reader, thread: str, *, tip: str | None = None, at: tuple[str, str] | None = None
) -> ModelRecording:
    """Reads the model answers of a branch, in all namespaces below it.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        tip: Last checkpoint of the branch; None for the head.
        at: Namespace and id of the checkpoint that runs start from: what ran before it is left out. None for all.

    Raises:
        NotFound: The thread or a checkpoint does not exist.
        DecodeError: Nothing of a row can be read.
    """
    return ModelRecording(reader.info.target(thread), tuple(_visits(reader, _tasks(reader, thread, tip, at))))


def answers_stored(reader: Reader, thread: str) -> Mapping[str, frozenset[str]]:
    """Returns the digests of the AI messages that each finished task of a thread's head stored, by task id."""
    return {
        ran.task.id: frozenset(one.digest for one in ran.messages if one.message.role == "ai")
        for ran in _tasks(reader, thread, None, None)
    }


@dataclass(frozen=True, slots=True)
class _Said:
    message: Message
    tree: Typed
    digest: str


@dataclass(frozen=True, slots=True)
class _Ran:
    """A finished task with the messages that it stored, in order, each once.

    `metadata` is that of the checkpoint that its step made, empty where it made none.
    """

    row: CheckpointRow
    metadata: Mapping[str, object]
    task: TaskRows
    messages: tuple[_Said, ...]

    @property
    def is_call(self) -> bool:
        return self.task.path.kind == "call"


def _tasks(reader: Reader, thread: str, tip: str | None, at: tuple[str, str] | None) -> list[_Ran]:
    root = read_lineage(reader, thread, tip=tip)
    branches = [root, *lineages_below(reader, root)]
    around = _around(branches, at)
    ran: list[_Ran] = []
    for branch in branches:
        rows = {row.id: row for row in branch.rows if at is None or row.id >= at[1] or row.id in around}
        if not rows:
            continue
        grouped = group_writes(reader.writes(thread, branch.tip.ns, rows.keys()))
        made = {row.parent: row.metadata for row in branch.rows}
        for id, row in rows.items():
            writes = grouped.get(id)
            tasks = (*writes.step, *writes.handlers, *writes.calls) if writes is not None else ()
            facts = made.get(id, {})
            ran += [_Ran(row, facts, task, tuple(_messages(task))) for task in tasks if _is_of_code(task)]
    return sorted(ran, key=lambda one: (one.row.id, one.task.raw_path))


def _around(branches: Sequence[Lineage], at: tuple[str, str] | None) -> frozenset[str]:
    """Returns the checkpoints in whose step the one lies that runs start from: their tasks run again too."""
    row = next((branch.rows[branch.index[at[1]]] for branch in branches if at and at[1] in branch), None)
    return frozenset(_parents(row).values()) if row is not None else frozenset()


def _parents(row: CheckpointRow) -> Mapping[str, str]:
    parents = row.metadata.get(PARENTS)
    return {str(ns): str(id) for ns, id in parents.items()} if isinstance(parents, Mapping) else {}


def _is_of_code(task: TaskRows) -> bool:
    return task.finished and task.path.node != layout.START


def _messages(task: TaskRows) -> Iterator[_Said]:
    seen: set[tuple[str | None, str]] = set()
    for write in task.output:
        if write.value is None or write.channel in (layout.PREVIOUS, layout.TASKS) or layout.is_route(write.channel):
            continue
        try:
            found = list(_typed_messages(unpack(write.value)))
        except DecodeError:
            continue
        for message, tree in found:
            one = _Said(message, tree, digest(message.raw))
            if (message.id, one.digest) not in seen:
                seen.add((message.id, one.digest))
                yield one


def _typed_messages(tree: object) -> Iterator[tuple[Message, Typed]]:
    """Yields the messages that a stored value holds, at any depth, in order."""
    if isinstance(tree, Typed):
        message = message_of(plain(tree))
        if message is not None:
            yield message, tree
        else:
            yield from _typed_messages(tree.payload)
    elif isinstance(tree, dict | list):
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from _typed_messages(inner)


def _visits(reader: Reader, ran: Sequence[_Ran]) -> Iterator[Visit]:
    inner = _said_below(ran)
    states = _States(reader)
    asked = {place for one in ran if any(map(_is_of_model, one.messages)) for place in [_place(one)]}
    for one in ran:
        place, own = _place(one), inner.get(one.task.id, frozenset())
        outer = _parents(one.row).get(one.row.ns.rpartition(layout.NS_SEPARATOR)[0], "") if one.row.ns else ""
        node = _shown(one)
        if place not in asked:
            yield Visit(place, node, one.row.ns, one.row.id, one.task.id, outer)
            continue
        found, unread, known = states.given_to(one)
        new = [each for each in one.messages if each.message.id not in own and each.message.id not in known]
        before = _results_before(one, ran) if one.is_call else []
        answers = tuple(_answer(each, [*before, *new[:at]]) for at, each in enumerate(new) if _is_of_model(each))
        yield Visit(place, node, one.row.ns, one.row.id, one.task.id, outer, found, answers, unread, one.metadata)


def _place(one: _Ran) -> tuple[str, str]:
    return node_path(one.row.ns), one.task.raw_path


def _shown(one: _Ran) -> str:
    name = one.task.path.node or one.task.raw_path
    return f"{node_path(one.row.ns)}|{name}" if one.row.ns else name


def _said_below(ran: Sequence[_Ran]) -> Mapping[str, frozenset[str]]:
    """Returns, by task, the ids of the messages that graphs and @task calls inside it stored: theirs, not its own."""
    callers = {(one.row.ns, one.row.id, one.task.raw_path): one.task.id for one in ran}
    found: dict[str, set[str]] = {}
    for one in ran:
        ids = {each.message.id for each in one.messages if each.message.id}
        around = [level.rpartition(layout.NS_END)[2] for level in one.row.ns.split(layout.NS_SEPARATOR) if level]
        path = layout.caller_path(one.task.raw_path) if one.is_call else None
        while path is not None:
            around.append(callers.get((one.row.ns, one.row.id, path), ""))
            path = layout.caller_path(path)
        for task in around:
            found.setdefault(task, set()).update(ids)
    return {task: frozenset(ids) for task, ids in found.items()}


def _results_before(call: _Ran, ran: Sequence[_Ran]) -> list[_Said]:
    """Returns the messages that earlier @task calls of a call's caller gave: its arguments are not stored."""
    caller, index = layout.caller_path(call.task.raw_path), call.task.path.index or 0
    earlier = [
        one
        for one in ran
        if one.is_call
        and one.row.id == call.row.id
        and layout.caller_path(one.task.raw_path) == caller
        and (one.task.path.index or 0) < index
    ]
    ordered = sorted(earlier, key=lambda one: one.task.path.index or 0)
    return [each for one in ordered for each in one.messages]


def _is_of_model(one: _Said) -> bool:
    """Returns whether an AI message is as a model gave it: one that code made has no id, or a bare UUID."""
    message = one.message
    if message.role != "ai" or message.id is None:
        return False
    raw = message.raw or {}
    return not _UUID.fullmatch(message.id) or bool(raw.get("response_metadata") or raw.get("usage_metadata"))


def _answer(one: _Said, before: Sequence[_Said]) -> ModelAnswer:
    return ModelAnswer(
        id=one.message.id or "",
        message=pack(one.tree),
        digest=one.digest,
        tools=tuple(call.name for call in one.message.tool_calls),
        text=one.message.text,
        needs=tuple((said(each.message), label(each.message)) for each in before if _is_result(each)),
    )


def _is_result(one: _Said) -> bool:
    """Returns whether a message came from outside the code of its task: from a tool or a model."""
    return one.message.role == "tool" or _is_of_model(one)


class _States:
    """What tasks were given, each checkpoint read once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._read: dict[tuple[str, str], tuple[Mapping[str, object], StoredCheckpoint, str]] = {}

    def given_to(self, one: _Ran) -> tuple[Given | None, str, Collection[str]]:
        """Returns what a task was given, or why that is not known; and the ids of the messages in it."""
        values, stored, unread = self._at(one.row)
        if unread:
            return None, unread, ()
        sent: Mapping[str, object] = {}
        if one.task.path.kind == "send":
            sends = self._sends(stored)
            index = one.task.path.index or 0
            if index >= len(sends):
                return None, "what was sent to it is not stored", ()
            sent = {SENT: sends[index]}
        resumed = [decode(write.value) for write in one.task.writes if write.channel == layout.RESUME and write.value]
        answers = [answer for value in resumed for answer in (value if isinstance(value, list) else [value])]
        everything = {**values, **sent}
        return given(everything, answers), "", frozenset(_ids(list(everything.values())))

    def _at(self, row: CheckpointRow) -> tuple[Mapping[str, object], StoredCheckpoint, str]:
        key = row.ns, row.id
        if key not in self._read:
            found = read_values(self._reader, row.thread, row.ns, row.id)
            stored = next(iter(self._reader.stored(row.thread, row.ns, [row.id])))
            values = {name: value for name, value in found.values.items() if name != layout.END}
            values |= {name: decode(stored.values[name]) for name in _ENTRY_CHANNELS if name in stored.values}
            unread = "; ".join(f"{name} cannot be read" for name in sorted(found.unreadable))
            self._read[key] = values, stored, unread
        return self._read[key]

    @staticmethod
    def _sends(stored: StoredCheckpoint) -> Sequence[object]:
        """Returns the pending Sends, which formats before 4 do not keep in the checkpoint."""
        sends = decode(stored.values[layout.TASKS]) if layout.TASKS in stored.values else []
        return sends if isinstance(sends, list) else []


def _ids(value: object) -> Iterator[str]:
    """Yields the ids of the messages in an inert value, at any depth."""
    message = message_of(value)
    if message is not None:
        if message.id:
            yield message.id
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _ids(inner)
