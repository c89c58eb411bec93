"""Intake: reads the traveller's message into the trip, and decides where it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import ValidationError

from graphs.common.owners import check_owner
from graphs.travel_booking.holds import is_in_force
from graphs.travel_booking.lookups import n_messages_of_traveller
from graphs.travel_booking.memory import read_preferences
from graphs.travel_booking.nodes.kit import Kit, handoff, progress
from graphs.travel_booking.prompts import intake_prompt
from graphs.travel_booking.redaction import redacted
from graphs.travel_booking.state import GRAPH_VERSION, HandoffKind, Question, TravelState, Trip
from graphs.travel_booking.trips import PlanTrip, RememberPreference, impossible, missing, planned
from graphs.travel_booking.unfinished import open_question, unfinished

NODE: Final = "intake"
_HOTEL_ONLY = frozenset({"min_stars", "area"})
_NO_TRIP = "Where do you want to go, and when? Please name both cities, the day you leave and the day you return."
_ASKED = "I still need your answer to my question above; a message alone approves nothing."
_LATER = "Your trip was being paid for when this message came. Please send it again now."


@dataclass(frozen=True, slots=True)
class IntakeNode:
    """The node that reads messages."""

    kit: Kit

    def intake(
        self, state: TravelState, config: RunnableConfig, runtime: Runtime[None]
    ) -> Command[
        Literal[
            "flight_agent", "hotel_agent", "ask_traveller", "approval", "capture", "ticketing", "publish", "__end__"
        ]
    ]:
        """Reads the traveller's latest message: a new trip, a change to it, or something to remember.

        A change before payment makes every approval out of date; one after payment becomes a quote of what is due. A
        payment that is under way comes first, and a message that changes nothing answers no open question.
        """
        settings = self.kit.settings(config)
        owner = check_owner(state.get("owner"), self.kit.caller(config))
        today = settings.today or self.kit.clock().date().isoformat()
        known: dict[str, Any] = {
            "owner": owner,
            "graph_version": GRAPH_VERSION,
            "policy_version": state.get("policy_version") or settings.policy_version,
            "asked_on": today,
            "preferences": read_preferences(runtime.store, owner),
        }
        messages = _cleaned(state["messages"])
        number = n_messages_of_traveller(state)
        if first := unfinished(state):
            told = AIMessage(_LATER, id=f"intake:{number}:told")
            return Command(goto=first, update={**known, "messages": [*messages, told]})
        said, wish, reply = self._read(state["messages"], today, config)
        messages += self._remember(state, wish, config)
        trip = planned(state.get("trip_constraints"), said)
        if trip == state.get("trip_constraints") or not said:
            asked = open_question(state)
            text = "Thank you, I have noted that." if wish else _ASKED if asked else reply or _NO_TRIP
            told = AIMessage(text, id=f"intake:{number}:told")
            return Command(goto=asked or "__end__", update={**known, "messages": [*messages, told]})
        known |= {
            "trip_constraints": trip,
            "approval": None,
            "handoff_count": 0,
            "question": Question(reason="", problem=""),
            "messages": messages,
        }
        if problem := missing(trip) or impossible(trip, today):
            record = handoff(NODE, "ask_traveller", "hand_off", problem)
            known["question"] = Question(reason=problem, problem="")
            return Command(goto="ask_traveller", update={**known, "handoffs": [record]})
        target = _target(state, trip)
        what = "the traveller changed the trip" if state.get("trip_constraints") else "a new trip"
        progress(f"the trip goes to the {target.replace('_', ' ')}")
        return Command(goto=target, update={**known, "handoffs": [handoff(NODE, target, _kind(state), what)]})

    def _read(
        self, messages: list[AnyMessage], today: str, config: RunnableConfig
    ) -> tuple[dict[str, Any], RememberPreference | None, str]:
        """Has the model read the latest message; a field that cannot be right is left out by its schema."""
        latest = next(message for message in reversed(messages) if isinstance(message, HumanMessage))
        shown = HumanMessage(redacted(latest.text))
        bound = self.kit.model.bind_tools((PlanTrip, RememberPreference))
        answer = bound.invoke([SystemMessage(intake_prompt(today)), shown], config, **self.kit.sampling(config))
        return *read_all(answer), answer.text

    def _remember(
        self, state: TravelState, wish: RememberPreference | None, config: RunnableConfig
    ) -> list[AnyMessage]:
        if wish is None:
            return []
        number = n_messages_of_traveller(state)
        called = self.kit.call(
            "remember_preference", wish.model_dump(), id=f"remember_preference:{number}", config=config
        )
        return called.messages


def read_all(answer: AIMessage) -> tuple[dict[str, Any], RememberPreference | None]:
    """Reads what the model made of a message: the fields that fit their schema, and what is to be remembered."""
    said: dict[str, Any] = {}
    wish: RememberPreference | None = None
    for call in answer.tool_calls:
        if call["name"] == "PlanTrip":
            said |= _fitting(call["args"])
        elif call["name"] == "RememberPreference":
            try:
                wish = RememberPreference.model_validate(call["args"])
            except ValidationError:
                continue
    return said, wish


def _fitting(args: dict[str, Any]) -> dict[str, Any]:
    try:
        return PlanTrip.model_validate(args).model_dump(exclude_none=True)
    except ValidationError as error:
        wrong = {str(each["loc"][0]) for each in error.errors(include_url=False) if each["loc"]}
        return PlanTrip.model_validate({k: v for k, v in args.items() if k not in wrong}).model_dump(exclude_none=True)


def _cleaned(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Returns the traveller's messages that held a card or document number, without it."""
    return [
        message.model_copy(update={"content": redacted(message.text)})
        for message in messages
        if isinstance(message, HumanMessage) and redacted(message.text) != message.text
    ]


def _target(state: TravelState, trip: Trip) -> Literal["flight_agent", "hotel_agent"]:
    """Returns who goes on: the hotel agent where only the room's wishes changed and a fare is in force."""
    old = state.get("trip_constraints", {})
    changed = {name for name in trip if trip.get(name) != old.get(name)}
    return "hotel_agent" if changed <= _HOTEL_ONLY and is_in_force(state.get("flight_hold")) else "flight_agent"


def _kind(state: TravelState) -> HandoffKind:
    return "change" if state.get("bookings", {}).get("flight") else "hand_off"
