"""The messages of a lineage: those of its tip and those gone since, each with the checkpoint that first held it.

Where a message first appeared is told by the writes stored on the checkpoint before it, which are small, and not by
decoding every state, which grows with the thread. States are decoded only where writes cannot tell: at forks (the
writes on a checkpoint with several children belong to one of them), and for messages that no stored write holds
(durability "exit", copies of a single checkpoint).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from agentctl.codec.delta import overwrite_value
from agentctl.codec.messages import coerced_messages, is_message_list, messages_in
from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow, Lineage, WriteRow
from agentctl.stores.base import Reader
from agentctl.stores.batches import in_chunks
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.state import read_values

MESSAGES: Final = "messages"

_CHECKPOINTS_PER_READ: Final = 16
"""How many checkpoints' writes are held at a time."""

Likeness = tuple[object, ...]
"""What two copies of a message share when one has no id: LangGraph gives ids when it merges, often after the write."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A message and the position in the lineage of the checkpoint that first held it."""

    message: Message
    held: int


@dataclass(frozen=True, slots=True)
class MessageLog:
    """The messages of one namespace along a lineage.

    Attributes:
        channel: The channel they are in, '' where no channel holds messages.
        tip: Messages of the lineage's tip, in their order there.
        gone: Messages that were held once and are not in the tip any more, in the order they came.
        waiting: Messages in writes stored on the tip: results of a step that has not ended.
    """

    channel: str
    tip: tuple[Logged, ...] = ()
    gone: tuple[Logged, ...] = ()
    waiting: tuple[Message, ...] = ()


def read_log(reader: Reader, lineage: Lineage) -> MessageLog:
    """Reads the messages of a lineage.

    Raises:
        DecodeError: The tip, or its messages channel, cannot be read.
    """
    channel, messages = tip_messages(reader, lineage)
    if not channel:
        return MessageLog("")
    return _Logging(reader, lineage, channel, messages).log()


@dataclass(frozen=True, slots=True)
class Logs:
    """The messages of every channel of a namespace that holds some.

    Attributes:
        logs: One a channel, that of the conversation first.
        writes: What was written to these channels, and to those that are empty lists by now, on all checkpoints of the
            lineage; on its tip, what was written to any channel.
    """

    logs: tuple[MessageLog, ...]
    writes: tuple[WriteRow, ...]


def read_logs(reader: Reader, lineage: Lineage) -> Logs:
    """Reads the messages of a lineage in every channel.

    Raises:
        DecodeError: The tip, or its messages channel, cannot be read.
    """
    row = lineage.tip
    read = read_values(reader, row.thread, row.ns, row.id)
    if MESSAGES in read.unreadable:
        raise _unreadable(row, read.unreadable[MESSAGES])
    lists = {name: messages_in(value) for name, value in read.values.items() if _may_be_messages(value)}
    ids = [one.id for one in lineage.rows[:-1]]
    writes = [
        *(reader.writes(row.thread, row.ns, ids, channels=list(lists)) if ids and lists else ()),
        *reader.writes(row.thread, row.ns, [row.id]),
    ]
    by_channel: dict[str, list[WriteRow]] = defaultdict(list)
    for write in writes:
        by_channel[write.channel].append(write)
    held = [name for name, messages in lists.items() if messages or name == MESSAGES]
    ordered = sorted(held, key=lambda name: (name != MESSAGES, -len(lists[name])))
    logs = [_Logging(reader, lineage, name, lists[name], by_channel[name]).log() for name in ordered]
    return Logs(tuple(logs), tuple(writes))


def tip_messages(reader: Reader, lineage: Lineage) -> tuple[str, tuple[Message, ...]]:
    """Returns the channel that holds messages and what it holds at the tip; ('', ()) where there is none.

    `messages` is taken where it exists; else the channel whose list of messages is the longest.
    """
    row = lineage.tip
    first = read_values(reader, row.thread, row.ns, row.id, channels=[MESSAGES])
    if MESSAGES in first.unreadable:
        raise _unreadable(row, first.unreadable[MESSAGES])
    if MESSAGES in first.values and _may_be_messages(first.values[MESSAGES]):
        return MESSAGES, messages_in(first.values[MESSAGES])
    values = read_values(reader, row.thread, row.ns, row.id).values
    lists = {name: messages_in(value) for name, value in values.items() if is_message_list(value)}
    if not lists:
        return "", ()
    channel = max(lists, key=lambda name: len(lists[name]))
    return channel, lists[channel]


