"""The scripted model: reads travellers' messages and chooses fares and rooms, by what its prompt says and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from agentctl.testing import Turn
from graphs.travel_booking.reading import plan_of, wish_of

SLIP_RATE = 0.4
"""Share of answers at temperature 1 in which the model overlooks the latest arrival that was asked for."""

_RULE = re.compile(r"^- (\w+):", re.MULTILINE)


def travel_script(turn: Turn) -> AIMessage:
    """Answers for whichever part of the workflow asks: the choices that are bound tell which."""
    if "PlanTrip" in turn.tools:
        return _intake(turn)
    facts = json.loads(next(str(each.content) for each in turn.messages if isinstance(each, HumanMessage)))
    if "HoldFare" in turn.tools:
        return _fare(turn, facts)
    if "SearchRooms" in turn.tools:
        return _request(turn, facts)
    return _room(turn, facts)


def _intake(turn: Turn) -> AIMessage:
    text = next(str(each.content) for each in reversed(turn.messages) if isinstance(each, HumanMessage))
    plan, wish = plan_of(text), wish_of(text)
    calls = [("PlanTrip", plan)] if plan else []
    if wish:
        calls.append(("RememberPreference", wish))
    if calls:
        return AIMessage("", tool_calls=[turn.call(name, args, at) for at, (name, args) in enumerate(calls)])
    return AIMessage("How can I help with your trip? Please tell me both cities and both days.")


def _fare(turn: Turn, facts: Mapping[str, Any]) -> AIMessage:
    trip, offers, rules = facts["trip"], facts["offers"], _rules(turn)
    if not offers:
        return _says(turn, "NoFare", reason="no_fares")
    if trip.get("budget") and "budget" in rules:
        offers = [offer for offer in offers if Decimal(offer["total"]) <= Decimal(trip["budget"])]
        if not offers:
            return _says(turn, "NoFare", reason="over_budget")
    if trip.get("nonstop") and "nonstop" in rules:
        offers = [offer for offer in offers if not offer["stops"]]
        if not offers:
            return _says(turn, "NoFare", reason="stops")
    if trip.get("arrive_by") and "arrive_by" in rules and not turn.slips(SLIP_RATE):
        offers = [offer for offer in offers if _in_time(offer, trip["arrive_by"])]
        if not offers:
            return _says(turn, "NoFare", reason="too_late")
    preferred = facts["preferences"].get("airline", "").casefold()
    best = min(offers, key=lambda each: (Decimal(each["total"]), each["airline"] != preferred, each["offer_id"]))
    return _says(turn, "HoldFare", offer_id=best["offer_id"])


def _request(turn: Turn, facts: Mapping[str, Any]) -> AIMessage:
    """Decides whether what the traveller objects to is about the flights, by the words that the prompt names."""
    first = next((line for line in _prompt(turn).splitlines() if line.startswith("- A request about")), "")
    named = re.findall(r"flight|airline|airport", first)
    if any(re.search(rf"\b{word}", facts["request"], re.IGNORECASE) for word in named):
        return _says(turn, "HandBack", reason="flights")
    return _says(turn, "SearchRooms")


def _room(turn: Turn, facts: Mapping[str, Any]) -> AIMessage:
    trip, offers, rules = facts["trip"], facts["offers"], _rules(turn)
    if "min_stars" in rules:
        offers = [offer for offer in offers if offer["stars"] >= trip.get("min_stars", 0)]
    if trip.get("area") and "area" in rules:
        offers = [offer for offer in offers if offer["area"] == trip["area"]] or offers
    if not offers:
        return _says(turn, "HandBack", reason="no_rooms")
    if trip.get("budget") and "budget" in rules:
        left = Decimal(trip["budget"]) - Decimal(facts["flight"]["total"])
        offers = [offer for offer in offers if Decimal(offer["total"]) <= left]
        if not offers:
            return _says(turn, "HandBack", reason="over_budget")
    preferred = facts["preferences"].get("hotel_chain", "")
    best = min(offers, key=lambda each: (Decimal(each["total"]), each["chain"] != preferred, each["offer_id"]))
    return _says(turn, "HoldRoom", offer_id=best["offer_id"])


def _in_time(offer: Mapping[str, Any], latest: str) -> bool:
    return bool(offer["arrives_on"] == offer["depart_on"] and offer["arrives_at"] <= latest)


def _rules(turn: Turn) -> frozenset[str]:
    """Returns the constraints that the prompt has a rule about."""
    return frozenset(_RULE.findall(_prompt(turn)))


def _prompt(turn: Turn) -> str:
    return "\n".join(str(message.content) for message in turn.messages if isinstance(message, SystemMessage))


def _says(turn: Turn, choice: str, **args: str) -> AIMessage:
    return AIMessage("", tool_calls=[turn.call(choice, args)])
