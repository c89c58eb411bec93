"""Answers that are stored apart from their calls: by tools that led the parent graph on, and by tools called in tasks.

A tool that returns `Command(graph=Command.PARENT)` ends the graph that called it, and what it gave is written by the
parent's task. A `@task` of the functional API that returns a ToolMessage stores the answer; the call, if anything, is
in what the entrypoint returned.

Source: ParentCommand, langgraph/pregel/_retry.py; entrypoint.__call__, langgraph/func/__init__.py (langgraph 1.2.24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentctl.codec.messages import message_of
from agentctl.codec.values import Typed, pack, plain, unpack
from agentctl.errors import DecodeError
from agentctl.records.messages import CallSite, Message, ToolCall
from agentctl.records.rows import Stored
from agentctl.sandbox.recordings import Recorded, plainly_stored
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.calls import PARENTS
from agentctl.stores.reading.taskrows import TaskRows, group_writes


def handed_over(reader: Reader, thread: str, sites: Sequence[CallSite]) -> Iterator[Recorded]:
    """Yields what tools gave the parent graph, for calls whose own graph ended without an answer.

    A call is left out where its task sent values to nodes, or another call of its graph waited beside it: then it
    cannot be told what the tool gave.
    """
    waiting = [site for site in sites if site.answer is None and site.ns and isinstance(site.args, Mapping)]
    for site in waiting:
        if sum((each.ns, each.pending_at) == (site.ns, site.pending_at) for each in waiting) > 1:
            continue
        outer, _, own = site.ns.rpartition(layout.NS_SEPARATOR)
        row = next(iter(reader.rows(thread, site.ns, ids=[site.pending_at])), None)
        parents = row.metadata.get(PARENTS) if row is not None else None
        started_at = parents.get(outer) if isinstance(parents, Mapping) else None
        if not isinstance(started_at, str):
            continue
        task = _task(reader, thread, outer, started_at, own.rpartition(":")[2])
        answer = _answer(task, site.id) if task is not None else None
        if task is None or answer is None or any(write.channel == layout.TASKS for write in task.output):
            continue
        message, stored = answer
        yield Recorded(
            name=site.name,
            args=site.args,
            id=site.id,
            ns=site.ns,
            pending_at=site.pending_at,
            answered_at=_following(reader, thread, outer, started_at),
            content=message.content,
            status=message.status or "success",
            message=stored,
            kind="handoff",
            writes=tuple((channel, plainly_stored(value)) for channel, value in _state_writes(task)),
            goto=tuple(
                write.channel.removeprefix(layout.BRANCH)
                for write in task.output
                if write.channel.startswith(layout.BRANCH)
            ),
        )


def called_in_tasks(reader: Reader, thread: str, sites: Iterable[CallSite]) -> Iterator[Recorded]:
    """Yields the answers that tasks returned as tool messages, with the arguments of the calls that they name.

    The arguments are found where what the entrypoint returned, or saved for its next call, holds the model's message.
    """
    asked: dict[tuple[str, str], Mapping[str, ToolCall]] = {}
    for site in sites:
        answer = message_of(site.answer.content) if site.answer is not None and site.args is None else None
        if answer is None or answer.role != "tool" or not answer.tool_call_id or not answer.name:
            continue
        place = site.ns, site.pending_at
        if place not in asked:
            asked[place] = _calls_returned(reader, thread, *place)
        call = asked[place].get(answer.tool_call_id)
        if call is None or not isinstance(call.args, Mapping):
            continue
        yield Recorded(
            name=answer.name,
            args=call.args,
            id=answer.tool_call_id,
            ns=site.ns,
            pending_at=site.pending_at,
            answered_at=site.answered_at,
            content=answer.content,
            status=answer.status or "success",
            artifact=(answer.raw or {}).get("artifact"),
        )


def _task(reader: Reader, thread: str, ns: str, checkpoint_id: str, task_id: str) -> TaskRows | None:
    writes = group_writes(reader.writes(thread, ns, {checkpoint_id})).get(checkpoint_id)
    return next((task for task in writes.step if task.id == task_id), None) if writes is not None else None


def _state_writes(task: TaskRows) -> list[tuple[str, Stored]]:
    return [
        (write.channel, write.value)
        for write in task.output
        if write.value is not None and layout.is_state_channel(write.channel)
    ]


def _answer(task: TaskRows, call_id: str) -> tuple[Message, Stored] | None:
    """Returns the tool message by which a task answered a call, also as it is stored."""
    for _, value in _state_writes(task):
        for item in _typed(value):
            message = message_of(plain(item))
            if message is not None and message.role == "tool" and message.tool_call_id == call_id:
                return message, pack(item)
    return None


def _typed(value: Stored) -> list[Typed]:
    try:
        tree = unpack(value)
    except DecodeError:
        return []
    return [item for item in (tree if isinstance(tree, list) else [tree]) if isinstance(item, Typed)]


def _following(reader: Reader, thread: str, ns: str, checkpoint_id: str) -> str | None:
    """Returns the oldest checkpoint that was made from another, None where none was."""
    return min((row.id for row in reader.rows(thread, ns) if row.parent == checkpoint_id), default=None)


def _calls_returned(reader: Reader, thread: str, ns: str, checkpoint_id: str) -> Mapping[str, ToolCall]:
    """Returns the model's calls by id, from all values but the tasks' own that were written from a checkpoint."""
    found: dict[str, ToolCall] = {}
    for write in reader.writes(thread, ns, {checkpoint_id}):
        if write.value is None or write.channel == layout.RETURN:
            continue
        try:
            value = plain(unpack(write.value))
        except DecodeError:
            continue
        for message in _messages(value):
            found.update({call.id: call for call in message.tool_calls if call.id})
    return found


def _messages(value: object) -> Iterator[Message]:
    message = message_of(value)
    if message is not None:
        yield message
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _messages(inner)
