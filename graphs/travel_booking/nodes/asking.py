"""Asking the traveller for what only they can decide: other dates, a higher budget, or the end of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, interrupt
from pydantic import ConfigDict, Field, StrictBool

from graphs.travel_booking.nodes.answers import BadAnswer, read_answer
from graphs.travel_booking.nodes.approval import check_answerer
from graphs.travel_booking.nodes.kit import Kit, handoff, progress
from graphs.travel_booking.state import Question, TravelState
from graphs.travel_booking.trips import PlanTrip, impossible, missing, planned

NODE: Final = "ask_traveller"


class Flexibility(PlanTrip):
    """An answer: what changes about the trip, `again` to try the same once more, or `stop`."""

    model_config = ConfigDict(extra="forbid")

    again: StrictBool = Field(default=False, description="Whether to try once more as it is.")
    stop: StrictBool = Field(default=False, description="Whether the trip is given up.")


@dataclass(frozen=True, slots=True)
class AskingNode:
    """The node that asks. Before `interrupt()` it only reads state."""

    kit: Kit

    def ask_traveller(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["ask_traveller", "flight_agent", "close"]]:
        """Asks for flexibility; an answer that cannot be used is asked again, with the reason."""
        asked = state.get("question") or Question(reason="", problem="")
        trip = state.get("trip_constraints", {})
        raw = interrupt(
            {
                "kind": "flexibility",
                "reason": asked["reason"],
                "trip": trip,
                "answers": list(Flexibility.model_fields),
                "problem": asked["problem"],
            }
        )
        try:
            check_answerer(self.kit.caller(config), state.get("owner"))
            answer = read_answer(Flexibility, raw)
            if answer.stop:
                return Command(goto="close", update={"handoffs": [handoff(NODE, "close", "declined", "given up")]})
            changed = planned(trip, answer.model_dump(exclude={"again", "stop"}))
            if changed == trip and not answer.again:
                raise BadAnswer("nothing changes: say what may change, or again, or stop")
            today = self.kit.settings(config).today or state.get("asked_on", "")
            if problem := missing(changed) or impossible(changed, today):
                raise BadAnswer(problem)
        except BadAnswer as bad:
            return _again(asked, str(bad))
        progress("the traveller answered")
        return Command(
            goto="flight_agent",
            update={
                "trip_constraints": changed,
                "question": Question(reason="", problem=""),
                "handoff_count": 0,
                "handoffs": [handoff(NODE, "flight_agent", "hand_off", "the traveller answered")],
            },
        )


def _again(asked: Question, problem: str) -> Command[Any]:
    return Command(goto=NODE, update={"question": Question(reason=asked["reason"], problem=problem)})
