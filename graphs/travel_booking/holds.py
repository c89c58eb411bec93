"""Holds: what becomes of one, and which one another takes the place of."""

from __future__ import annotations

from typing import Literal

from graphs.travel_booking.results import HoldState
from graphs.travel_booking.state import Hold, HoldRef

IN_FORCE = frozenset({"held", "booked"})
_TO_RELEASE = frozenset({"held", "lapsed"})


def is_in_force(hold: Hold | None) -> bool:
    """Tells whether a fare or room is held or booked."""
    return hold is not None and hold.get("status") in IN_FORCE


def superseded(kind: Literal["fare", "room"], old: Hold | None) -> HoldRef | None:
    """Returns the hold that a new choice takes the place of.

    A hold that timed out is given back like any other: the supplier may not have noticed yet. One whose new choice was
    refused hands on what it would have superseded itself.
    """
    if old is None:
        return None
    if old.get("status") in _TO_RELEASE:
        return HoldRef(kind=kind, hold_id=old["hold_id"])
    return old.get("supersedes")


def held(chosen: Hold, answer: HoldState) -> Hold:
    """Returns a chosen fare or room as the supplier holds it: at the supplier's price."""
    return {
        **chosen,
        "status": "held",
        "hold_id": answer.hold_id,
        "total": answer.total,
        "currency": answer.currency,
        "expires_at": answer.expires_at,
    }