def likeness(message: Message) -> Likeness:
    """Returns what a message can be known by without its id."""
    calls = tuple((call.name, call.id) for call in message.tool_calls)
    return (message.role, message.text, message.tool_call_id, message.name, calls)


def written_messages(writes: Iterable[WriteRow]) -> list[tuple[WriteRow, Message]]:
    """Returns the messages that writes to a messages channel hold, removals left out, unreadable writes skipped."""
    found: list[tuple[WriteRow, Message]] = []
    for write in writes:
        if write.value is None:
            continue
        try:
            value = decode(write.value)
        except DecodeError:
            continue
        is_overwrite, replacing = overwrite_value(value)
        messages = coerced_messages(replacing if is_overwrite else value)
        found += [(write, message) for message in messages if message.role != "remove"]
    return found


def _by_checkpoint(writes: Iterable[WriteRow]) -> Mapping[str, Sequence[WriteRow]]:
    found: dict[str, list[WriteRow]] = defaultdict(list)
    for write in writes:
        found[write.checkpoint_id].append(write)
    return found


def _unreadable(row: CheckpointRow, why: str) -> DecodeError:
    return DecodeError(f"the messages of checkpoint {row.id} cannot be read: {why}")


def _takes_away(write: WriteRow) -> bool:
    """Whether a write may remove messages; one that cannot be read may."""
    if write.value is None:
        return True
    try:
        value = decode(write.value)
    except DecodeError:
        return True
    return overwrite_value(value)[0] or any(message.role == "remove" for message in coerced_messages(value))


def _may_be_messages(value: object) -> bool:
    return value == [] or is_message_list(value)


