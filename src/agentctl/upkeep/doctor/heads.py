"""The head of a namespace with what the next run goes on from: its step, its conversations, what is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agentctl.codec.delta import rebuild
from agentctl.codec.messages import is_message_list, messages_in
from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.experiments.forking.pairing import pair_messages
from agentctl.records.messages import Message
from agentctl.records.rows import NULL_TASK
from agentctl.stores.base import Reader
from agentctl.stores.large import LARGE_BYTES, values_of
from agentctl.stores.reading.due import Bookkeeping, read_bookkeeping
from agentctl.stores.reading.layout import is_state_channel
from agentctl.stores.reading.lineage import Tree
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import StepReader
from agentctl.upkeep.doctor.lost_calls import lost_at
from agentctl.upkeep.doctor.outlines import outlined
from agentctl.upkeep.doctor.records import Head, Site

_RESULT_BYTES: Final = 256 * 1024
_CONVERSATION: Final = "messages"
_PLAIN_NAMES_IN_FORMAT: Final = 3


def read_head(reader: Reader, thread: str, site: Site, tree: Tree, *, root_head: str | None) -> Head | None:
    """Returns the head of a namespace, None where it has no checkpoint.

    Args:
        reader: The store.
        thread: Exact thread id.
        site: The namespace.
        tree: Its ids.
        root_head: Head of the root graph, which the rows of a subgraph that waits belong to.
    """
    if tree.head is None:
        return None
    steps = StepReader(reader, thread, site.ns, tree=tree, value_bytes=_RESULT_BYTES)
    step = next(steps.steps([tree.head]), None)
    if step is None:
        return None
    parents = step.row.metadata.get("parents")
    owner = parents.get("") if isinstance(parents, Mapping) else None
    book = read_bookkeeping(reader, thread, site.ns, [tree.head]).get(tree.head)
    conversations = _conversations(reader, thread, site.ns, tree.head)
    return Head(
        site=site,
        step=step,
        conversations=conversations,
        lost_at=_lost_at(reader, thread, site.ns, tree.head, conversations),
        is_live=site.ns == "" or owner == root_head,
        channels=_state_channels(book),
        routes={} if book is None else book.routes,
    )


def _state_channels(book: Bookkeeping | None) -> tuple[str, ...]:
    """Returns the channels of state; formats before 3 have channels named as nodes among them, so theirs are left."""
    if book is None or book.format < _PLAIN_NAMES_IN_FORMAT:
        return ()
    return tuple(sorted(name for name in book.channel_versions if is_state_channel(name)))


def _conversations(reader: Reader, thread: str, ns: str, id: str) -> Mapping[str, tuple[Message, ...]]:
    try:
        values, slim = _held(reader, thread, ns, id)
        given = _given_to_the_next_run(reader, thread, ns, id)
    except DecodeError:
        return {}
    held = {name: value for name, value in values.items() if is_message_list(value)}
    now = {name: rebuild(value, given.get(name, ()), channel=name).value for name, value in held.items()}
    found = slim | {name: messages_in(value) for name, value in now.items() if is_message_list(value)}
    return dict(sorted(found.items(), key=lambda item: (item[0] != _CONVERSATION, item[0])))


def _held(reader: Reader, thread: str, ns: str, id: str) -> tuple[Mapping[str, object], dict[str, tuple[Message, ...]]]:
    """Returns the values of a checkpoint, and of the large ones the messages without what they say."""
    stored = next(iter(reader.stored(thread, ns, [id], value_bytes=LARGE_BYTES)), None)
    if stored is None or not stored.unread:
        return read_values(reader, thread, ns, id).values, {}
    names = [name for name in stored.channel_versions if name not in stored.unread]
    values = values_of(reader, stored)
    slim = {name: tuple(outlined(values[name])) for name in stored.unread if is_state_channel(name) and name in values}
    conversations = {name: messages for name, messages in slim.items() if messages}
    return read_values(reader, thread, ns, id, channels=names).values, conversations


def _lost_at(
    reader: Reader, thread: str, ns: str, id: str, conversations: Mapping[str, tuple[Message, ...]]
) -> Mapping[tuple[str, int], str]:
    """Returns where the calls of results that have none were lost, by channel and place."""
    found: dict[tuple[str, int], str] = {}
    for channel, messages in conversations.items():
        orphans = pair_messages(messages).orphans
        lost = lost_at(reader, thread, ns, id, channel, orphans) if orphans else {}
        found |= {(channel, place): at for place, at in lost.items()}
    return found


def _given_to_the_next_run(reader: Reader, thread: str, ns: str, id: str) -> Mapping[str, Sequence[object]]:
    """Returns what was written to state at a checkpoint by no task, by channel: the next run begins with it.

    Source: `_first`, pregel/_loop.py (langgraph 1.2.24).
    """
    lean = reader.writes(thread, ns, [id], value_bytes=0)
    channels = {write.channel for write in lean if write.task_id == NULL_TASK and is_state_channel(write.channel)}
    given: dict[str, list[object]] = {}
    for write in reader.writes(thread, ns, [id], channels=sorted(channels)) if channels else ():
        if write.task_id == NULL_TASK and write.value is not None:
            given.setdefault(write.channel, []).append(decode(write.value))
    return given
