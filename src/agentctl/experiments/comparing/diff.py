"""The difference between two checkpoints from their common ancestor: what was said, called, answered, and kept."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from agentctl.codec import jsontext
from agentctl.codec.messages import messages_in
from agentctl.codec.windows import windows_of
from agentctl.errors import DecodeError
from agentctl.experiments.comparing.large import Leading, Pair, without_alike
from agentctl.experiments.comparing.values_diff import changes, same
from agentctl.records.copies import Place
from agentctl.records.diffs import ABSENT, Change, Diff, MessageDiff, ToolCallDiff
from agentctl.records.messages import Message, ToolCall
from agentctl.records.rows import Large, Stored
from agentctl.stores.base import Reader
from agentctl.stores.large import LARGE_BYTES
from agentctl.stores.reading.large_state import inert
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import StepReader


@dataclass(frozen=True, slots=True)
class Tip:
    """One side of a diff, read.

    Attributes:
        place: Where it is.
        lineage: Ids of its parent chain, oldest first, its own last.
        values: Inert channel values; of one that cannot be read, why and which bytes it is.
        interrupts: Pending questions, by the asking node's name in order.
        large: Values over the asked size, as they are stored.
        leading: By channel, messages that were left out of `values` because the other side begins with them too.
    """

    place: Place
    lineage: Sequence[str]
    values: Mapping[str, object]
    interrupts: Mapping[str, object]
    large: Mapping[str, Stored | Large] = field(default_factory=dict)
    leading: Mapping[str, Leading] = field(default_factory=dict)


class End(NamedTuple):
    """Where one side of a diff is."""

    reader: Reader
    thread: str
    checkpoint: str
    ns: str = ""


def read_tips(left: End, right: End, *, is_cut: bool) -> tuple[Tip, Tip]:
    """Reads both sides of a diff; of values over 1 MB only what differs.

    Args:
        left: One side.
        right: The other.
        is_cut: Whether text and bytes over 1 MB are cut; they are equal only where the whole ones are.
    """
    sides = left, right
    tips = [read_tip(*side, value_bytes=LARGE_BYTES) for side in sides]
    for channel in sorted({name for tip in tips for name in tip.large}):
        pair = _large_pair(sides, tips, channel, is_cut)
        tips = [
            tip if value is ABSENT else _with_value(tip, channel, value, pair.leading)
            for tip, value in zip(tips, pair[:2], strict=True)
        ]
    return tips[0], tips[1]


def _with_value(tip: Tip, channel: str, value: object, leading: Leading) -> Tip:
    return replace(tip, values={**tip.values, channel: value}, leading={**tip.leading, channel: leading})


def _large_pair(sides: Sequence[End], tips: Sequence[Tip], channel: str, is_cut: bool) -> Pair:
    """Returns both values of a channel that is large on one side at least; ABSENT where a side has none."""
    ours, theirs = (_stored(side, tip, channel) for side, tip in zip(sides, tips, strict=True))
    if ours is not None and theirs is not None:
        try:
            return without_alike(ours, theirs, is_cut=is_cut)
        except DecodeError:  # one of them is damaged: which one, reading each tells
            pass
    left, right = (
        _readable(tip.large[channel], is_cut) if channel in tip.large else tip.values.get(channel, ABSENT)
        for tip in tips
    )
    return Pair(left, right)


def _stored(side: End, tip: Tip, channel: str) -> Stored | Large | None:
    """Returns a channel's value as it is stored, None where it is not, and where it is not readable."""
    if channel in tip.large or channel not in tip.values:
        return tip.large.get(channel)
    found = side.reader.stored(side.thread, side.ns, [side.checkpoint], channels=[channel])
    return next((stored.values.get(channel) for stored in found), None)


def _readable(value: Stored | Large, is_cut: bool) -> object:
    try:
        return inert(value, is_cut=is_cut)
    except DecodeError as error:
        return _unreadable(error.message, value)