@dataclass(frozen=True, slots=True)
class Holding:
    """Which messages one checkpoint holds."""

    ids: frozenset[str]
    likenesses: Mapping[Likeness, int]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A message in a write, and the position of the checkpoint that came of it if the write was applied."""

    message: Message
    held: int
    certain: bool


class _Logging:
    """Finds where each message of one lineage first appeared."""

    def __init__(
        self,
        reader: Reader,
        lineage: Lineage,
        channel: str,
        tip: Sequence[Message],
        writes: Sequence[WriteRow] | None = None,
    ) -> None:
        self._reader = reader
        self._lineage = lineage
        self._channel = channel
        self._tip = tip
        self._known_writes: Mapping[str, Sequence[WriteRow]] | None = None if writes is None else _by_checkpoint(writes)
        self._holdings: dict[int, Holding] = {}
        self._held: dict[int, int] = {}

    def log(self) -> MessageLog:
        gone = self._place_by_id()
        gone += self._place_by_likeness()
        tip = tuple(Logged(message, self._held[place]) for place, message in enumerate(self._tip))
        gone.sort(key=lambda logged: logged.held)
        return MessageLog(self._channel, tip, tuple(gone), tuple(self._waiting()))

    @cached_property
    def _candidates(self) -> list[_Candidate]:
        rows = self._lineage.rows
        children = read_tree(self._reader, rows[0].thread, rows[0].ns).children
        found: list[_Candidate] = []
        settled: set[str] = set()
        steps = zip(pairwise(rows), self._writes_before(), strict=True)
        for position, ((parent, row), writes) in enumerate(steps, start=1):
            # Only a step that ended applies all of its writes, and only an only child can have taken them.
            certain = row.source == "loop" and len(children.get(parent.id, ())) == 1
            for _, message in written_messages(writes):
                if message.id in settled:  # steps may write a whole window of messages again and again
                    continue
                if certain and message.id is not None:
                    settled.add(message.id)
                found.append(_Candidate(message, position, certain))
        return found

    def _writes_before(self) -> Iterator[Sequence[WriteRow]]:
        """Yields what is stored on the parent of each row but the first; that of a few is held at a time."""
        parents = [row.id for row in self._lineage.rows[:-1]]
        for chunk in in_chunks(parents, _CHECKPOINTS_PER_READ):
            by_checkpoint = _by_checkpoint(self._writes(chunk))
            yield from (by_checkpoint.get(parent, ()) for parent in chunk)

    def _writes(self, ids: Sequence[str]) -> Sequence[WriteRow]:
        if self._known_writes is not None:
            return [write for id in ids for write in self._known_writes.get(id, ())]
        row = self._lineage.tip
        return self._reader.writes(row.thread, row.ns, ids, channels=[self._channel])

    @cached_property
    def _writes_tell_all(self) -> bool:
        """Whether every message of the tip came by a stored write and none ever went.

        A run that stored only its end (durability "exit") leaves a gap in the steps; a removal or an overwrite may
        take away one of several messages that are alike.
        """
        rows = self._lineage.rows
        if any(parent.step is None or row.step != parent.step + 1 for parent, row in pairwise(rows)):
            return False
        return not any(_takes_away(write) for writes in self._writes_before() for write in writes)

    def _waiting(self) -> list[Message]:
        known = {message.id for message in self._tip if message.id is not None}
        waiting = written_messages(self._writes([self._lineage.tip.id]))
        return [message for _, message in waiting if message.id is None or message.id not in known]

    def _place_by_id(self) -> list[Logged]:
        """Places the tip's messages that writes name by id; returns those that are gone."""
        first: dict[str, Logged] = {}
        for candidate in self._candidates:
            mid = candidate.message.id
            if mid is None or mid in first:
                continue
            if candidate.certain or mid in self._holding(candidate.held).ids:
                first[mid] = Logged(candidate.message, candidate.held)
        for place, message in enumerate(self._tip):
            if message.id is not None and message.id in first:
                self._held[place] = first[message.id].held
        in_tip = {message.id for message in self._tip}
        return [logged for mid, logged in first.items() if mid not in in_tip]

    def _place_by_likeness(self) -> list[Logged]:
        """Places the rest of the tip's messages; returns those without an id that are gone."""
        unnamed: dict[Likeness, list[_Candidate]] = defaultdict(list)
        for candidate in self._candidates:
            if candidate.message.id is None:
                unnamed[likeness(candidate.message)].append(candidate)
        places: dict[Likeness, list[int]] = defaultdict(list)
        for place, message in enumerate(self._tip):
            if place not in self._held:
                places[likeness(message)].append(place)
        for like, wanted in places.items():
            candidates = unnamed.get(like, [])
            pairs_off = len(candidates) == len(wanted) and all(candidate.certain for candidate in candidates)
            if pairs_off and self._writes_tell_all:
                self._held.update(zip(wanted, (candidate.held for candidate in candidates), strict=True))
            else:
                self._held.update((place, self._search(place)) for place in wanted)
        gone: list[Logged] = []
        for like, candidates in unnamed.items():
            used = Counter(self._held[place] for place in places.get(like, ()))
            for candidate in candidates:
                if used[candidate.held]:
                    used[candidate.held] -= 1
                elif candidate.certain:
                    gone.append(Logged(candidate.message, candidate.held))
        return gone

    def _search(self, place: int) -> int:
        """Returns the first position from which on the lineage holds a message of the tip, by halving."""
        message = self._tip[place]
        like = likeness(message)
        nth = sum(likeness(other) == like for other in self._tip[: place + 1] if other.id is None)
        low, high = 0, len(self._lineage.rows) - 1
        while low < high:
            middle = (low + high) // 2
            holding = self._holding(middle)
            present = message.id in holding.ids if message.id is not None else holding.likenesses.get(like, 0) >= nth
            low, high = (low, middle) if present else (middle + 1, high)
        return low

    def _holding(self, position: int) -> Holding:
        if position not in self._holdings:
            self._holdings[position] = read_holding(self._reader, self._lineage.rows[position], self._channel)
        return self._holdings[position]


def read_holding(reader: Reader, row: CheckpointRow, channel: str) -> Holding:
    """Reads which messages a checkpoint's channel holds; none where it cannot be read."""
    try:
        value = read_values(reader, row.thread, row.ns, row.id, channels=[channel]).values.get(channel)
    except DecodeError:
        value = None
    messages = messages_in(value)
    return Holding(
        frozenset(message.id for message in messages if message.id is not None),
        Counter(likeness(message) for message in messages if message.id is None),
    )
