"""Recovery: making a lost part good after payment, and ending a trip with nothing held and nothing owed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphs.travel_booking import money
from graphs.travel_booking.lookups import calls_in, visit
from graphs.travel_booking.nodes.hotels import chosen_room
from graphs.travel_booking.nodes.kit import Kit, handoff, progress
from graphs.travel_booking.nodes.paying import refund
from graphs.travel_booking.payment import paid_net
from graphs.travel_booking.results import InvalidResult, RoomOffer, Rooms, rooms_of
from graphs.travel_booking.state import Bookings, Handoff, Hold, HoldRef, Payment, Question, TravelState

NODE: Final = "close"


@dataclass(frozen=True, slots=True)
class RecoveryNodes:
    """The nodes that put right what cannot go on."""

    kit: Kit

    def compensate(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["hold_room", "publish", "close"]]:
        """Re-books the equivalent of a lost room, or pays its part back; a trip without its flight ends.

        A room that costs something else is quoted and approved anew before it is paid for. Where the lost room was to
        replace a booked one that fits the flight, that one stays.
        """
        self.kit.check(state, config)
        fare, room = state.get("flight_hold"), state.get("hotel_hold")
        if room is None or fare is None or fare["status"] != "booked":
            return Command(goto="close", update={"handoffs": [_ends("the trip has no flight")]})
        if _still_fits(state.get("bookings", {}), fare):
            return Command(goto="close", update={"handoffs": [_ends("the room that was to be replaced stays booked")]})
        rooms, messages = self._search(state, room, config)
        price = room.get("replaces_total") or room["total"]
        best = None if rooms is None else _equivalent(rooms, room, money.amount(price), self._gone(state, room))
        if best is not None and rooms is not None:
            progress("an equivalent room was found")
            hold = chosen_room(rooms, best, supersedes=None, replaces_total=price)
            return Command(goto="hold_room", update={"messages": messages, "hotel_hold": hold})
        return self._without_hotel(state, room, messages, config)

    def close(self, state: TravelState, config: RunnableConfig) -> Command[Literal["publish", "__end__"]]:
        """Ends: what is held is released, what was paid beyond the bookings goes back, bookings stay as they are."""
        self.kit.check(state, config)
        messages: list[AnyMessage] = []
        for kind, hold in (("fare", state.get("flight_hold")), ("room", state.get("hotel_hold"))):
            for ref in _to_release(kind, hold):
                messages += self.kit.release(ref, config)
        bookings, number = state.get("bookings", {}), visit(state, NODE)
        payment, calls = self._pay_back(state, bookings, f"refund_closed:{number}", config)
        flight, hotel = bookings.get("flight"), bookings.get("hotel")
        found: dict[str, Any] = {
            "payment": payment,
            "approval": None,
            "question": Question(reason="", problem=""),
            "flight_hold": flight["hold"] if flight else None,
            "hotel_hold": hotel["hold"] if hotel else None,
            "trip_constraints": bookings.get("trip") or state.get("trip_constraints", {}),
        }
        progress("closed")
        if flight and bookings.get("status") != "published":
            return Command(goto="publish", update={**found, "messages": [*messages, *calls]})
        text = "Your booking stays as it is." if flight else "Nothing was booked, and nothing is held any more."
        back = paid_net(state.get("payment")) - paid_net(payment)
        if back and payment is not None:
            text += f" {money.text(back)} {payment['currency']} were paid back."
        told = AIMessage(text, id=f"close:{number}:told")
        return Command(goto="__end__", update={**found, "messages": [*messages, *calls, told]})

    def _without_hotel(
        self, state: TravelState, room: Hold, messages: list[AnyMessage], config: RunnableConfig
    ) -> Command[Any]:
        """Pays the hotel's part back and goes on with the flight alone; a room booked for other nights is cancelled."""
        old = state.get("bookings", {}).get("hotel")
        messages = [*messages, *self.kit.cancel("room", old["booking_id"] if old else "", config)]
        bookings: Bookings = {
            **state.get("bookings", {}),
            "status": "complete",
            "hotel": None,
            "trip": state["trip_constraints"],
        }
        payment, calls = self._pay_back(state, bookings, f"refund_lost:{room['hold_id'] or room['offer_id']}", config)
        progress("the lost part was paid back")
        return Command(
            goto="publish",
            update={
                "messages": [*messages, *calls],
                "payment": payment,
                "bookings": bookings,
                "hotel_hold": {**room, "status": "lost"},
            },
        )

    def _search(self, state: TravelState, lost: Hold, config: RunnableConfig) -> tuple[Rooms | None, list[AnyMessage]]:
        args = {
            "city": lost["facts"]["city"],
            "check_in": lost["facts"]["check_in"],
            "check_out": lost["facts"]["check_out"],
            "guests": state["trip_constraints"]["travellers"],
        }
        item = lost["hold_id"] or lost["offer_id"]
        called = self.kit.call("search_hotels", args, id=f"search_equivalent:{item}", config=config)
        if called.failed:
            return None, called.messages
        try:
            return rooms_of(args, called.content, lost["currency"], strict=True), called.messages
        except InvalidResult:
            return None, called.messages

    def _gone(self, state: TravelState, lost: Hold) -> set[str]:
        """Returns the offers that were lost or refused."""
        refused = {str(call.args["offer_id"]) for call in calls_in(state["messages"], "hold_room:") if call.failed}
        held = {
            str(call.content["hold_id"]): str(call.args["offer_id"])
            for call in calls_in(state["messages"], "hold_room:")
            if not call.failed
        }
        failed = {str(call.args["hold_id"]) for call in calls_in(state["messages"], "confirm_hotel:") if call.failed}
        return {lost["offer_id"]} | refused | {held[each] for each in failed if each in held}

    def _pay_back(
        self, state: TravelState, bookings: Bookings, id: str, config: RunnableConfig
    ) -> tuple[Payment | None, list[AnyMessage]]:
        payment = state.get("payment")
        if payment is None:
            return None, []
        owed = paid_net(payment) - _booked(bookings)
        paid, messages = refund(self.kit, payment, owed, "a part of the trip is not booked", id, config)
        return {**paid, "status": "settled"} if messages else paid, messages


def _ends(reason: str) -> Handoff:
    return handoff("compensate", NODE, "hand_off", reason)


def _equivalent(rooms: Rooms, lost: Hold, price: Decimal, gone: set[str]) -> RoomOffer | None:
    """Returns the room nearest in price that has at least the lost one's stars, None where there is none."""
    able = [each for each in rooms.offers if each.offer_id not in gone and each.stars >= lost["facts"]["stars"]]
    return min(able, key=lambda each: (abs(money.amount(each.total) - price), each.offer_id), default=None)


def _still_fits(bookings: Bookings, fare: Hold) -> bool:
    """Tells whether a booked room is for the nights that the flight leaves."""
    hotel = bookings.get("hotel")
    if not hotel:
        return False
    nights, days = hotel["hold"]["facts"], fare["facts"]
    return bool((nights["check_in"], nights["check_out"]) == (days["arrives_on"], days["return_on"]))


def _booked(bookings: Bookings) -> Decimal:
    parts = [bookings.get("flight"), bookings.get("hotel")]
    return money.total(part["hold"]["total"] for part in parts if part)


def _to_release(kind: Any, hold: Hold | None) -> list[HoldRef]:
    if hold is None:
        return []
    held = [HoldRef(kind=kind, hold_id=hold["hold_id"])] if hold["status"] in ("held", "lapsed") else []
    old = hold.get("supersedes")
    return [*held, *([old] if old else [])]
