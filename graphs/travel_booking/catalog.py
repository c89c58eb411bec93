"""The tools' names, arguments, descriptions and effects: written once, so that production and sandbox cannot differ.

Agents choose from what a search found; no model calls a tool. Amounts and dates come from stored results and quotes.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from graphs.common.catalog import EffectArguments, ToolSpec, build_registry

MONEY = r"^\d{1,7}\.\d{2}$"
CURRENCY = r"^[A-Z]{3}$"
DAY = r"^\d{4}-\d{2}-\d{2}$"
TOKEN = r"^pm_[a-z0-9_]{3,40}$"

HoldKind = Literal["fare", "room"]


class SearchFlights(BaseModel):
    """Arguments of search_flights."""

    airline: str = Field(description="The airline that is asked.")
    origin: str = Field(description="City of departure.")
    destination: str = Field(description="City of arrival.")
    depart_on: str = Field(description="Day of the outbound flight.", pattern=DAY)
    return_on: str = Field(description="Day of the flight home.", pattern=DAY)
    travellers: int = Field(ge=1, le=9, description="How many fly.")


class SearchHotels(BaseModel):
    """Arguments of search_hotels."""

    city: str = Field(description="The city.")
    check_in: str = Field(description="First night.", pattern=DAY)
    check_out: str = Field(description="Day of departure.", pattern=DAY)
    guests: int = Field(ge=1, le=9, description="How many sleep there.")


class CheckHold(BaseModel):
    """Arguments of check_hold."""

    kind: HoldKind = Field(description="What is held.")
    hold_id: str = Field(description="The supplier's hold.")
    total: str = Field(description="The price that it was held at.", pattern=MONEY)
    currency: str = Field(description="Its currency.", pattern=CURRENCY)


class HoldFareArguments(EffectArguments):
    """Arguments of hold_fare."""

    offer_id: str = Field(description="The airline's offer.")
    airline: str = Field(description="The airline.")
    travellers: int = Field(ge=1, le=9, description="How many fly.")
    total: str = Field(description="The offer's price.", pattern=MONEY)
    currency: str = Field(description="Its currency.", pattern=CURRENCY)


class HoldRoomArguments(EffectArguments):
    """Arguments of hold_room."""

    offer_id: str = Field(description="The hotel's offer.")
    hotel: str = Field(description="The hotel.")
    check_in: str = Field(description="First night.", pattern=DAY)
    check_out: str = Field(description="Day of departure.", pattern=DAY)
    guests: int = Field(ge=1, le=9, description="How many sleep there.")
    total: str = Field(description="The offer's price.", pattern=MONEY)
    currency: str = Field(description="Its currency.", pattern=CURRENCY)


class ReleaseHold(EffectArguments):
    """Arguments of release_hold."""

    kind: HoldKind = Field(description="What is held.")
    hold_id: str = Field(description="The supplier's hold.")


class RegisterQuote(EffectArguments):
    """Arguments of register_quote."""

    previous_version: int = Field(ge=0, description="Version of the quote before it, 0 for none.")
    lines: list[dict[str, str]] = Field(min_length=1, description="The lines.")
    total: str = Field(description="Their sum.", pattern=MONEY)
    currency: str = Field(description="Its currency.", pattern=CURRENCY)
    paid: str = Field(description="What was paid before, net.", pattern=MONEY)
    because: str = Field(description="Why it is made.")


class CapturePayment(EffectArguments):
    """Arguments of capture_payment."""

    quote_version: int = Field(ge=1, description="The approved quote.")
    amount: str = Field(description="What is charged.", pattern=MONEY)
    currency: str = Field(description="Its currency.", pattern=CURRENCY)
    payment_method: str = Field(description="The payment provider's token.", pattern=TOKEN)
    step_up: str = Field(description="Reference of the step-up proof, empty where none was needed.")


class RefundPayment(EffectArguments):
    """Arguments of refund_payment."""

    payment_id: str = Field(description="The charge that is paid back, in part or whole.")
    amount: str = Field(description="How much.", pattern=MONEY)
    currency: str = Field(description="Its currency.", pattern=CURRENCY)
    reason: str = Field(description="Why.")


class ConfirmBooking(EffectArguments):
    """Arguments of confirm_flight and confirm_hotel."""

    hold_id: str = Field(description="The hold that becomes a booking.")
    traveller: str = Field(description="Reference of the traveller's profile, which holds names and documents.")


class CancelBooking(EffectArguments):
    """Arguments of cancel_booking."""

    kind: HoldKind = Field(description="What was booked.")
    booking_id: str = Field(description="The booking.")


class PublishBooking(EffectArguments):
    """Arguments of publish_booking."""

    event: Literal["trip_booked", "trip_changed", "trip_part_booked"] = Field(description="What happened.")
    quote_version: int = Field(ge=1, description="The quote that was booked.")
    flight_booking: str = Field(description="The flight's booking, empty for none.")
    hotel_booking: str = Field(description="The hotel's booking, empty for none.")
    total: str = Field(description="What the trip costs now.", pattern=MONEY)
    currency: str = Field(description="Its currency.", pattern=CURRENCY)


class RememberPreferenceArguments(EffectArguments):
    """Arguments of remember_preference."""

    name: Literal["airline", "hotel_chain", "seat", "diet"] = Field(description="What the preference is about.")
    value: str = Field(min_length=1, max_length=60, description="The preference.")


SPECS = (
    ToolSpec("search_flights", "Asks one airline for fares.", SearchFlights, "read"),
    ToolSpec("search_hotels", "Looks for rooms in a city.", SearchHotels, "read"),
    ToolSpec("check_hold", "Asks a supplier whether a hold is in force, and at which price.", CheckHold, "read"),
    ToolSpec("hold_fare", "Holds a fare for a while.", HoldFareArguments, "write"),
    ToolSpec("hold_room", "Holds a room for a while.", HoldRoomArguments, "write"),
    ToolSpec("release_hold", "Gives a hold back.", ReleaseHold, "write"),
    ToolSpec("register_quote", "Registers a quote and gives it its version.", RegisterQuote, "write"),
    ToolSpec("capture_payment", "Charges the amount of an approved quote.", CapturePayment, "write"),
    ToolSpec("refund_payment", "Pays back a part of a charge.", RefundPayment, "write"),
    ToolSpec("confirm_flight", "Turns a held fare into a ticket.", ConfirmBooking, "write"),
    ToolSpec("confirm_hotel", "Turns a held room into a booking.", ConfirmBooking, "write"),
    ToolSpec("cancel_booking", "Cancels a booking that another one takes the place of.", CancelBooking, "write"),
    ToolSpec("publish_booking", "Records a booking and the event that tells of it.", PublishBooking, "write"),
    ToolSpec(
        "remember_preference", "Remembers what a traveller prefers in future.", RememberPreferenceArguments, "write"
    ),
)
NAMES = tuple(spec.name for spec in SPECS)
registry_of = partial(build_registry, SPECS)
