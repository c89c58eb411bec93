"""The payments node: re-checks both holds and writes a versioned quote. It never charges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphs.travel_booking.holds import is_in_force
from graphs.travel_booking.lookups import visit
from graphs.travel_booking.nodes.checks import Checked, check_holds
from graphs.travel_booking.nodes.kit import Kit, ask, handoff, progress
from graphs.travel_booking.quotes import draft
from graphs.travel_booking.state import Quote, TravelState

NODE: Final = "payments"
_AGENTS: Final = frozenset({"flight_agent", "hotel_agent"})


@dataclass(frozen=True, slots=True)
class QuotingNodes:
    """The node that quotes."""

    kit: Kit

    def payments(
        self, state: TravelState, config: RunnableConfig
    ) -> Command[Literal["approval", "flight_agent", "hotel_agent", "ask_traveller"]]:
        """Quotes what is held now, at the suppliers' present prices, or sends lapsed holds back to their agent."""
        self.kit.check(state, config)
        number = visit(state, NODE)
        fare, room = check_holds(self.kit, state, f"check_hold:{number}", config)
        found: dict[str, Any] = {
            "messages": [*fare.messages, *room.messages],
            "flight_hold": fare.hold,
            "hotel_hold": room.hold,
            "approval": None,
        }
        if fare.lapsed or room.lapsed:
            return back_to_agent(self.kit, state, fare, room, source=NODE, update=found)
        if fare.hold is None or not is_in_force(fare.hold):
            return ask(NODE, "no fare is held", **found)
        if room.hold is None or not is_in_force(room.hold):
            record = handoff(NODE, "hotel_agent", "hand_off", "no room is held")
            return Command(goto="hotel_agent", update={**found, "handoffs": [record]})
        quote = draft(state, fare.hold, room.hold, because=_because(state))
        args = {
            "previous_version": (state.get("quote") or Quote()).get("quote_version", 0),
            "lines": quote["lines"],
            **{name: quote[name] for name in ("total", "currency", "paid", "because")},
        }
        called = self.kit.call("register_quote", args, id=f"register_quote:{number}", config=config)
        version = int(called.content["quote_version"])
        stored: Quote = {"quote_version": version, **quote, "quoted_at": self.kit.now()}
        progress(f"quote {version} is ready")
        return Command(
            goto="approval",
            update={
                **found,
                "messages": [*found["messages"], *called.messages],
                "quote": stored,
                "quote_history": [stored],
            },
        )


def back_to_agent(
    kit: Kit, state: TravelState, fare: Checked, room: Checked, *, source: str, update: Mapping[str, Any]
) -> Command[Any]:
    """Sends lapsed holds back to be held anew, or asks the traveller where that keeps happening."""
    lapsed = [name for name, checked in (("fare", fare), ("room", room)) if checked.lapsed]
    reason, count = f"the hold of the {' and the '.join(lapsed)} has lapsed", state.get("handoff_count", 0) + 1
    target: Literal["ask_traveller", "flight_agent", "hotel_agent"] = "flight_agent" if fare.lapsed else "hotel_agent"
    if count >= kit.policy(state).max_hand_backs:
        target = "ask_traveller"
        update = {**update, "question": {"reason": f"{reason} again", "problem": ""}}
    progress(reason)
    return Command(
        goto=target,
        update={**update, "handoff_count": count, "handoffs": [handoff(source, target, "lapsed", reason)]},
    )


def _because(state: TravelState) -> str:
    """Says why there is a new quote: what the agents were last asked for, not what they have held since."""
    asked = [each["reason"] for each in state.get("handoffs", []) if each["source"] not in _AGENTS]
    return asked[-1] if state.get("quote") and asked else "the first quote"