def read_tip(reader: Reader, thread: str, checkpoint: str, ns: str = "", *, value_bytes: int | None = None) -> Tip:
    """Reads what a diff needs of one checkpoint: its chain's ids, its values, its pending interrupts.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        checkpoint: Full checkpoint id.
        ns: Namespace.
        value_bytes: Larger values stay where they are stored; None reads all.
    """
    tree = read_tree(reader, thread, ns)
    values = read_values(reader, thread, ns, checkpoint, value_bytes=value_bytes)
    asked: dict[str, object] = {}
    steps = StepReader(reader, thread, ns, tree=tree, value_bytes=value_bytes, results=False)
    for task in steps.tasks([checkpoint])[checkpoint]:
        for i, question in enumerate(task.interrupts):
            asked[f"{task.name}[{i}]"] = question.value
    place = Place(reader.info.url, thread, checkpoint, reader.info.profile)
    unread = _unread(reader, thread, ns, checkpoint, values.unreadable)
    lineage = list(tree.chain(checkpoint))[::-1]
    return Tip(place, lineage, {**values.values, **unread}, asked, values.large)


def _unread(reader: Reader, thread: str, ns: str, checkpoint: str, reasons: Mapping[str, str]) -> dict[str, object]:
    """Returns what stands for values that cannot be read: equal where their bytes are, and nowhere else."""
    if not reasons:
        return {}
    (stored,) = reader.stored(thread, ns, [checkpoint], channels=tuple(reasons))
    return {
        channel: _unreadable(reason, stored.values[channel])
        if channel in stored.values
        else {"$unreadable": f"{reason} (checkpoint {checkpoint})"}
        for channel, reason in reasons.items()
    }


def _unreadable(reason: str, value: Stored | Large) -> dict[str, object]:
    digest = sha256()
    for window in windows_of(value.data, window_bytes=LARGE_BYTES):
        digest.update(window)
    return {"$unreadable": f"{reason} (SHA-256 {digest.hexdigest()[:12]})"}


def diff_tips(left: Tip, right: Tip) -> Diff:
    """Returns everything that differs between two checkpoints, in time linear in their size.

    Messages before the newest common ancestor count as shared where both sides still hold them equal. After it they are
    aligned by id, then by content. Tool calls are those of the unshared messages, aligned by id, then name and order.
    """
    common = _common_ancestor(left.lineage, right.lineage)
    conversations = _conversations(left, right)
    messages: list[MessageDiff] = []
    calls: list[ToolCallDiff] = []
    n_common = 0
    reply: Change | None = None
    for channel, (ours, theirs) in conversations.items():
        leading = left.leading.get(channel, Leading())
        n_shared = _shared_prefix(ours, theirs)
        n_common += leading.n_messages + n_shared
        messages += _align(ours[n_shared:], theirs[n_shared:])
        calls += _align_calls(_calls(ours[n_shared:]), _calls(theirs[n_shared:]))
        last = final_reply(ours, before=leading.reply), final_reply(theirs, before=leading.reply)
        if last[0] != last[1] and reply is None:
            reply = Change("reply", *(ABSENT if text is None else text for text in last))
    state = tuple(changes(_without(left.values, conversations), _without(right.values, conversations)))
    interrupts = tuple(changes(left.interrupts, right.interrupts))
    differing = tuple(entry for entry in messages if entry.side != "both" or entry.changes)
    n_common += len(messages) - len(differing)
    equal = not (differing or calls or reply or state or interrupts)
    return Diff(
        left.place,
        right.place,
        common,
        equal,
        differing,
        tuple(calls),
        reply,
        state,
        interrupts,
        n_common_messages=n_common,
    )


def final_reply(messages: Sequence[Message], *, before: str | None = None) -> str | None:
    """Returns the text of the last AI message that has text and is not followed by a human one, or None.

    Args:
        messages: A conversation, or its end.
        before: The final reply of what came before them.
    """
    for message in reversed(messages):
        if message.role == "human":
            return None
        if message.role == "ai" and message.text:
            return message.text
    return before


def _common_ancestor(left: Sequence[str], right: Sequence[str]) -> str | None:
    known = set(right)
    return next((checkpoint for checkpoint in reversed(left) if checkpoint in known), None)


def _conversations(left: Tip, right: Tip) -> dict[str, tuple[tuple[Message, ...], tuple[Message, ...]]]:
    """Returns the messages of both sides by channel, for channels that hold messages and nothing else."""
    found: dict[str, tuple[tuple[Message, ...], tuple[Message, ...]]] = {}
    for channel in {**left.values, **right.values}:
        ours, theirs = (_all_messages(side.values.get(channel)) for side in (left, right))
        n_before = left.leading.get(channel, Leading()).n_messages
        if ours is not None and theirs is not None and (ours or theirs or n_before):
            found[channel] = (ours, theirs)
    return found


