"""Values that are too large to be held, as far as a terminal shows them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from agentctl.codec.delta import snapshot_value
from agentctl.codec.inert import plain
from agentctl.codec.large import abridged, begun, begun_bytes, runs_of, whole
from agentctl.codec.messages import message_of
from agentctl.codec.parts import parts_of
from agentctl.codec.values import unpack
from agentctl.codec.windows import layout_at
from agentctl.records.messages import Message
from agentctl.records.rows import Large, Stored

_SHOWN_BYTES: Final = 64 * 1024
"""Of a list or a map so much is shown of what it holds, and the rest of what lies in a window with it."""


class LastMessages(NamedTuple):
    """The end of a conversation: its last messages, how many came before them, and whether there was anything else."""

    messages: tuple[Message, ...] = ()
    n_earlier: int = 0
    holds_others: bool = False


def inert(value: Stored | Large, *, is_cut: bool) -> object:
    """Returns the inert value of what is stored, that of a DeltaChannel's snapshot in its place.

    Args:
        value: What is stored.
        is_cut: Whether text and bytes over 1 MB are cut; they are equal only where the whole ones are.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    tree = abridged(value, begun, begun_bytes) if is_cut else unpack(whole(value))
    return snapshot_value(plain(tree))


def beginning(value: Large | Stored) -> object:
    """Returns the inert beginning of a value: the first items of a list, the first fields of a map, the start of text.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    parts = parts_of(value)
    if parts.is_list:
        return [inert(item, is_cut=True) for item in _first(parts.items)]
    if value.type == "msgpack" and layout_at(value.data).kind == "map":
        return plain(_first_fields(value))
    return inert(value, is_cut=True)


def last_messages(value: Stored | Large, n_messages: int) -> LastMessages:
    """Returns the end of a list of messages; nothing of what is no list.

    Raises:
        DecodeError: Damaged bytes, or encrypted without a key.
    """
    parts = parts_of(value)
    if not parts.is_list:
        return LastMessages(holds_others=True)
    last: deque[Message] = deque(maxlen=n_messages)
    n_found = n_items = 0
    for item in parts.items:
        n_items += 1
        message = message_of(inert(item, is_cut=True))
        if message is not None:
            n_found += 1
            last.append(message)
    return LastMessages(tuple(last), n_found - len(last), n_found < n_items)


def _first(items: Iterable[Stored | Large]) -> Iterator[Stored | Large]:
    n_bytes = 0
    for item in items:
        yield item
        n_bytes += len(item.data)
        if n_bytes >= _SHOWN_BYTES:
            return


def _first_fields(value: Stored | Large) -> dict[object, object]:
    """Returns the tree of the first fields of a packed map: those of its first window, or its first large one."""
    found: list[object] = []
    for run in runs_of(value.data):
        if isinstance(run, list):
            found += run
        else:
            found.append(abridged(Large("msgpack", run), begun, begun_bytes))
        if len(found) > 1:
            break
    return dict(zip(found[::2], found[1::2], strict=False))
