"""The travel workflow's sandbox: every tool with an effect is a stub, and a hold is what it was said to be.

What a supplier would offer is not invented: searches that the recording does not hold are blocked until a person gives
an answer, or lets them read live.
"""

from __future__ import annotations

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import json_text
from graphs.travel_booking.catalog import registry_of
from sandbox_tools.answers import NoAnswer, reference

FIRST_QUOTE = 1000
"""Versions of the sandbox's quotes are above this: none is ever taken for one that a traveller approved."""

HELD_UNTIL = "2100-01-01T00:00:00+00:00"


class TravelSandbox:
    """Answers without a back office: pure functions of their arguments, so that every run gets the same."""

    def search_flights(
        self, airline: str, origin: str, destination: str, depart_on: str, return_on: str, travellers: int
    ) -> str:
        """Has no answer.

        Raises:
            NoAnswer: always.
        """
        raise NoAnswer(f"no recorded fares of {airline} from {origin} to {destination} on {depart_on}")

    def search_hotels(self, city: str, check_in: str, check_out: str, guests: int) -> str:
        """Has no answer.

        Raises:
            NoAnswer: always.
        """
        raise NoAnswer(f"no recorded rooms in {city} from {check_in} to {check_out}")

    def check_hold(self, kind: str, hold_id: str, total: str, currency: str) -> str:
        """Says that a hold is in force at the price that it was held at."""
        return _hold(hold_id, total, currency)

    def hold_fare(
        self, offer_id: str, airline: str, travellers: int, total: str, currency: str, tool_call_id: str
    ) -> str:
        """Holds every fare, and asks no airline."""
        return _hold(reference("fa", offer_id, airline, str(travellers), total), total, currency)

    def hold_room(
        self,
        offer_id: str,
        hotel: str,
        check_in: str,
        check_out: str,
        guests: int,
        total: str,
        currency: str,
        tool_call_id: str,
    ) -> str:
        """Holds every room, and asks no hotel."""
        return _hold(reference("ro", offer_id, check_in, check_out, str(guests), total), total, currency)

    def release_hold(self, kind: str, hold_id: str, tool_call_id: str) -> str:
        """Takes every hold back."""
        return json_text({"hold_id": hold_id, "status": "released"})

    def register_quote(
        self,
        previous_version: int,
        lines: list[dict[str, str]],
        total: str,
        currency: str,
        paid: str,
        because: str,
        tool_call_id: str,
    ) -> str:
        """Gives a quote a version that production gives to none."""
        return json_text({"quote_version": max(previous_version, FIRST_QUOTE) + 1})

    def capture_payment(
        self, quote_version: int, amount: str, currency: str, payment_method: str, step_up: str, tool_call_id: str
    ) -> str:
        """Takes every charge, and makes none."""
        number = reference("ca", str(quote_version), amount, currency)
        return json_text({"payment_id": number, "status": "captured", "amount": amount, "currency": currency})

    def refund_payment(self, payment_id: str, amount: str, currency: str, reason: str, tool_call_id: str) -> str:
        """Takes every refund, and pays none."""
        number = reference("pa", payment_id, amount, reason)
        return json_text({"refund_id": number, "status": "refunded", "amount": amount, "currency": currency})

    def confirm_flight(self, hold_id: str, traveller: str, tool_call_id: str) -> str:
        """Confirms every flight, and books none."""
        return json_text({"booking_id": reference("fl", hold_id), "status": "confirmed"})

    def confirm_hotel(self, hold_id: str, traveller: str, tool_call_id: str) -> str:
        """Confirms every room, and books none."""
        return json_text({"booking_id": reference("ho", hold_id), "status": "confirmed"})

    def cancel_booking(self, kind: str, booking_id: str, tool_call_id: str) -> str:
        """Takes every cancellation, and cancels nothing."""
        return json_text({"booking_id": booking_id, "status": "cancelled"})

    def publish_booking(
        self,
        event: str,
        quote_version: int,
        flight_booking: str,
        hotel_booking: str,
        total: str,
        currency: str,
        tool_call_id: str,
    ) -> str:
        """Takes every event, and tells nobody."""
        return json_text({"event": event, "quote_version": quote_version, "status": "recorded"})

    def remember_preference(self, name: str, value: str, tool_call_id: str) -> str:
        """Takes every preference, and keeps none."""
        return json_text({"remembered": name, "value": value})


def registry() -> ToolRegistry:
    """Builds the sandbox registry: the names, argument schemas and effects of production, nothing behind them."""
    sandbox = TravelSandbox()
    return registry_of(
        {
            "search_flights": sandbox.search_flights,
            "search_hotels": sandbox.search_hotels,
            "check_hold": sandbox.check_hold,
            "hold_fare": sandbox.hold_fare,
            "hold_room": sandbox.hold_room,
            "release_hold": sandbox.release_hold,
            "register_quote": sandbox.register_quote,
            "capture_payment": sandbox.capture_payment,
            "refund_payment": sandbox.refund_payment,
            "confirm_flight": sandbox.confirm_flight,
            "confirm_hotel": sandbox.confirm_hotel,
            "cancel_booking": sandbox.cancel_booking,
            "publish_booking": sandbox.publish_booking,
            "remember_preference": sandbox.remember_preference,
        },
        unanswered=("search_flights", "search_hotels"),
    )


def _hold(hold_id: str, total: str, currency: str) -> str:
    answer = {"hold_id": hold_id, "status": "held", "total": total, "currency": currency, "expires_at": HELD_UNTIL}
    return json_text(answer)