def _all_messages(value: object) -> tuple[Message, ...] | None:
    """Returns the messages of a value that is a list of them, none for an empty value, else None."""
    if not value:
        return ()
    if not isinstance(value, list):
        return None
    found = messages_in(value)
    return found if len(found) == len(value) else None


def _without(values: Mapping[str, object], channels: Collection[str]) -> dict[str, object]:
    return {channel: value for channel, value in values.items() if channel not in channels}


def _shared_prefix(left: Sequence[Message], right: Sequence[Message]) -> int:
    n = 0
    for one, other in zip(left, right, strict=False):
        if one.id != other.id or not _same_message(one, other):
            break
        n += 1
    return n


def _same_message(left: Message, right: Message) -> bool:
    return _content_key(left) == _content_key(right)


def _content_key(message: Message) -> str:
    """What makes two messages without a common id the same: everything but ids that are made anew in every run."""
    calls = [(call.name, call.args) for call in message.tool_calls]
    return json.dumps(
        [message.role, message.content, message.name, message.tool_call_id, message.status, calls],
        sort_keys=True,
        default=repr,
    )


def _align(left: Sequence[Message], right: Sequence[Message]) -> list[MessageDiff]:
    """Aligns in one pass: each left message takes the next unpassed right one of its id, else of its content."""
    by_id: dict[str, deque[int]] = defaultdict(deque)
    by_content: dict[str, deque[int]] | None = None
    for i, message in enumerate(right):
        if message.id:
            by_id[message.id].append(i)
    aligned: list[MessageDiff] = []
    done = 0
    for message in left:
        match = _next_at(by_id[message.id], done) if message.id else None
        if match is None:
            by_content = _by_content(right) if by_content is None else by_content
            match = _next_at(by_content[_content_key(message)], done)
        if match is None:
            aligned.append(MessageDiff("left", message, None))
            continue
        aligned += [MessageDiff("right", None, other) for other in right[done:match]]
        aligned.append(MessageDiff("both", message, right[match], message_changes(message, right[match])))
        done = match + 1
    aligned += [MessageDiff("right", None, other) for other in right[done:]]
    return aligned


def _by_content(messages: Sequence[Message]) -> dict[str, deque[int]]:
    places: dict[str, deque[int]] = defaultdict(deque)
    for i, message in enumerate(messages):
        places[_content_key(message)].append(i)
    return places


def _next_at(candidates: deque[int], start: int) -> int | None:
    while candidates and candidates[0] < start:
        candidates.popleft()
    return candidates[0] if candidates else None


def message_changes(left: Message, right: Message) -> tuple[Change, ...]:
    """Returns what differs between two messages, JSON text compared by its fields: `content.status`."""
    found = list(changes(content_value(left.content), content_value(right.content), "content"))
    found += changes(left.name, right.name, "name")
    found += changes(left.status, right.status, "status")
    found += changes(
        [[call.name, call.args] for call in left.tool_calls],
        [[call.name, call.args] for call in right.tool_calls],
        "tool_calls",
    )
    return tuple(found)


def content_value(content: object) -> object:
    """Returns the value inside a content that is JSON text of an object or a list, else the content itself."""
    if isinstance(content, str) and content[:1] in ("{", "["):
        try:
            return jsontext.parse(content)
        except ValueError:
            return content
    return content


def _calls(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


def _align_calls(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> list[ToolCallDiff]:
    """Returns differing calls: by id where both sides have it, then by name in order; equal ones are left out."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for i, call in enumerate(right):
        waiting[call.name].append(i)
    ids = {(call.name, call.id): i for i, call in enumerate(right) if call.id}
    taken: set[int] = set()
    found: list[ToolCallDiff] = []
    for call in left:
        match = ids.get((call.name, call.id)) if call.id else None
        if match is None or match in taken:
            while waiting[call.name] and waiting[call.name][0] in taken:
                waiting[call.name].popleft()
            match = waiting[call.name][0] if waiting[call.name] else None
        if match is None:
            found.append(ToolCallDiff("left", call, None))
            continue
        taken.add(match)
        if not same(call.args, right[match].args):
            found.append(ToolCallDiff("both", call, right[match], tuple(changes(call.args, right[match].args))))
    found += [ToolCallDiff("right", None, call) for i, call in enumerate(right) if i not in taken]
    return found
