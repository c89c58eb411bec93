"""The hotel agent: searches rooms for the held flight, lets the model choose, holds one or hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphs.travel_booking.holds import held, superseded
from graphs.travel_booking.lookups import Done, calls_in, latest_handoff, unwanted_offers, visit
from graphs.travel_booking.nodes.briefings import hotels_briefing
from graphs.travel_booking.nodes.choices import HandBack, HoldRoom, SearchRooms
from graphs.travel_booking.nodes.kit import Kit, ask, handoff, progress, tried_now
from graphs.travel_booking.prompts import hotels_prompt
from graphs.travel_booking.results import HoldState, InvalidResult, RoomOffer, Rooms, read_as, rooms_of
from graphs.travel_booking.state import Hold, TravelState

AGENT: Final = "hotel_agent"
_REASONS = {
    "no_rooms": "no room on these dates will do",
    "over_budget": "with any room the trip is above the budget",
    "flights": "the traveller's request is about the flights",
}


@dataclass(frozen=True, slots=True)
class HotelNodes:
    """The nodes of the hotel agent."""

    kit: Kit

    def hotel_agent(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["search_hotels", "hold_room", "flight_agent", "ask_traveller"]]:
        """Has the model read the traveller's request, search, and choose a room or hand the trip back."""
        self.kit.check(state, config)
        searches = calls_in(state["messages"], f"search_hotels:{visit(state, AGENT)}:")
        if not searches:
            return self._begin(state, config)
        rooms = self._usable(state, searches[-1], config)
        if rooms is not None:
            return self._choose(state, rooms, config)
        if len(searches) < self.kit.policy(state).max_searches:
            return Command(goto="search_hotels")
        return ask(AGENT, "no hotel search gives a usable answer at present")

    def search_hotels(self, state: TravelState, config: RunnableConfig) -> Command[Literal["hotel_agent"]]:
        """Looks for rooms from the flight's arrival to the day of return."""
        number, flight = visit(state, AGENT), (state["flight_hold"] or Hold())["facts"]
        attempt = 1 + len(calls_in(state["messages"], f"search_hotels:{number}:"))
        args = {
            "city": state["trip_constraints"]["destination"],
            "check_in": flight["arrives_on"],
            "check_out": flight["return_on"],
            "guests": state["trip_constraints"]["travellers"],
        }
        called = self.kit.call("search_hotels", args, id=f"search_hotels:{number}:{attempt}", config=config)
        progress("hotels searched")
        return Command(goto=AGENT, update={"messages": called.messages})

    def hold_room(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["hotel_agent", "compensate", "payments", "ticketing"]]:
        """Holds the chosen room, then gives back the hold that it takes the place of."""
        chosen, number = state["hotel_hold"] or Hold(), visit(state, AGENT)
        args = {
            "offer_id": chosen["offer_id"],
            "hotel": chosen["supplier"],
            "check_in": chosen["facts"]["check_in"],
            "check_out": chosen["facts"]["check_out"],
            "guests": state["trip_constraints"]["travellers"],
            "total": chosen["total"],
            "currency": chosen["currency"],
        }
        called = self.kit.call("hold_room", args, id=f"hold_room:{number}:{chosen['offer_id']}", config=config)
        if called.failed:
            refused: Hold = {**chosen, "status": "refused"}
            back: Literal["compensate", "hotel_agent"] = "compensate" if chosen.get("replaces_total") else "hotel_agent"
            return Command(goto=back, update={"messages": called.messages, "hotel_hold": refused})
        hold = held(chosen, read_as(HoldState, called.content))
        release = self.kit.release(chosen.get("supersedes"), config)
        # The equivalent of a lost room needs no new approval where it costs what the lost one did.
        paid_for = hold.get("replaces_total") == hold["total"]
        target: Literal["ticketing", "payments"] = "ticketing" if paid_for else "payments"
        progress("room held")
        return Command(
            goto=target,
            update={
                "messages": [*called.messages, *release],
                "hotel_hold": {**hold, "supersedes": None},
                "handoffs": [handoff(AGENT, target, "hand_off", f"room {hold['offer_id']} is held")],
            },
        )

    def _begin(self, state: TravelState, config: RunnableConfig) -> Command[Any]:
        """Searches, unless the traveller objected to something that the model takes to be about the flights."""
        last = latest_handoff(state)
        if last is None or last["target"] != AGENT or last["kind"] != "declined":
            return Command(goto="search_hotels")
        choice = self._ask_model(state, last["reason"], None, (), (SearchRooms, HandBack), config)
        return self._hand_back(state, choice) if isinstance(choice, HandBack) else Command(goto="search_hotels")

    def _choose(self, state: TravelState, rooms: Rooms, config: RunnableConfig) -> Command[Any]:
        refused = unwanted_offers(state, "hold_room", AGENT)
        request = _request(state)
        choice = self._ask_model(state, request, rooms, refused, (HoldRoom, HandBack), config)
        if isinstance(choice, HoldRoom) and choice.offer_id not in refused:
            for offer in rooms.offers:
                if offer.offer_id == choice.offer_id:
                    hold = chosen_room(rooms, offer, supersedes=superseded("room", state.get("hotel_hold")))
                    return Command(goto="hold_room", update={"hotel_hold": hold})
        return self._hand_back(state, choice if isinstance(choice, HandBack) else HandBack(reason="no_rooms"))

    def _ask_model(
        self,
        state: TravelState,
        request: str,
        rooms: Rooms | None,
        refused: Any,
        choices: tuple[Any, ...],
        config: RunnableConfig,
    ) -> Any:
        briefing = hotels_briefing(state, request, rooms, refused)
        return self.kit.choose(hotels_prompt(self.kit.settings(config).hotels_prompt), briefing, choices, config)

    def _hand_back(self, state: TravelState, choice: HandBack) -> Command[Any]:
        """Hands the trip back with the reason; after the policy's number of times the traveller is asked instead."""
        count, reason = state.get("handoff_count", 0) + 1, _REASONS[choice.reason]
        flight = state["flight_hold"] or Hold()
        about_flights = choice.reason == "flights"
        tried = tried_now(state, flight["facts"]["depart_on"], flight["facts"]["return_on"])
        record = handoff(
            AGENT,
            "flight_agent",
            "hand_back",
            reason,
            tried=None if about_flights else tried,
            offer_id=flight["offer_id"] if about_flights else "",
        )
        progress("handed back to flights")
        if count >= self.kit.policy(state).max_hand_backs:
            return ask(AGENT, f"after {count} attempts: {reason}", tried=record.get("tried"), handoff_count=count)
        return Command(goto="flight_agent", update={"handoff_count": count, "handoffs": [record]})

    def _usable(self, state: TravelState, search: Done, config: RunnableConfig) -> Rooms | None:
        if search.failed:
            return None
        strict, currency = self.kit.settings(config).validate_results, state["trip_constraints"]["currency"]
        try:
            return rooms_of(search.args, search.content, currency, strict=strict)
        except InvalidResult:
            progress("the hotel search gave an answer that cannot be right")
            return None


def chosen_room(rooms: Rooms, offer: RoomOffer, *, supersedes: Any, replaces_total: str = "") -> Hold:
    """Returns a room as chosen, before it is held."""
    facts = {
        "city": rooms.city,
        "check_in": rooms.check_in,
        "check_out": rooms.check_out,
        "stars": offer.stars,
        "area": offer.area,
    }
    return Hold(
        status="chosen",
        offer_id=offer.offer_id,
        supplier=offer.hotel,
        total=offer.total,
        currency=rooms.currency,
        hold_id="",
        expires_at="",
        booking_id="",
        supersedes=supersedes,
        replaces_total=replaces_total,
        facts=facts,
    )


def _request(state: TravelState) -> str:
    """Returns what the traveller objected to last, '' where nothing."""
    declined = [each["reason"] for each in state.get("handoffs", []) if each["kind"] == "declined"]
    return declined[-1] if declined else ""
