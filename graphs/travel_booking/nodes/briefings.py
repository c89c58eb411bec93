"""What the agents' models are shown: the trip, the offers and the request as typed JSON, no supplier's free text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from graphs.travel_booking.results import Fares, Rooms
from graphs.travel_booking.state import TravelState


def flights_briefing(state: TravelState, searches: Iterable[Fares], refused: Iterable[str]) -> str:
    """Returns the flight agent's briefing; offers that a supplier refused to hold are left out."""
    gone = set(refused)
    offers = [
        {**offer.model_dump(), "airline": fares.airline, "depart_on": fares.depart_on, "return_on": fares.return_on}
        for fares in searches
        for offer in fares.offers
        if offer.offer_id not in gone
    ]
    return _text(trip=state["trip_constraints"], preferences=state.get("preferences", {}), offers=offers)


def hotels_briefing(state: TravelState, request: str, rooms: Rooms | None, refused: Iterable[str]) -> str:
    """Returns the hotel agent's briefing; `rooms` is None before a search, `request` what the traveller objected to."""
    gone = set(refused)
    flight = state.get("flight_hold") or {}
    offers = (
        [] if rooms is None else [_room(offer.model_dump()) for offer in rooms.offers if offer.offer_id not in gone]
    )
    return _text(
        trip=state["trip_constraints"],
        preferences=state.get("preferences", {}),
        flight={"total": flight.get("total"), **flight.get("facts", {})},
        request=request,
        searched=rooms is not None,
        offers=offers,
    )


def _room(offer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in offer.items() if name not in ("description", "hotel")}


def _text(**facts: object) -> str:
    return json.dumps(facts, ensure_ascii=False, sort_keys=True)
