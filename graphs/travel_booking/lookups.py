"""Reading a thread's messages: every call of a tool with what came back, and where in the hand-offs it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graphs.travel_booking.state import Handoff, TravelState
from graphs.travel_booking.trips import wishes_of

_FROM_TRAVELLER = frozenset({"intake", "ask_traveller"})


@dataclass(frozen=True, slots=True)
class Done:
    """A call that was made: `content` is parsed JSON, or the error's text."""

    id: str
    name: str
    args: Mapping[str, Any]
    content: Any
    failed: bool


def calls_in(messages: Sequence[AnyMessage], prefix: str) -> list[Done]:
    """Returns the answered calls whose id begins with `prefix`, in order."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    return [
        _done(call["name"], call["args"], answers[str(call["id"])])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if str(call["id"]).startswith(prefix) and str(call["id"]) in answers
    ]


def visit(state: TravelState, agent: str) -> int:
    """Returns how often an agent was handed the trip; calls of one visit carry its number in their ids."""
    return sum(handoff["target"] == agent for handoff in state.get("handoffs", []))


def latest_handoff(state: TravelState) -> Handoff | None:
    """Returns the latest hand-off, None before the first."""
    handoffs = state.get("handoffs", [])
    return handoffs[-1] if handoffs else None


def tried_dates(state: TravelState) -> set[tuple[str, str]]:
    """Returns the dates that did not work out for the present wishes."""
    wishes = wishes_of(state["trip_constraints"])
    tried = [handoff["tried"] for handoff in state.get("handoffs", []) if handoff.get("tried")]
    return {(each["depart_on"], each["return_on"]) for each in tried if each["wishes"] == wishes}


def unwanted_offers(state: TravelState, call: str, agent: str) -> set[str]:
    """Returns the offers not to choose: refused by the supplier in this visit, or declined by the traveller.

    What was declined is open again once the traveller has said something else about the trip.

    Args:
        state: The thread's.
        call: The tool that holds such offers.
        agent: Who chooses.
    """
    tries = calls_in(state["messages"], f"{call}:{visit(state, agent)}:")
    refused = {str(each.args["offer_id"]) for each in tries if each.failed}
    handoffs = state.get("handoffs", [])
    heard = max((at for at, each in enumerate(handoffs) if each["source"] in _FROM_TRAVELLER), default=0)
    return refused | {each["offer_id"] for each in handoffs[heard:] if each.get("offer_id")}


def n_messages_of_traveller(state: TravelState) -> int:
    """Returns how many messages the traveller has sent."""
    return sum(isinstance(message, HumanMessage) for message in state.get("messages", []))


def _done(name: str, args: Mapping[str, Any], answer: ToolMessage) -> Done:
    failed = answer.status == "error"
    try:
        return Done(answer.tool_call_id, name, args, answer.text if failed else json.loads(answer.text), failed)
    except ValueError:
        return Done(answer.tool_call_id, name, args, answer.text, True)
