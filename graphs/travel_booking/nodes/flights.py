"""The flight agent: asks the airlines side by side, lets the model choose, holds one fare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from graphs.travel_booking.holds import held, is_in_force, superseded
from graphs.travel_booking.lookups import Done, calls_in, tried_dates, unwanted_offers, visit
from graphs.travel_booking.nodes.briefings import flights_briefing
from graphs.travel_booking.nodes.choices import HoldFare, NoFare
from graphs.travel_booking.nodes.kit import Kit, ask, handoff, progress, tried_now
from graphs.travel_booking.prompts import flights_prompt
from graphs.travel_booking.results import FareOffer, Fares, HoldState, InvalidResult, fares_of, read_as
from graphs.travel_booking.state import Hold, TravelState
from graphs.travel_booking.trips import next_dates

AGENT: Final = "flight_agent"
_REASONS = {
    "no_fares": "there is no fare on these dates",
    "over_budget": "every fare is above the budget",
    "too_late": "every fare arrives too late",
    "stops": "no flight is nonstop",
}


class AirlineSearch(TypedDict):
    """What one parallel search is given: the call's id and arguments, and nothing else of the trip."""

    id: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FlightNodes:
    """The nodes of the flight agent."""

    kit: Kit

    def flight_agent(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["search_airline", "hold_fare", "flight_agent", "ask_traveller"]]:
        """Searches the nearest untried dates; once they are searched, has the model choose among the fares.

        Dates on which no fare will do are tried no more; when none are left the traveller is asked.
        """
        self.kit.check(state, config)
        searches = calls_in(state["messages"], f"search_flights:{visit(state, AGENT)}:")
        if not searches:
            return self._search(state)
        found = self._usable(state, searches, config)
        if not found and all(search.failed for search in searches):
            return ask(AGENT, "no airline answers at present")
        return self._choose(state, found, searches, config)

    def search_airline(self, search: AirlineSearch, config: RunnableConfig) -> dict[str, Any]:
        """Asks one airline."""
        called = self.kit.call("search_flights", search["args"], id=search["id"], config=config)
        progress(f"{search['args']['airline']} answered")
        return {"messages": called.messages}

    def hold_fare(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["flight_agent", "hotel_agent", "payments"]]:
        """Holds the chosen fare, then gives back the hold that it takes the place of."""
        chosen, number = state["flight_hold"] or Hold(), visit(state, AGENT)
        args = {
            "offer_id": chosen["offer_id"],
            "airline": chosen["supplier"],
            "travellers": state["trip_constraints"]["travellers"],
            "total": chosen["total"],
            "currency": chosen["currency"],
        }
        called = self.kit.call("hold_fare", args, id=f"hold_fare:{number}:{chosen['offer_id']}", config=config)
        if called.failed:
            refused: Hold = {**chosen, "status": "refused"}
            return Command(goto=AGENT, update={"messages": called.messages, "flight_hold": refused})
        hold = held(chosen, read_as(HoldState, called.content))
        release = self.kit.release(chosen.get("supersedes"), config)
        target = _after_hold(state, hold)
        progress("fare held")
        return Command(
            goto=target,
            update={
                "messages": [*called.messages, *release],
                "flight_hold": {**hold, "supersedes": None},
                "handoffs": [handoff(AGENT, target, "hand_off", f"fare {hold['offer_id']} is held")],
            },
        )

    def _search(self, state: TravelState) -> Command[Any]:
        trip, number, policy = state["trip_constraints"], visit(state, AGENT), self.kit.policy(state)
        dates = next_dates(trip, tried_dates(state), state.get("asked_on", ""))
        if dates is None:
            return ask(AGENT, "no dates are left on which flights and rooms go together")
        airlines = _ranked(policy.airlines, state.get("preferences", {}).get("airline", ""))[: policy.max_fan_out]
        progress(f"searching {len(airlines)} airlines")
        return Command(
            goto=[
                Send(
                    "search_airline",
                    AirlineSearch(
                        id=f"search_flights:{number}:{airline}",
                        args={
                            "airline": airline,
                            "origin": trip["origin"],
                            "destination": trip["destination"],
                            "depart_on": dates[0],
                            "return_on": dates[1],
                            "travellers": trip["travellers"],
                        },
                    ),
                )
                for airline in airlines
            ]
        )

    def _usable(self, state: TravelState, searches: list[Done], config: RunnableConfig) -> list[Fares]:
        """Reads the answers that can be used; a failed or inconsistent one counts as no offers."""
        strict, currency = self.kit.settings(config).validate_results, state["trip_constraints"]["currency"]
        found = []
        for search in searches:
            if not search.failed:
                try:
                    found.append(fares_of(search.args, search.content, currency, strict=strict))
                except InvalidResult:
                    progress(f"{search.args['airline']} gave an answer that cannot be right")
        return found

    def _choose(
        self, state: TravelState, found: list[Fares], searches: list[Done], config: RunnableConfig
    ) -> Command[Any]:
        refused = unwanted_offers(state, "hold_fare", AGENT)
        briefing = flights_briefing(state, found, refused)
        prompt = flights_prompt(self.kit.settings(config).flights_prompt)
        choice = self.kit.choose(prompt, briefing, (HoldFare, NoFare), config)
        if isinstance(choice, HoldFare) and choice.offer_id not in refused:
            for fares in found:
                for offer in fares.offers:
                    if offer.offer_id == choice.offer_id:
                        return Command(goto="hold_fare", update={"flight_hold": _chosen(state, fares, offer)})
        args, reason = searches[0].args, choice.reason if isinstance(choice, NoFare) else "no_fares"
        return self._other_dates(state, args["depart_on"], args["return_on"], _REASONS[reason])

    def _other_dates(self, state: TravelState, depart_on: str, return_on: str, reason: str) -> Command[Any]:
        """Tries other dates; after the policy's number of attempts the traveller is asked instead."""
        count, tried = state.get("handoff_count", 0) + 1, tried_now(state, depart_on, return_on)
        if count >= self.kit.policy(state).max_hand_backs:
            return ask(AGENT, f"after {count} attempts: {reason}", tried=tried, handoff_count=count)
        record = handoff(AGENT, AGENT, "next_dates", reason, tried=tried)
        return Command(goto=AGENT, update={"handoffs": [record], "handoff_count": count})


def _chosen(state: TravelState, fares: Fares, offer: FareOffer) -> Hold:
    facts = {
        "origin": fares.origin,
        "destination": fares.destination,
        "depart_on": fares.depart_on,
        "return_on": fares.return_on,
        **offer.model_dump(exclude={"offer_id", "total"}),
    }
    return Hold(
        status="chosen",
        offer_id=offer.offer_id,
        supplier=fares.airline,
        total=offer.total,
        currency=fares.currency,
        hold_id="",
        expires_at="",
        booking_id="",
        supersedes=superseded("fare", state.get("flight_hold")),
        replaces_total="",
        facts=facts,
    )


def _after_hold(state: TravelState, fare: Hold) -> Literal["hotel_agent", "payments"]:
    """A room that is in force on the fare's dates is kept; otherwise the hotel agent is next."""
    room = state.get("hotel_hold")
    if room is None or not is_in_force(room):
        return "hotel_agent"
    wanted = (fare["facts"]["arrives_on"], fare["facts"]["return_on"])
    return "payments" if (room["facts"]["check_in"], room["facts"]["check_out"]) == wanted else "hotel_agent"


def _ranked(airlines: tuple[str, ...], preferred: str) -> list[str]:
    return sorted(airlines, key=lambda airline: airline.casefold() != preferred.casefold())
