"""Keeping the ids that a run makes behind the ids that were copied, whatever the clocks of the machines say.

LangGraph takes the checkpoint with the greatest id for a thread's head. A copy of a checkpoint that was written by a
machine whose clock runs ahead would stay the head of its thread, and a resume would run finished work again.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

_UUID_VERSION = 6


def newest_id(ids: Iterable[str]) -> str | None:
    """Returns the id that sorts last, or None where there is none."""
    return max(ids, default=None)


def ids_after(newest: str) -> None:
    """Makes every checkpoint id that this process creates from now on sort after `newest`.

    An id that is no UUIDv6 says nothing about a clock and is left alone.

    Source: `_last_v6_timestamp` and `uuid6` (langgraph-checkpoint 4.3.2, checkpoint/base/id.py): a new id's time is
    at least one tick after the last one made in the process.
    """
    ticks = _ticks(newest)
    if ticks is None:
        return
    from langgraph.checkpoint.base import id as ids

    last = ids._last_v6_timestamp
    if last is None or last < ticks:
        ids._last_v6_timestamp = ticks  # type: ignore[assignment]


def _ticks(checkpoint_id: str) -> int | None:
    """Returns the 100 ns ticks inside a UUIDv6, or None where the text is not one."""
    try:
        value = UUID(checkpoint_id)
    except ValueError:
        return None
    if value.version != _UUID_VERSION:
        return None
    return (value.int >> 80) << 12 | (value.int >> 64) & 0x0FFF
