"""What a task was given to ask a model from: state, sent value, answers to its questions; and where two differ.

What stands in a prompt is not stored. But a node that finds the same state and the same answers asks the same, as far
as code can: so a recorded answer is for the call whose task was given the same as the task that stored it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from agentctl.codec.inert import TYPE
from agentctl.codec.messages import is_message_list, message_of
from agentctl.records.messages import Message

SENT: Final = "the value it was sent"
"""Stands for the value of a Send among the channels."""

_MESSAGES: Final = ("langchain_core.messages.", "langchain.schema.")


class Part(NamedTuple):
    """A channel's value, or one message of it: what it is called, and a digest of it without its id."""

    label: str
    digest: str


@dataclass(frozen=True, slots=True)
class Given:
    """What one task was given. A channel that is empty counts as one that is not there.

    Attributes:
        channels: The parts of each channel: one a message where it holds messages, else one for all of it.
        resumed: Digests of the answers that its questions got, in order.
    """

    channels: Mapping[str, tuple[Part, ...]]
    resumed: tuple[str, ...] = ()

    def difference(self, now: Given) -> str | None:
        """Returns in what a task of now was given something else than this one, None where it was given the same.

        Answers to questions that it has not come to yet are no difference.
        """
        for channel in sorted(self.channels.keys() | now.channels.keys()):
            then, here = self.channels.get(channel, ()), now.channels.get(channel, ())
            if [part.digest for part in then] != [part.digest for part in here]:
                return _difference(channel, then, here)
        if now.resumed != self.resumed[: len(now.resumed)]:
            return "its question was answered otherwise"
        return None


def given(values: Mapping[str, object], resumed: Sequence[object] = ()) -> Given:
    """Returns what a task was given.

    Args:
        values: Inert values by channel.
        resumed: Inert answers to its questions.
    """
    channels = {channel: parts for channel, value in values.items() if (parts := tuple(_parts(value)))}
    return Given(channels, tuple(digest(answer) for answer in resumed))


def digest(value: object) -> str:
    """Returns the digest of an inert value, in which the ids of messages do not count: they are given anew."""
    text = json.dumps(_without_ids(value), sort_keys=True, ensure_ascii=False, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def said(message: Message) -> str:
    """Returns the digest of what a message says to a model: role, name, content, calls, the call that it answers."""
    calls = [[call.name, call.id, call.args] for call in message.tool_calls]
    return digest([message.role, message.name, message.content, calls, message.tool_call_id])


def label(message: Message) -> str:
    """Returns what a message is called: `the result of lookup_order`, `the human message`."""
    if message.role == "tool":
        return f"the result of {message.name or message.tool_call_id}"
    return f"the {message.role} message"


def _parts(value: object) -> Iterator[Part]:
    if value is None or value in ("", 0, [], {}):
        return
    if isinstance(value, list) and is_message_list(value):
        for item in value:
            message = message_of(item)
            yield Part(label(message) if message else "", digest(item))
    else:
        yield Part("", digest(value))


def _difference(channel: str, then: Sequence[Part], here: Sequence[Part]) -> str:
    if any(part.label for part in (*then, *here)):
        for at, (old, new) in enumerate(zip(then, here, strict=False)):
            if old.digest != new.digest:
                return f"{channel}[{at}], {new.label or old.label}, is not as recorded"
        return f"{channel} holds {len(here)} messages where {len(then)} were recorded"
    if not then or not here:
        return f"{channel} is {'not' if not then else 'only'} in the recorded state"
    return f"{channel} is not as recorded"


def _without_ids(value: object) -> object:
    if isinstance(value, Mapping):
        name = value.get(TYPE)
        drops_id = isinstance(name, str) and name.startswith(_MESSAGES)
        return {key: _without_ids(inner) for key, inner in value.items() if not (drops_id and key == "id")}
    if isinstance(value, list | tuple):
        return [_without_ids(inner) for inner in value]
    return value
