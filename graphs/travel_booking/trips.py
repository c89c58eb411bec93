"""The traveller's wishes: what makes a trip impossible, which dates it may have, and what an offer would not meet."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, Literal

from pydantic import BaseModel, Field

from graphs.travel_booking.catalog import CURRENCY, DAY, MONEY
from graphs.travel_booking.money import amount
from graphs.travel_booking.state import Trip

MAX_FLEXIBLE_DAYS = 7
_DATES = ("depart_on", "return_on", "flexible_days")
_NEEDED: Mapping[str, str] = {
    "origin": "where the trip begins",
    "destination": "where it goes",
    "depart_on": "the day of departure",
    "return_on": "the day of return",
}
_DEFAULTS = Trip(
    flexible_days=0, travellers=1, arrive_by="", nonstop=False, budget="", min_stars=0, area="", currency="EUR"
)


class PlanTrip(BaseModel):
    """What a message says about a trip; a field that it says nothing about stays null."""

    origin: str | None = Field(default=None, max_length=60, description="City where the trip begins.")
    destination: str | None = Field(default=None, max_length=60, description="City where it goes.")
    depart_on: str | None = Field(default=None, pattern=DAY, description="Day of the outbound flight.")
    return_on: str | None = Field(default=None, pattern=DAY, description="Day of the flight home.")
    flexible_days: int | None = Field(default=None, ge=0, le=MAX_FLEXIBLE_DAYS, description="Days both may move.")
    travellers: int | None = Field(default=None, ge=1, le=9, description="How many travel.")
    arrive_by: str | None = Field(default=None, pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="Latest arrival.")
    nonstop: bool | None = Field(default=None, description="Whether flights must not stop.")
    budget: str | None = Field(default=None, pattern=MONEY, description="Most that all of it may cost.")
    min_stars: int | None = Field(default=None, ge=0, le=5, description="Fewest stars of the hotel.")
    area: str | None = Field(default=None, max_length=60, description="Part of the city to stay in.")
    currency: str | None = Field(default=None, pattern=CURRENCY, description="Currency of the budget.")


class RememberPreference(BaseModel):
    """Something that the traveller asks to be remembered for later trips."""

    name: Literal["airline", "hotel_chain", "seat", "diet"] = Field(description="What it is about.")
    value: str = Field(min_length=1, max_length=60, description="What is preferred.")


def planned(trip: Trip | None, said: Mapping[str, Any]) -> Trip:
    """Puts what was said over a trip; a new trip gets the defaults."""
    known = {name: value for name, value in said.items() if value is not None}
    merged: Any = {**_DEFAULTS, **(trip or {}), **known}
    result: Trip = merged
    return result


def missing(trip: Trip) -> str:
    """Says what a trip lacks before anything can be searched, '' where nothing."""
    absent = [meaning for name, meaning in _NEEDED.items() if not trip.get(name)]
    return f"please tell me {', '.join(absent)}" if absent else ""


def impossible(trip: Trip, today: str) -> str:
    """Says why a complete trip cannot be made by anyone, '' where it can be searched.

    Args:
        trip: The trip.
        today: ISO date of the traveller's message.
    """
    try:
        leaving, returning = date.fromisoformat(trip["depart_on"]), date.fromisoformat(trip["return_on"])
    except ValueError as error:
        return f"a day does not exist: {error}"
    if returning <= leaving:
        return f"the return on {returning} is not after the departure on {leaving}"
    if leaving < date.fromisoformat(today):
        return f"the departure on {leaving} is in the past"
    if trip["origin"].casefold() == trip["destination"].casefold():
        return f"the trip begins and ends in {trip['origin']}"
    return ""


def date_options(trip: Trip) -> Iterator[tuple[str, str]]:
    """Yields the days of departure and return that a trip may have, as asked first, then by distance."""
    leaving, returning = date.fromisoformat(trip["depart_on"]), date.fromisoformat(trip["return_on"])
    for distance in range(trip.get("flexible_days", 0) + 1):
        for sign in (1, -1) if distance else (1,):
            shift = timedelta(days=sign * distance)
            yield (leaving + shift).isoformat(), (returning + shift).isoformat()


def next_dates(trip: Trip, tried: Collection[tuple[str, str]], today: str) -> tuple[str, str] | None:
    """Returns the nearest dates that were not tried and are not past, None where none are left."""
    return next((days for days in date_options(trip) if days not in tried and days[0] >= today), None)


def wishes_of(trip: Trip) -> str:
    """Returns everything but the dates, canonically: a combination is tried again only where these changed."""
    return json.dumps({name: value for name, value in trip.items() if name not in _DATES}, sort_keys=True)


def unmet(trip: Trip, fare: Mapping[str, Any], room: Mapping[str, Any], cost: object) -> list[str]:
    """Says which wishes a flight and a room leave unmet, for the traveller to see before they approve.

    Args:
        trip: The wishes.
        fare: Facts of the fare.
        room: Facts of the room.
        cost: What all of it costs.
    """
    found = []
    arrival = (fare.get("arrives_on", ""), fare.get("arrives_at", ""))
    if trip.get("arrive_by") and arrival > (fare.get("depart_on", ""), trip["arrive_by"]):
        found.append(f"arrives on {' at '.join(arrival)}, after {trip['arrive_by']}")
    if trip.get("nonstop") and fare.get("stops"):
        found.append("the flight is not nonstop")
    if trip.get("budget") and amount(cost) > amount(trip["budget"]):
        found.append(f"costs {cost}, above {trip['budget']}")
    if int(room["stars"]) < trip.get("min_stars", 0):
        found.append(f"the hotel has {room['stars']} stars, fewer than {trip['min_stars']}")
    if trip.get("area") and room.get("area") != trip["area"]:
        found.append(f"the hotel is not in {trip['area']}")
    return found
