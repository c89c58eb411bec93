"""What a thread still has to do before it can take a new message: money that moves, bookings that are not told of."""

from __future__ import annotations

from typing import Literal

from graphs.travel_booking.payment import is_settled
from graphs.travel_booking.state import TravelState


def unfinished(state: TravelState) -> Literal["capture", "ticketing", "publish"] | None:
    """Returns the node that must run first, None where the thread is free."""
    payment, bookings = state.get("payment"), state.get("bookings", {})
    if payment and payment["status"] == "pending":
        return "capture"
    if payment and payment["status"] == "settled" and bookings.get("quote_version") != payment["quote_version"]:
        return "ticketing"
    return "publish" if bookings.get("status") == "complete" else None


def open_question(state: TravelState) -> Literal["approval", "ask_traveller"] | None:
    """Returns the node that waits for the traveller's answer, None where nothing was asked."""
    if state.get("question", {}).get("reason"):
        return "ask_traveller"
    quote = state.get("quote")
    if not quote or is_settled(state.get("payment"), quote["quote_version"]):
        return None
    held = [hold for hold in (state.get("flight_hold"), state.get("hotel_hold")) if hold and hold["status"] == "held"]
    return "approval" if held else None
