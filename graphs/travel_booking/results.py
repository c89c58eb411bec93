"""What suppliers answered: schemas that keep only what is known, and whether an answer is about what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from graphs.travel_booking.catalog import CURRENCY, DAY, MONEY

_MAX_OFFERS = 20
_MAX_DESCRIPTION = 200

NO_CURRENCY = "XXX"
"""ISO 4217's code for no currency: of a search that found nothing."""

Money = Annotated[str, Field(pattern=MONEY)]
Currency = Annotated[str, Field(pattern=CURRENCY)]
Day = Annotated[str, Field(pattern=DAY)]
Time = Annotated[str, Field(pattern=r"^\d{2}:\d{2}$")]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,60}$")]
Name = Annotated[str, Field(pattern=r"^[\w .'&-]{0,60}$")]
Shape = TypeVar("Shape", bound=BaseModel)


class InvalidResult(ValueError):
    """A result is not what its schema says, or not about what was asked."""


class FareOffer(BaseModel):
    """A fare for the whole trip of all travellers."""

    offer_id: Id
    departs_at: Time
    arrives_on: Day
    arrives_at: Time
    stops: int = Field(ge=0)
    total: Money


class Fares(BaseModel):
    """The result of search_flights."""

    airline: Id
    origin: str
    destination: str
    depart_on: Day
    return_on: Day
    currency: Currency
    offers: list[FareOffer] = Field(max_length=_MAX_OFFERS)


class RoomOffer(BaseModel):
    """A room for all nights and guests. The description is the hotel's own text: data for people, shown to no model."""

    offer_id: Id
    hotel: Name
    stars: int = Field(ge=0, le=5)
    area: Name
    chain: Name = ""
    total: Money
    description: str = Field(default="", max_length=_MAX_DESCRIPTION)


class Rooms(BaseModel):
    """The result of search_hotels."""

    city: str
    check_in: Day
    check_out: Day
    currency: Currency
    offers: list[RoomOffer] = Field(max_length=_MAX_OFFERS)


class HoldState(BaseModel):
    """The result of check_hold, hold_fare and hold_room."""

    hold_id: Id
    status: Literal["held", "expired", "released", "lost", "booked"]
    total: Money
    currency: Currency
    expires_at: str


def read_as(shape: type[Shape], record: Mapping[str, Any]) -> Shape:
    """Reads a supplier's record: what the schema does not know is dropped, whatever it is.

    Raises:
        InvalidResult: a field is missing or malformed; it is named.
    """
    try:
        return shape.model_validate(record)
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False))
        raise InvalidResult("; ".join(problems)) from error


def fares_of(asked: Mapping[str, Any], content: Mapping[str, Any], currency: str, *, strict: bool) -> Fares:
    """Reads a search for fares.

    Args:
        asked: Arguments of the call.
        content: What came back.
        currency: The trip's.
        strict: Whether it must be about what was asked.

    Raises:
        InvalidResult: it is malformed or about something else.
    """
    fares = read_as(Fares, content)
    if strict:
        _same(asked, fares, ("airline", "origin", "destination", "depart_on", "return_on"))
        _priced_in(currency, fares)
    return fares


def rooms_of(asked: Mapping[str, Any], content: Mapping[str, Any], currency: str, *, strict: bool) -> Rooms:
    """Reads a search for rooms; see `fares_of`."""
    rooms = read_as(Rooms, content)
    if strict:
        _same(asked, rooms, ("city", "check_in", "check_out"))
        _priced_in(currency, rooms)
    return rooms


def _priced_in(currency: str, found: Fares | Rooms) -> None:
    if found.offers:
        _same({"currency": currency}, found, ("currency",))


def _same(asked: Mapping[str, Any], answered: BaseModel, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(answered, name) != asked[name]:
            raise InvalidResult(f"{name}: {getattr(answered, name)} was answered, {asked[name]} was asked")
