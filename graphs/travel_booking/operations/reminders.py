"""Quotes whose holds end soon while their traveller has not answered: a list for whoever sends reminders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from graphs.travel_booking.graph import TravelGraph


@dataclass(frozen=True, slots=True)
class Reminder:
    """A quote that waits.

    Attributes:
        thread: The trip.
        quote_version: The quote.
        deadline: When the first of its holds ends.
        is_over: Whether that has passed: an approval would lead to a new quote.
    """

    thread: str
    quote_version: int
    deadline: datetime
    is_over: bool


def reminders(graph: TravelGraph, threads: Iterable[str], *, now: datetime, within: timedelta) -> list[Reminder]:
    """Lists the quotes that wait for an answer and end within a time, the nearest deadline first.

    Args:
        graph: The graph, with its checkpointer.
        threads: The threads to look at.
        now: The present time.
        within: How far ahead to look.
    """
    found = []
    for thread in threads:
        state = graph.get_state({"configurable": {"thread_id": thread}})
        quote = state.values.get("quote")
        if not (state.next == ("approval",) and state.interrupts and quote and quote.get("expires_at")):
            continue
        deadline = datetime.fromisoformat(quote["expires_at"])
        if deadline <= now + within:
            found.append(Reminder(thread, quote["quote_version"], deadline, is_over=deadline <= now))
    return sorted(found, key=lambda each: (each.deadline, each.thread))
