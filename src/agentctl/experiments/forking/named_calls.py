"""One call that a fork is about, and the calls that stand at a target: waiting, answered, or made by its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from agentctl.codec.messages import messages_in
from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.experiments.forking.forms import Answer, Patch
from agentctl.experiments.forking.pairing import Pair
from agentctl.experiments.forking.point import OwnCall, Point
from agentctl.records.messages import Message, ToolCall
from agentctl.records.rows import WriteRow
from agentctl.records.threads import Task

Where = Literal["recorded", "pending", "answered", "made", "asked", "unstored"]

BY_THE_RUN: Final = frozenset({"made", "asked", "unstored"})
"""Calls that are answered while the fork runs: code of a node asks for them."""


class Among(NamedTuple):
    """Which of `n` messages that share a call id, from 0: calls without an id have nothing else to be told by."""

    nth: int
    n: int


ONLY: Final = Among(0, 1)
"""The place of a message whose call id no other one shares."""


@dataclass(frozen=True, slots=True)
class NamedCall:
    """One call of the target and what a fork does with it.

    Attributes:
        pair: The call, and where its answer stands in the target's messages.
        where: Its result is a stored write of the target (`recorded`), is not there yet (`pending`), or already in the
            target's values (`answered`). Of calls that code of a node makes: a task of the step made it (`made`), a
            node is to answer it (`asked`), or no row holds it (`unstored`).
        content: The content that its ToolMessage is to have; None leaves it as it is.
        old: The content it has, None where it has none.
        forms: The forms that name it, none for a kept sibling.
        write: The stored write that holds the result, where it is recorded.
        owner: The task that owns it, where it is pending, or that made it.
        status: Status of the ToolMessage to be made, `success` or `error`.
        has_artifact: Whether its message carries an artifact, which a patch of the content leaves as it is.
        asked_id: Id of the AI message of a call that a task made.
        place: Where among the messages with its call id its message stands in the stored write.
    """

    pair: Pair
    where: Where
    content: object = None
    old: object = None
    forms: tuple[Answer | Patch, ...] = ()
    write: WriteRow | None = None
    owner: Task | None = None
    status: str = "success"
    has_artifact: bool = False
    asked_id: str | None = None
    place: Among = ONLY

    @property
    def name(self) -> str:
        """Tool name."""
        return self.pair.call.name

    @property
    def id(self) -> str:
        """Call id, '' where the model gave none."""
        return self.pair.call.id or ""

    @property
    def substituted(self) -> bool:
        """Whether the fork changes its result."""
        return bool(self.forms)

    @property
    def by_the_run(self) -> bool:
        """Whether it is answered while the fork runs."""
        return self.where in BY_THE_RUN


_UNSTORED_AT: Final = -1
"""Place of a call that no row holds; calls that nodes made have the places below it, those of messages are above."""


def unstored_call(name: str) -> NamedCall:
    """Returns what stands for every call of a tool, where no row holds one."""
    return NamedCall(Pair(_UNSTORED_AT, ToolCall(name, None, {}, 0), ()), "unstored")


def waiting_calls(point: Point) -> Iterator[NamedCall]:
    """Yields the calls that wait at the target, with the stored writes that answer them."""
    for pair in point.open_pairs:
        found = stored_answers(point, pair)
        alike = [one for one in point.open_pairs if (one.call.id or "", one.call.name) == _id_and_name(pair)]
        if not found:
            yield NamedCall(pair, "pending")
        elif len(found) == len(alike):
            order = alike.index(pair)
            write, message = found[order]
            same = [at for at, one in enumerate(found) if one[0] is write]
            call = NamedCall(pair, "recorded", write=write, place=Among(same.index(order), len(same)))
            yield _of_message(call, message)
        else:
            yield NamedCall(pair, "recorded")


def _id_and_name(pair: Pair) -> tuple[str, str]:
    return pair.call.id or "", pair.call.name


def answered_call(point: Point, pair: Pair) -> NamedCall:
    """Returns a call whose answer, if it has one, is in the target's messages."""
    call = NamedCall(pair, "answered")
    return _of_message(call, point.messages[pair.answers[-1]]) if pair.answers else call


def made_calls(point: Point) -> Iterator[NamedCall]:
    """Yields the calls that the tasks of the target's step made by themselves."""
    for at, own in enumerate(point.made, start=1):
        yield _made(own, _UNSTORED_AT - at)


def _made(own: OwnCall, at: int) -> NamedCall:
    stored = own.stored
    call = NamedCall(Pair(at, stored.call, ()), "made", write=stored.write, owner=own.task, asked_id=stored.asked.id)
    return _of_message(call, stored.answer)


def _of_message(call: NamedCall, message: Message) -> NamedCall:
    artifact = (message.raw or {}).get("artifact")
    status = message.status or "success"
    return replace(call, old=message.content, status=status, has_artifact=artifact is not None)


def stored_answers(point: Point, pair: Pair) -> Sequence[tuple[WriteRow, Message]]:
    """Returns the writes of the target that may hold the call's result, in order: several where calls share an id."""
    call_id, name = _id_and_name(pair)
    return [
        (write, message)
        for write in point.writes
        for message in _tool_messages(write)
        if (message.tool_call_id or "") == call_id and message.name in (None, name)
    ]


def _tool_messages(write: WriteRow) -> Iterator[Message]:
    if write.value is None:
        return
    try:
        value = decode(write.value)
    except DecodeError:
        return
    yield from (message for message in messages_in(value) if message.role == "tool")
