"""What a stored checkpoint is about to run, read from its versions and its routing channels.

Source: langgraph 1.2.24, pregel/_algo.py (`_triggers`, `prepare_next_tasks`), channels/named_barrier_value.py,
channels/last_value.py (`LastValueAfterFinish`), channels/topic.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.records.rows import Stored, StoredCheckpoint, Version
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import Reader
from agentctl.stores.bookkeeping import SENDS_MOVED_IN_FORMAT
from agentctl.stores.reading.layout import JOIN, NOT_NODES, START, TASKS, join_is_complete, triggered_node


class Due(NamedTuple):
    """What runs next: node names of pending Sends by position, then names of triggered nodes, sorted.

    `?` stands for one that cannot be told: the first run of an entrypoint, a routing value that cannot be read.
    """

    sends: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, in the order in which LangGraph starts them."""
        return self.sends + self.nodes


class Bookkeeping(NamedTuple):
    """A checkpoint's versions, and what it is about to run."""

    format: int
    channel_versions: Mapping[str, Version]
    versions_seen: Mapping[str, Mapping[str, Version]]
    due: Due

    @property
    def nodes(self) -> frozenset[str]:
        """Names of all nodes that ran on the way to this checkpoint."""
        return frozenset(self.versions_seen) - NOT_NODES

    @property
    def routes(self) -> Mapping[str, tuple[str, ...]]:
        """The routing channels that make each node run which is due by one."""
        found: dict[str, list[str]] = {}
        for channel, version in self.channel_versions.items():
            node = triggered_node(channel, format=self.format)
            if node in self.due.nodes and self.versions_seen.get(node, {}).get(channel) != version:
                found.setdefault(node, []).append(channel)
        return {node: tuple(sorted(channels)) for node, channels in found.items()}


def read_bookkeeping(reader: Reader, thread: str, ns: str, ids: Sequence[str]) -> Mapping[str, Bookkeeping]:
    """Reads what checkpoints say of themselves. Of their values only those of routing channels are read.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        ids: Checkpoints; unknown ones are left out.
    """
    first = {stored.row.id: stored for stored in reader.stored(thread, ns, ids, channels=())}
    open_routes = {stored.row.id: frozenset(_open_routes(stored)) for stored in first.values()}
    lacking = [checkpoint_id for checkpoint_id, channels in open_routes.items() if channels]
    found = {checkpoint_id: _bookkeeping(stored) for checkpoint_id, stored in first.items()}
    if lacking:
        channels = frozenset(channel for checkpoint_id in lacking for channel in open_routes[checkpoint_id])
        read = reader.stored(thread, ns, lacking, channels=channels)
        found |= {stored.row.id: _bookkeeping(stored) for stored in read}
    return found


def is_routing(channel: str) -> bool:
    """Says whether a channel's value may decide what runs, in any format."""
    return channel == TASKS or triggered_node(channel, format=1) is not None


def due_of(stored: StoredCheckpoint) -> Due:
    """Returns what a checkpoint is about to run that was read with the values of all routing channels."""
    open_routes = frozenset(_open_routes(stored))
    return due(replace(stored, values={name: v for name, v in stored.values.items() if name in open_routes}))


def _open_routes(stored: StoredCheckpoint) -> Iterator[str]:
    """Yields the routing channels whose values decide what runs: those that their node has not seen yet, and Sends."""
    if TASKS in stored.channel_versions or stored.format < SENDS_MOVED_IN_FORMAT:
        yield TASKS
    for channel in stored.channel_versions:
        node = triggered_node(channel, format=stored.format)
        if node is not None and _is_new(channel, stored.channel_versions, _seen_by(node, stored)):
            yield channel


def _bookkeeping(stored: StoredCheckpoint) -> Bookkeeping:
    return Bookkeeping(stored.format, stored.channel_versions, stored.versions_seen, due(stored))


def due(stored: StoredCheckpoint) -> Due:
    """Returns what a checkpoint is about to run; `stored.values` must hold its routing channels."""
    versions = stored.channel_versions
    nodes: set[str] = set()
    for channel, value in stored.values.items():
        node = triggered_node(channel, format=stored.format)
        if node is None or channel not in versions:
            continue
        if _is_new(channel, versions, _seen_by(node, stored)) and _is_available(channel, value):
            nodes.add(_name(node, stored))
    return Due(_send_nodes(stored.values.get(TASKS)), tuple(sorted(nodes)))


def entry_node(books: Iterable[Bookkeeping]) -> str | None:
    """Returns the node that input starts: `__start__` in a graph, the entrypoint's own name in the functional API.

    None where no checkpoint tells: a thread whose first step left nothing.
    """
    for book in books:
        for node, seen in book.versions_seen.items():
            if START in seen and node not in NOT_NODES:
                return node
        if any(channel.startswith("branch:") for channel in book.channel_versions):
            return START
    return None


def _name(node: str, stored: StoredCheckpoint) -> str:
    """Returns the name of a triggered node, that of the node which input starts in place of `__start__`."""
    if node != START:
        return node
    book = Bookkeeping(stored.format, stored.channel_versions, stored.versions_seen, Due())
    return entry_node((book,)) or UNKNOWN


def _seen_by(node: str, stored: StoredCheckpoint) -> Mapping[str, Version] | None:
    return stored.versions_seen.get(_name(node, stored))


def _is_new(channel: str, versions: Mapping[str, Version], seen: Mapping[str, Version] | None) -> bool:
    if seen is None or channel not in seen:
        return True
    version, old = versions[channel], seen[channel]
    try:
        return version > old  # type: ignore[operator]
    except TypeError:
        return version != old


def _is_available(channel: str, value: Stored) -> bool:
    """Says whether a stored routing channel has its value now: a join when complete, a deferred one when released."""
    if value.type == "empty":
        return False
    try:
        inert = decode(value)
    except DecodeError:
        return True
    released = True
    match inert:
        case [held, bool(finished)]:
            inert, released = held, finished
    if channel.startswith(JOIN):
        return released and join_is_complete(channel, _members(inert))
    return released


def _members(value: object) -> list[str]:
    """Returns the texts of an inert set or list."""
    if isinstance(value, Mapping):
        value = value.get("$value", value.get("$set"))
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _send_nodes(value: Stored | None) -> tuple[str, ...]:
    if value is None or value.type == "empty":
        return ()
    try:
        sends = decode(value)
    except DecodeError:
        return (UNKNOWN,)
    if not isinstance(sends, list):
        return ()
    return tuple(str(send.get("node", UNKNOWN)) if isinstance(send, Mapping) else UNKNOWN for send in sends)
