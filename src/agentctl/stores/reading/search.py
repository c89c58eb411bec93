"""Looking for text in one thread: messages, results of calls and task errors, of every namespace and branch.

Values are decoded only where their bytes hold the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agentctl.codec.delta import overwrite_value, snapshot_value
from agentctl.codec.messages import coerced_messages, messages_in, text_of
from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.records.messages import Message
from agentctl.records.rows import Stored, WriteRow
from agentctl.stores.base import Reader
from agentctl.stores.batches import in_chunks
from agentctl.stores.reading import layout
from agentctl.stores.reading.messages import MESSAGES

_IDS_PER_READ: Final = 200
_BEFORE: Final = 30
_AFTER: Final = 60
_TEXT_CHANNELS: Final = frozenset({layout.ERROR, layout.RETURN})


def find_text(reader: Reader, thread: str, text: str) -> str | None:
    """Returns the newest text of a thread that holds `text`, whatever the case, cut around it; None where none does.

    Searched are what messages say, names and text arguments of their calls, results of @task calls, and task errors.
    Where the stored writes do not hold it, the newest state of each namespace is searched too: copies of one checkpoint
    and runs with durability "exit" have messages in no write. Values that cannot be read are passed over.
    """
    needle = _Needle.of(text)
    namespaces = reader.namespaces(thread)
    for ns in namespaces:
        ids = [row.id for row in reader.rows(thread, ns, metadata=False)]
        for chunk in in_chunks(ids, _IDS_PER_READ):
            writes = reader.writes(thread, ns, chunk)
            for found in needle.hits(part for write in reversed(writes) for part in _texts_of_write(write, needle)):
                return found
    for ns in namespaces:
        newest = [row.id for row in reader.rows(thread, ns, metadata=False)][:1]
        for stored in reader.stored(thread, ns, newest):
            values = (stored.values[name] for name in stored.values if layout.is_state_channel(name))
            for found in needle.hits(part for value in values for part in _texts_of_value(value, needle)):
                return found
    return None


@dataclass(frozen=True, slots=True)
class _Needle:
    """The text that is looked for: folded, and as bytes where stored bytes can be asked for it."""

    folded: str
    packed: bytes | None

    @classmethod
    def of(cls, text: str) -> _Needle:
        return cls(text.casefold(), text.lower().encode() if text.isascii() else None)

    def may_be_in(self, stored: Stored) -> bool:
        """Says whether a value can hold the text; only msgpack keeps text as it is."""
        return self.packed is None or stored.type != "msgpack" or self.packed in stored.data.lower()

    def hits(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            at = text.casefold().find(self.folded)
            if at >= 0:
                yield _around(text, at, len(self.folded))


def _around(text: str, at: int, length: int) -> str:
    start, end = max(at - _BEFORE, 0), at + length + _AFTER
    return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")


def _texts_of_write(write: WriteRow, needle: _Needle) -> Iterator[str]:
    if write.value is None or not needle.may_be_in(write.value):
        return
    if write.channel in _TEXT_CHANNELS:
        value = _decoded(write.value)
        yield value if isinstance(value, str) else text_of(value)
    elif layout.is_state_channel(write.channel):
        value = _decoded(write.value)
        is_overwrite, replacing = overwrite_value(value)
        yield from _texts_of_messages(replacing if is_overwrite else value, write.channel)


def _texts_of_value(stored: Stored, needle: _Needle) -> Iterator[str]:
    if needle.may_be_in(stored):
        yield from _texts_of_messages(snapshot_value(_decoded(stored)), "")


def _texts_of_messages(value: object, channel: str) -> Iterator[str]:
    messages = coerced_messages(value) if channel == MESSAGES else messages_in(value)
    for message in reversed(messages):
        yield from _texts_of_message(message)


def _texts_of_message(message: Message) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls:
        yield call.name
        yield from _leaves(call.args)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)


def _decoded(stored: Stored) -> object:
    try:
        return decode(stored)
    except DecodeError:
        return None
