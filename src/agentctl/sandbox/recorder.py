"""Taking the recording of a whole source thread from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentctl.codec.messages import message_of
from agentctl.codec.values import Typed, pack, plain, unpack
from agentctl.errors import DecodeError
from agentctl.records.messages import CallSite
from agentctl.records.rows import Stored, WriteRow
from agentctl.sandbox.recordings import Recorded, Recording, is_answered, plainly_stored, recorded_of
from agentctl.sandbox.unpaired import called_in_tasks, handed_over
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.calls import read_calls
from agentctl.stores.reading.lineage import read_lineage, read_tree
from agentctl.stores.reading.taskrows import TaskRows, group_writes


def record_thread(reader: Reader, thread: str, *, tip: str | None = None) -> Recording:
    """Reads what the tools answered in a thread: its branch first, then what only other branches hold.

    All namespaces below are read. Where an answering task also wrote other channels (a tool that returned a Command),
    these writes are part of the recorded answer.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        tip: Last checkpoint of the branch in question; None for the head.

    Raises:
        NotFound: the thread or the checkpoint does not exist.
        DecodeError: its messages cannot be read.
    """
    lineage = read_lineage(reader, thread, tip=tip)
    groups = [_recorded(reader, thread, read_calls(reader, lineage))]
    for other in read_tree(reader, thread).tips:
        if other not in lineage:
            groups.append(_recorded(reader, thread, read_calls(reader, read_lineage(reader, thread, tip=other))))
    return Recording.merged(*groups)


def _recorded(reader: Reader, thread: str, sites: Iterable[CallSite]) -> Sequence[Recorded]:
    sites = list(sites)
    answered = [site for site in sites if is_answered(site)]
    written = _written(reader, thread, answered)
    return [
        *(_with_writes(site, written.get((site.ns, site.pending_at, site.task, site.id))) for site in answered),
        *handed_over(reader, thread, sites),
        *called_in_tasks(reader, thread, sites),
    ]


@dataclass(frozen=True, slots=True)
class _Output:
    """What a task wrote for one call: the message that answers it and its share of the rest.

    `rest` is None where it cannot be told which of the task's calls wrote it.
    """

    message: Stored
    rest: tuple[tuple[str, Stored], ...] | None
    goto: tuple[str, ...]
    shared: bool


def _with_writes(site: CallSite, output: _Output | None) -> Recorded:
    """Returns a site's answer with what its task wrote besides; a node that made the call itself writes that itself."""
    entry = recorded_of(site)
    if output is None:
        return entry
    if site.task:
        return replace(entry, message=output.message)
    entry = replace(entry, message=output.message, goto=output.goto, shared=output.shared)
    if output.rest is None:
        return replace(entry, kind="partial")
    return replace(entry, kind="command", writes=output.rest) if output.rest else entry


def _written(reader: Reader, thread: str, sites: Sequence[CallSite]) -> Mapping[tuple[str, str, str, str], _Output]:
    """Returns outputs by namespace, checkpoint, task and call id, from the writes stored where the calls were made.

    Those of a call that waited are without the task: its site does not name one.
    """
    waiting: dict[str, set[str]] = {}
    for site in sites:
        waiting.setdefault(site.ns, set()).add(site.pending_at)
    found: dict[tuple[str, str, str, str], _Output] = {}
    for ns, ids in waiting.items():
        for checkpoint_id, writes in group_writes(reader.writes(thread, ns, ids)).items():
            for task in (*writes.step, *writes.updates):
                for call_id, output in _outputs(task):
                    found[ns, checkpoint_id, "", call_id] = found[ns, checkpoint_id, task.id, call_id] = output
    return found


@dataclass(frozen=True, slots=True)
class _Row:
    """One write to a channel of the state; `answers` are the tool messages in it, by call id."""

    channel: str
    value: Stored
    answers: Mapping[str, Stored]
    only_answers: bool


def _outputs(task: TaskRows) -> Iterator[tuple[str, _Output]]:
    """Yields what a task wrote for each call that it answered.

    A ToolNode writes the outputs of its calls one after another, each with its own message, so what stands before the
    first or after the last message has one owner; what stands between two messages may belong to either.
    """
    rows = [_row(write) for write in task.output if write.value is not None and layout.is_state_channel(write.channel)]
    answering = [at for at, row in enumerate(rows) if row.answers]
    if not answering:
        return
    goto, sends = _routes(task)
    shared = sum(len(rows[at].answers) for at in answering) > 1
    for order, at in enumerate(answering):
        before = rows[answering[order - 1] + 1 : at] if order else rows[:at]
        after = rows[at + 1 : answering[order + 1]] if order + 1 < len(answering) else rows[at + 1 :]
        certain = (not before or order == 0) and (not after or order + 1 == len(answering))
        own = [*before, rows[at], *after]
        rest = tuple((row.channel, plainly_stored(row.value)) for row in own)
        for call_id, message in rows[at].answers.items():
            if sends or not certain or (len(rows[at].answers) > 1 and (len(own) > 1 or not rows[at].only_answers)):
                yield call_id, _Output(message, None, goto, shared)
            else:
                is_command = len(own) > 1 or not rows[at].only_answers
                yield call_id, _Output(message, rest if is_command else (), goto, shared)


def _row(write: WriteRow) -> _Row:
    assert write.value is not None
    try:
        tree = unpack(write.value)
    except DecodeError:
        return _Row(write.channel, write.value, {}, only_answers=False)
    items = tree if isinstance(tree, list) else [tree]
    answers: dict[str, Stored] = {}
    for item in items:
        message = message_of(plain(item)) if isinstance(item, Typed) else None
        if message is not None and message.role == "tool" and message.tool_call_id is not None:
            answers[message.tool_call_id] = pack(item)
    return _Row(write.channel, write.value, answers, only_answers=len(answers) == len(items))


def _routes(task: TaskRows) -> tuple[tuple[str, ...], bool]:
    """Returns the nodes that a task led to, and whether it sent any of them a value of its own."""
    channels = [write.channel for write in task.output]
    nodes = [channel.removeprefix(layout.BRANCH) for channel in channels if channel.startswith(layout.BRANCH)]
    return tuple(nodes), layout.TASKS in channels
