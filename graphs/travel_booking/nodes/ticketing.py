"""After payment: both bookings are confirmed under their own keys, a lost part is made good, the trip is told of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphs.travel_booking import money
from graphs.travel_booking.lookups import calls_in
from graphs.travel_booking.nodes.kit import Kit, handoff, progress
from graphs.travel_booking.payment import paid_net
from graphs.travel_booking.quotes import fare_text, room_text
from graphs.travel_booking.state import Booking, Bookings, Hold, Quote, TravelState

NODE: Final = "ticketing"
_PARTS: Final[tuple[Literal["flight", "hotel"], ...]] = ("flight", "hotel")
_KINDS: Final[dict[str, Literal["fare", "room"]]] = {"flight": "fare", "hotel": "room"}


@dataclass(frozen=True, slots=True)
class TicketingNodes:
    """The nodes that book and tell."""

    kit: Kit

    def ticketing(self, state: TravelState, config: RunnableConfig) -> Command[Literal["publish", "compensate"]]:
        """Confirms the flight, then the hotel; what is booked already is left alone.

        A booking that another one takes the place of is cancelled once that one is confirmed.
        """
        self.kit.check(state, config)
        bookings: Bookings = {**state.get("bookings", {})}
        holds = {"flight": state.get("flight_hold"), "hotel": state.get("hotel_hold")}
        messages: list[AnyMessage] = []
        lost, is_new = "", False
        for part in _PARTS:
            hold = holds[part]
            if lost or hold is None or hold["status"] != "held":
                continue
            booked, calls = self._confirm(state, part, hold, config)
            messages += calls
            if booked is None:
                lost, holds[part] = part, {**hold, "status": "lost"}
                progress(f"{part} lost")
                continue
            holds[part], is_new = booked["hold"], True
            old = bookings.get(part)
            messages += self.kit.cancel(_KINDS[part], old["booking_id"] if old else "", config)
            bookings[part] = booked
            progress(f"{part} booked")
        if not lost:
            bookings["status"] = "complete"
        elif is_new or bookings.get("status") != "published":
            bookings["status"] = "partial"
        bookings["quote_version"] = (state["quote"] or Quote())["quote_version"]
        update: dict[str, Any] = {
            "messages": messages,
            "bookings": bookings,
            "flight_hold": holds["flight"],
            "hotel_hold": holds["hotel"],
        }
        if lost:
            record = handoff(NODE, "compensate", "lost", f"the {lost} was lost after payment")
            return Command(goto="compensate", update={**update, "handoffs": [record]})
        return Command(goto="publish", update={**update, "bookings": {**bookings, "trip": state["trip_constraints"]}})

    def publish(self, state: TravelState, config: RunnableConfig) -> Command[Literal["__end__"]]:
        """Records the booking with the event that tells of it, and tells the traveller.

        The event leaves with a relay, later: that a notification fails undoes no booking.
        """
        bookings, quote = state.get("bookings", {}), state["quote"] or Quote()
        flight, hotel = bookings.get("flight"), bookings.get("hotel")
        paid, version = money.text(paid_net(state.get("payment"))), quote["quote_version"]
        event = "trip_part_booked" if hotel is None else "trip_changed" if _is_change(state) else "trip_booked"
        args = {
            "event": event,
            "quote_version": version,
            "flight_booking": flight["booking_id"] if flight else "",
            "hotel_booking": hotel["booking_id"] if hotel else "",
            "total": paid,
            "currency": quote["currency"],
        }
        id = f"publish:{version}:{event}"
        called = self.kit.call("publish_booking", args, id=id, config=config)
        progress("booking published")
        reply = AIMessage(_told(bookings, paid, quote["currency"]), id=f"{id}:told")
        published: Bookings = {**bookings, "status": "published"}
        return Command(goto="__end__", update={"messages": [*called.messages, reply], "bookings": published})

    def _confirm(
        self, state: TravelState, part: str, hold: Hold, config: RunnableConfig
    ) -> tuple[Booking | None, list[AnyMessage]]:
        tool = f"confirm_{part}"
        args = {"hold_id": hold["hold_id"], "traveller": f"profile:{state['owner']['user_id']}"}
        called = self.kit.call(tool, args, id=f"{tool}:{hold['hold_id']}", config=config)
        if called.failed:
            return None, called.messages
        number = str(called.content["booking_id"])
        booked: Hold = {**hold, "status": "booked", "booking_id": number, "replaces_total": ""}
        return Booking(booking_id=number, hold=booked), called.messages


def _is_change(state: TravelState) -> bool:
    """Tells whether the trip was told of before."""
    return bool(calls_in(state["messages"], "publish:"))


def _told(bookings: Bookings, paid: str, currency: str) -> str:
    flight, hotel = bookings.get("flight"), bookings.get("hotel")
    parts = [
        f"Flight {flight['booking_id']}: {fare_text(flight['hold'])}." if flight else "",
        f"Hotel {hotel['booking_id']}: {room_text(hotel['hold'])}." if hotel else "",
        "" if hotel else "The hotel was lost and its price was paid back.",
        f"You paid {paid} {currency} in all.",
    ]
    return " ".join(["Your trip is booked.", *(part for part in parts if part)])
