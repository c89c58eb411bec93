"""What is counted over trips: hand-backs, holds that expired, how long approvals take, captures that were refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from graphs.travel_booking.state import TravelState


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of one trip, or of many added up.

    Attributes:
        n_trips: Trips counted.
        n_hand_backs: Hand-backs of the hotel agent.
        n_hold_expiries: Times that a hold had lapsed when it was needed.
        n_quotes: Quotes made.
        approval_latencies_s: Seconds from quote to approval, one for each trip with an approved quote.
        n_capture_failures: Charges that the provider refused.
    """

    n_trips: int = 0
    n_hand_backs: int = 0
    n_hold_expiries: int = 0
    n_quotes: int = 0
    approval_latencies_s: tuple[float, ...] = ()
    n_capture_failures: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            self.n_trips + other.n_trips,
            self.n_hand_backs + other.n_hand_backs,
            self.n_hold_expiries + other.n_hold_expiries,
            self.n_quotes + other.n_quotes,
            self.approval_latencies_s + other.approval_latencies_s,
            self.n_capture_failures + other.n_capture_failures,
        )


def counters_of(state: TravelState) -> Counters:
    """Counts one trip by its thread's state."""
    kinds = [handoff["kind"] for handoff in state.get("handoffs", [])]
    return Counters(
        n_trips=1,
        n_hand_backs=kinds.count("hand_back"),
        n_hold_expiries=kinds.count("lapsed"),
        n_quotes=len(state.get("quote_history", [])),
        approval_latencies_s=tuple(_latencies(state)),
        n_capture_failures=(state.get("payment") or {}).get("n_failures", 0),
    )


def counted(states: Iterable[TravelState]) -> Counters:
    """Adds up the counters of many trips."""
    return sum((counters_of(state) for state in states), Counters())


def _latencies(state: TravelState) -> Iterable[float]:
    approval = state.get("approval")
    if approval and approval.get("status") == "approved":
        for quote in state.get("quote_history", []):
            if quote["quote_version"] == approval["quote_version"]:
                yield (_time(approval["answered_at"]) - _time(quote["quoted_at"])).total_seconds()
                return


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
