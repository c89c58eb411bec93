"""Where a conversation lost the call that one of its results answers: trimmed, summarised, or never there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentctl.codec.messages import messages_in
from agentctl.errors import DecodeError
from agentctl.records.messages import Message
from agentctl.stores.base import Reader
from agentctl.stores.reading.lineage import read_lineage
from agentctl.stores.reading.messages import read_log
from agentctl.stores.reading.state import read_values

_MAX_RESULTS: Final = 20
"""Of so many results it is told where their calls went."""


def lost_at(reader: Reader, thread: str, ns: str, head: str, channel: str, results: tuple[int, ...]) -> dict[int, str]:
    """Returns the first checkpoint that holds each result without its call, by the result's place at the head.

    From where a result first stood, its call is there until something removes it. So the place is found by halving.

    Args:
        reader: The store.
        thread: Exact thread id.
        ns: Namespace.
        head: The checkpoint at which the results have no call.
        channel: The channel of the conversation.
        results: Places of the results in it.
    """
    lineage = read_lineage(reader, thread, ns, head)
    try:
        log = read_log(reader, lineage)
    except DecodeError:
        return {}
    if log.channel != channel:
        return {}
    found: dict[int, str] = {}
    for place in results[:_MAX_RESULTS]:
        result = log.tip[place]
        low, high = result.held, len(lineage.rows) - 1
        while low < high:
            middle = (low + high) // 2
            is_there = _has_call(reader, thread, ns, lineage.rows[middle].id, channel, result.message)
            low, high = (middle + 1, high) if is_there else (low, middle)
        found[place] = lineage.rows[low].id
    return found


def _has_call(reader: Reader, thread: str, ns: str, id: str, channel: str, result: Message) -> bool:
    """Says whether a checkpoint holds the call that a result answers; what cannot be read is taken to."""
    try:
        values: Mapping[str, object] = read_values(reader, thread, ns, id, channels=[channel]).values
    except DecodeError:
        return True
    if channel not in values:
        return True
    calls = (call for message in messages_in(values[channel]) for call in message.tool_calls)
    return any((call.id or "") == (result.tool_call_id or "") for call in calls)
