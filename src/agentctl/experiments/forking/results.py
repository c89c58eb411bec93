"""A call's corrected result as rows: the edit of the stored write, or the writes that its task would have left.

Source: langgraph 1.2.24, pregel/_loop.py. A write stored on a checkpoint is taken for the result of a finished task, so
with the result's row changed (same task id, idx and message id) nothing of the step runs again, and siblings and routes
stay byte for byte what they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentctl.codec import jsontext
from agentctl.codec.encryption import is_encrypted
from agentctl.codec.messages import text_of
from agentctl.codec.tree import JSON_CONSTRUCTOR, Typed
from agentctl.codec.values import pack, unpack
from agentctl.errors import Refused
from agentctl.experiments.comparing.values_diff import changes
from agentctl.experiments.forking.forms import Answer
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.pairing import describe
from agentctl.experiments.forking.point import Point
from agentctl.experiments.forking.scratch import THREAD, Scratch
from agentctl.experiments.runs.savers import seal
from agentctl.records.diffs import ABSENT
from agentctl.records.rows import Stored, WriteRow
from agentctl.records.runs import Answered
from agentctl.records.threads import Task
from agentctl.sandbox.calls import Call, CallKey
from agentctl.sandbox.replies import Substitute
from agentctl.stores.base import WriteKey


@dataclass(frozen=True, slots=True)
class Rows:
    """What a fork changes about the writes of the target.

    Attributes:
        edits: New values of stored writes.
        extra: Writes of tasks that had not finished.
        dropped: Tasks whose stored writes are left out.
    """

    edits: Mapping[WriteKey, Stored] = field(default_factory=dict)
    extra: tuple[WriteRow, ...] = ()
    dropped: frozenset[str] = frozenset()

    def __add__(self, other: Rows) -> Rows:
        return Rows({**self.edits, **other.edits}, self.extra + other.extra, self.dropped | other.dropped)


def recorded_rows(point: Point, calls: Iterable[NamedCall]) -> Rows:
    """Returns the edits of recorded results. Several results in one write are changed in one edit."""
    edits: dict[WriteKey, Stored] = {}
    for call in calls:
        if call.where == "recorded" and call.substituted and call.write is not None and call.write.value is not None:
            write = call.write
            key = (point.target.ns, write.checkpoint_id, write.task_id, write.idx)
            edits[key] = with_content(edits.get(key, call.write.value), call)
    return Rows(edits)


def with_content(stored: Stored, call: NamedCall) -> Stored:
    """Returns a stored value in which the ToolMessage of a call has the new content and status; all else stays."""
    found = 0

    def edited(node: object) -> object:
        nonlocal found
        if isinstance(node, Typed):
            if node.code == JSON_CONSTRUCTOR and isinstance(node.payload, dict):
                return replace(node, payload={**node.payload, "kwargs": edited(node.payload.get("kwargs"))})
            return replace(node, payload=edited(node.payload))
        if isinstance(node, dict):
            if str(node.get("tool_call_id") or "") == call.id and "tool_call_id" in node and "content" in node:
                found += 1
                return {**node, **_fields(node, call)} if found == call.place.nth + 1 else node
            return {key: edited(value) for key, value in node.items()}
        return [edited(item) for item in node] if isinstance(node, list) else node

    tree = edited(unpack(stored))
    if found != call.place.n:
        raise Refused(
            f"the stored result of {describe(call.pair.call)} holds its message {found} times",
            hint="give the results of the whole step: --update FILE --as-node NODE",
        )
    changed = pack(tree, type="json" if stored.type.startswith("json") else None)
    return seal(changed) if is_encrypted(stored) else changed


def _fields(message: Mapping[str, object], call: NamedCall) -> dict[str, object]:
    """Returns the changed fields. The artifact of a result replaced as a whole goes: it speaks of the old one."""
    fields: dict[str, object] = {"content": call.content}
    if "status" in message:
        fields["status"] = call.status
    if message.get("artifact") is not None and any(isinstance(form, Answer) for form in call.forms):
        fields["artifact"] = None
    return fields


def pending_rows(scratch: Scratch, point: Point, calls: Iterable[NamedCall]) -> Rows:
    """Returns the writes that the owners of pending calls would have left, made by `update_state` on a scratch copy.

    Args:
        scratch: A copy of the target for a resume.
        point: The target.
        calls: Its calls; pending ones with content are answered, those of one task together.
    """
    from langchain_core.messages import ToolMessage

    by_task: dict[str, tuple[Task, list[Any]]] = {}
    for call in sorted(calls, key=lambda call: call.pair.call.position):
        if call.where == "pending" and call.owner is not None and call.content is not None:
            content: Any = call.content
            status: Any = call.status
            message = ToolMessage(content=content, tool_call_id=call.id, name=call.name, status=status)
            by_task.setdefault(call.owner.id, (call.owner, []))[1].append(message)
    return task_rows(scratch, point, [(task, {point.channel: messages}) for task, messages in by_task.values()])


def task_rows(scratch: Scratch, point: Point, results: Sequence[tuple[Task, Any]]) -> Rows:
    """Returns the writes that tasks would have left with the given node results, each under its own id and path."""
    from langgraph.types import StateUpdate

    if not results:
        return Rows()
    before = {_key(write) for write in _stored(scratch, point)}
    scratch.update([StateUpdate(values, task.name, task.id) for task, values in results], point.target.ns)
    paths = {task.id: task.path for task, _ in results}
    made = [
        write._replace(task_path=paths[write.task_id])
        for write in _stored(scratch, point)
        if write.task_id in paths and _key(write) not in before
    ]
    if {write.task_id for write in made} != set(paths):
        raise Refused(
            "LangGraph stored no result for the task that owns the call", hint="give a stub: --stub NAME=JSON"
        )
    return Rows(extra=tuple(made))


def _stored(scratch: Scratch, point: Point) -> Sequence[WriteRow]:
    return scratch.writer.writes(THREAD, point.target.ns, [point.target.id])


def _key(write: WriteRow) -> tuple[str, int]:
    return write.task_id, write.idx


def answered_of(call: NamedCall) -> Answered:
    """Returns the record of one call's fixed answer, with the paths that a substitution changes."""
    if not call.substituted:
        return Answered(call.name, call.id, "kept")
    old, new = _as_data(call.old), _as_data(call.content)
    if call.old is None or not (isinstance(old, dict | list) and isinstance(new, dict | list)):
        fields: tuple[tuple[str, object, object], ...] = (("", old if call.old is not None else None, new),)
    else:
        fields = tuple((one.path, _or_none(one.left), _or_none(one.right)) for one in changes(old, new))
    return Answered(call.name, call.id, "substituted", fields, " ".join(form.form for form in call.forms))


def substitutes(calls: Iterable[NamedCall]) -> dict[CallKey, Substitute]:
    """Returns the new results by tool and arguments: they answer every later call that is the same."""
    found: dict[CallKey, Substitute] = {}
    for call in calls:
        args = call.pair.call.args
        if call.substituted and call.where != "unstored" and isinstance(args, Mapping):
            found[Call(call.name, args, call.id).key] = Substitute(call.content, call.status)
    return found


def _as_data(content: object) -> object:
    """Returns content as what it says: JSON text parsed, blocks by their text where they have one."""
    text = text_of(content) if not isinstance(content, str) else content
    try:
        return jsontext.parse(text)
    except ValueError:
        return text


def _or_none(value: object) -> object:
    return None if value is ABSENT else value
