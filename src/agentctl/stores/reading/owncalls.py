"""Calls that a node makes by itself and stores as a pair: the AI message with the call and the message that answers it.

No checkpoint holds such a call unanswered: both messages come with the writes of one task, which tell which task of
the step made it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from agentctl.records.messages import Message, ToolCall
from agentctl.records.rows import WriteRow
from agentctl.stores.reading import layout
from agentctl.stores.reading.conversation import pair_answers
from agentctl.stores.reading.messages import written_messages

_MAKERS: Final = frozenset({"pull", "send", "handler", "unknown"})
"""Kinds of tasks that run a node's code."""

_MARKS: Final = (b"tool_calls", b"tool_call_id")
"""What the stored form of a call and of an answer have in them, so that other writes need not be decoded."""


class StoredPair(NamedTuple):
    """One call with its answer, as one task wrote them.

    Attributes:
        task: Id of the task.
        channel: Channel that the pair was written to.
        asked: The AI message.
        call: Its call.
        answer: The message that answers it.
        write: The write that holds the answer.
        by_node: Whether code of a node wrote them, rather than input or an update.
        alone: Whether the task wrote nothing but such pairs to the channel.
    """

    task: str
    channel: str
    asked: Message
    call: ToolCall
    answer: Message
    write: WriteRow
    by_node: bool
    alone: bool


def stored_pairs(writes: Iterable[WriteRow]) -> tuple[StoredPair, ...]:
    """Returns the calls that were written together with their answers in one step, in the order of its tasks.

    Args:
        writes: Writes of one checkpoint, with their values, in stored order.
    """
    by_task: dict[str, dict[str, list[WriteRow]]] = {}
    for write in writes:
        if layout.is_state_channel(write.channel):
            by_task.setdefault(write.task_id, {}).setdefault(write.channel, []).append(write)
    return tuple(
        pair
        for task_id, channels in by_task.items()
        for channel, written in channels.items()
        for pair in _pairs(task_id, channel, written)
    )


def made_calls(
    pairs: Iterable[StoredPair], known: Mapping[str, Message], subgraphs: Collection[str]
) -> Iterator[StoredPair]:
    """Yields those of a step's pairs whose calls were made in it, each once.

    A node that returns its whole conversation hands on the pairs in it, as does a subgraph that shares a channel. So a
    pair that was there before was not made again, unless its task wrote nothing but pairs and ran no subgraph.

    Args:
        pairs: Pairs of one step.
        known: Answers that were there before, by `pair_key`.
        subgraphs: Ids of the tasks that ran a subgraph.
    """
    seen: set[tuple[str, str]] = set()
    for pair in pairs:
        key = pair_key(pair.asked, pair.call)
        before = known.get(key) if pair.asked.id is not None else None
        is_known = before is not None and (before.id, before.text) == (pair.answer.id, pair.answer.text)
        is_new = not is_known or (pair.alone and pair.task not in subgraphs)
        if pair.by_node and is_new and (pair.task, key) not in seen:
            seen.add((pair.task, key))
            yield pair


def subgraph_tasks(namespaces: Iterable[str]) -> frozenset[str]:
    """Returns the ids of the tasks that ran a subgraph, as the namespaces of a thread name them."""
    return frozenset(
        part.rpartition(layout.NS_END)[2] for ns in namespaces for part in ns.split(layout.NS_SEPARATOR) if part
    )


def pair_key(asked: Message, call: ToolCall) -> str:
    """Returns what a call of a message is known by in a thread."""
    return f"{asked.id}\n{call.position}\n{call.id or ''}"


def _by_node(write: WriteRow) -> bool:
    path = layout.parse_task_path(write.task_path)
    return path.kind in _MAKERS and path.node != layout.START


def _pairs(task_id: str, channel: str, writes: Sequence[WriteRow]) -> Iterator[StoredPair]:
    if not _may_hold_pairs(writes):
        return
    written = written_messages(sorted(writes, key=lambda write: write.idx))
    messages = [message for _, message in written]
    answers = pair_answers(messages)
    asking = [message for message in messages if message.role == "ai" and message.tool_calls]
    alone = len(asking) + len(answers) == len(messages)
    for (place, position), at in answers.items():
        call = next(call for call in messages[place].tool_calls if call.position == position)
        write, answer = written[at]
        yield StoredPair(task_id, channel, messages[place], call, answer, write, _by_node(write), alone)


def _may_hold_pairs(writes: Sequence[WriteRow]) -> bool:
    values = [write.value for write in writes if write.value is not None]
    if any("+" in value.type for value in values):
        return True
    return all(any(mark in value.data for value in values) for mark in _MARKS)
