"""Looking for text in one thread: messages, results of calls and task errors, of every namespace and branch.

Values are decoded only where their bytes hold the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentctl.codec.delta import overwrite_value, snapshot_value
from agentctl.codec.inert import plain
from agentctl.codec.large import abridged
from agentctl.codec.messages import coerced_messages, messages_in, text_of
from agentctl.codec.parts import may_be_message, parts_of
from agentctl.codec.windows import windows_of
from agentctl.errors import DecodeError
from agentctl.records.messages import Message
from agentctl.records.rows import Large, Stored, WriteRow
from agentctl.stores.base import Reader
from agentctl.stores.batches import by_size, in_chunks
from agentctl.stores.large import LARGE_BYTES, value_of, values_of
from agentctl.stores.reading import layout
from agentctl.stores.reading.messages import MESSAGES

_IDS_PER_READ: Final = 200
_BATCH_BYTES: Final = 8 * 1024 * 1024
_MAX_ITEMS: Final = 20
"""So many of the last items of a large list that hold the bytes of the text are looked into."""
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
            for writes in _in_batches(reader, thread, ns, chunk):
                read = ((write, value_of(reader, thread, write)) for write in reversed(writes) if write.n_bytes)
                for found in needle.hits(
                    part for write, value in read for part in _texts_of_write(write, value, needle)
                ):
                    return found
    for ns in namespaces:
        newest = [row.id for row in reader.rows(thread, ns, metadata=False)][:1]
        for stored in reader.stored(thread, ns, newest, value_bytes=LARGE_BYTES):
            held = values_of(reader, stored)
            values = (held[name] for name in held if layout.is_state_channel(name))
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

    def may_be_in(self, stored: Stored | Large) -> bool:
        """Says whether a value can hold the text; only msgpack keeps text as it is."""
        if self.packed is None or stored.type != "msgpack":
            return True
        end = b""
        for window in windows_of(stored.data, window_bytes=LARGE_BYTES):
            if self.packed in end + window.lower():
                return True
            end = window[-len(self.packed) :].lower()
        return False

    def around(self, pieces: Iterable[str]) -> str:
        """Returns of a long text, given in pieces, what is around the first place that holds the text; '' for none."""
        before = ""
        for piece in pieces:
            text = before + piece
            at = text.casefold().find(self.folded)
            if at >= 0:
                return text[max(at - _BEFORE, 0) : at + len(self.folded) + _AFTER]
            before = text[-(_BEFORE + len(self.folded)) :]
        return ""

    def hits(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            at = text.casefold().find(self.folded)
            if at >= 0:
                yield _around(text, at, len(self.folded))


def _around(text: str, at: int, length: int) -> str:
    start, end = max(at - _BEFORE, 0), at + length + _AFTER
    return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")


def _in_batches(reader: Reader, thread: str, ns: str, ids: Sequence[str]) -> Iterator[Sequence[WriteRow]]:
    """Yields the writes on some checkpoints in their order, a few megabytes at a time; large values are not read."""
    sizes: Counter[str] = Counter()
    for write in reader.writes(thread, ns, ids, value_bytes=0):
        sizes[write.checkpoint_id] += min(write.n_bytes, LARGE_BYTES)
    for batch in by_size([(id, sizes[id]) for id in ids if id in sizes], _BATCH_BYTES, _IDS_PER_READ):
        yield reader.writes(thread, ns, batch, value_bytes=LARGE_BYTES)


def _texts_of_write(write: WriteRow, value: Stored | Large | None, needle: _Needle) -> Iterator[str]:
    if value is None or not needle.may_be_in(value):
        return
    if write.channel in _TEXT_CHANNELS:
        said = _decoded(value, needle)
        yield said if isinstance(said, str) else text_of(said)
    elif layout.is_state_channel(write.channel):
        yield from _texts_of_items(value, write.channel, needle)


def _texts_of_value(stored: Stored | Large, needle: _Needle) -> Iterator[str]:
    if needle.may_be_in(stored):
        yield from _texts_of_items(stored, "", needle)


def _texts_of_items(value: Stored | Large, channel: str, needle: _Needle) -> Iterator[str]:
    """Yields the texts of a value's messages, the last message first; of a large list those that hold the text."""
    if isinstance(value, Stored):
        yield from _texts_of_messages(_decoded(value, needle), channel)
        return
    found: list[object] = []
    try:
        for item in parts_of(value).items:
            if (channel == MESSAGES or may_be_message(item)) and needle.may_be_in(item):
                found = [*found[1 - _MAX_ITEMS :], _decoded(item, needle)]
    except DecodeError:
        return
    yield from _texts_of_messages(found, channel)


def _texts_of_messages(value: object, channel: str) -> Iterator[str]:
    is_overwrite, replacing = overwrite_value(value)
    value = snapshot_value(replacing if is_overwrite else value)
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


def _decoded(stored: Stored | Large, needle: _Needle) -> object:
    """Returns an inert value; long text in a large one is what is around the text that is looked for."""
    try:
        return plain(abridged(stored, needle.around))
    except DecodeError:
        return None
