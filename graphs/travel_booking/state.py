"""What a trip's thread remembers, and the settings that a run gets from its configuration."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

from graphs.common.owners import Owner
from graphs.travel_booking.policy import CURRENT_POLICY
from graphs.travel_booking.prompts import CURRENT_FLIGHTS_PROMPT, CURRENT_HOTELS_PROMPT

GRAPH_VERSION = 2

HandoffKind = Literal["hand_off", "hand_back", "lapsed", "lost", "re_price", "declined", "change", "next_dates"]
HoldStatus = Literal["chosen", "held", "refused", "lapsed", "booked", "lost", "released"]


class Trip(TypedDict, total=False):
    """What the traveller wants. Amounts are decimal text in `currency`, dates ISO, times of day HH:MM.

    Attributes:
        origin: Where the trip begins.
        destination: Where it goes.
        depart_on: Day of the outbound flight.
        return_on: Day of the flight home.
        flexible_days: How many days both may move, earlier or later.
        travellers: How many.
        arrive_by: Latest arrival of the outbound flight, '' for any.
        nonstop: Whether flights must not stop.
        budget: Most that all of it may cost, '' for no limit.
        min_stars: Fewest stars of the hotel.
        area: The part of the city to stay in, '' for any.
        currency: Of every amount of the trip.
    """

    origin: str
    destination: str
    depart_on: str
    return_on: str
    flexible_days: int
    travellers: int
    arrive_by: str
    nonstop: bool
    budget: str
    min_stars: int
    area: str
    currency: str


class HoldRef(TypedDict):
    """A hold at a supplier, enough to release it."""

    kind: Literal["fare", "room"]
    hold_id: str


class Hold(TypedDict, total=False):
    """A fare or a room: chosen, held, booked, or lost.

    Attributes:
        status: Where it stands; `chosen` before the supplier has it.
        offer_id: The supplier's offer.
        supplier: Airline or hotel.
        total: Price for all travellers and nights.
        currency: Its currency.
        hold_id: The supplier's hold, '' before there is one.
        expires_at: When the hold ends, ISO.
        booking_id: The confirmed booking, '' before there is one.
        supersedes: The hold that this one takes the place of; released once this one is held.
        replaces_total: Price of the lost room that this one is the equivalent of, '' where it is none.
        facts: What the traveller is shown: times and stops of a fare, dates and stars of a room.
    """

    status: HoldStatus
    offer_id: str
    supplier: str
    total: str
    currency: str
    hold_id: str
    expires_at: str
    booking_id: str
    supersedes: HoldRef | None
    replaces_total: str
    facts: dict[str, Any]


class Line(TypedDict):
    """One line of a quote."""

    kind: Literal["flight", "hotel"]
    reference: str
    text: str
    total: str


class Change(TypedDict):
    """What differs between two quotes."""

    what: str
    before: str
    after: str


class Quote(TypedDict, total=False):
    """One exact snapshot that an approval is bound to.

    Attributes:
        quote_version: Grows with each different quote of the thread.
        lines: Flight and hotel.
        total: Sum of the lines.
        currency: Its currency.
        paid: What was paid before, net.
        due: `total` less `paid`: charged where above zero, refunded where below.
        expires_at: When the first of its holds ends, ISO; '' where nothing is held any more.
        quoted_at: When it was made, ISO.
        because: Why a new quote was needed.
        unmet: What the traveller asked for and does not get.
        changes: What differs from the previous quote.
    """

    quote_version: int
    lines: list[Line]
    total: str
    currency: str
    paid: str
    due: str
    expires_at: str
    quoted_at: str
    because: str
    unmet: list[str]
    changes: list[Change]


class Approval(TypedDict, total=False):
    """The latest answer to a quote.

    Attributes:
        status: `approved`, `declined`, or `asked_again` where the answer could not be used.
        quote_version: The quote it is about.
        by: Who answered.
        answered_at: When, ISO.
        payment_method: Token of the payment method.
        step_up: Reference of the step-up proof, '' where none was needed.
        problem: Why the answer could not be used.
    """

    status: Literal["approved", "declined", "asked_again"]
    quote_version: int
    by: str
    answered_at: str
    payment_method: str
    step_up: str
    problem: str


class Capture(TypedDict):
    """A charge that went through."""

    payment_id: str
    quote_version: int
    amount: str


class Refund(TypedDict):
    """Money that went back."""

    refund_id: str
    payment_id: str
    amount: str
    reason: str


class Payment(TypedDict, total=False):
    """What was paid for the trip.

    Attributes:
        status: `pending` before the provider is asked, then `settled` or `declined`.
        quote_version: The quote that it is about.
        currency: Of all amounts.
        captures: Charges, oldest first.
        refunds: What went back, oldest first.
        n_failures: Captures that were refused.
        failure: Why the latest was.
    """

    status: Literal["pending", "settled", "declined"]
    quote_version: int
    currency: str
    captures: list[Capture]
    refunds: list[Refund]
    n_failures: int
    failure: str


class Booking(TypedDict):
    """One confirmed part of the trip, with the hold that it was."""

    booking_id: str
    hold: Hold


class Bookings(TypedDict, total=False):
    """What is booked.

    Attributes:
        status: `partial` while parts are missing, `complete` before it was published, then `published`.
        flight: The ticket.
        hotel: The room.
        trip: The trip that was booked.
        quote_version: The quote that was paid.
    """

    status: Literal["partial", "complete", "published"]
    flight: Booking | None
    hotel: Booking | None
    trip: Trip
    quote_version: int


class Tried(TypedDict):
    """A combination that did not work out, under the wishes that it was tried for."""

    depart_on: str
    return_on: str
    wishes: str


class Handoff(TypedDict, total=False):
    """One hand-off between parts of the workflow.

    Attributes:
        source: Who hands over.
        target: To whom.
        kind: Why it is one.
        reason: One line for people and for the next agent.
        tried: The combination that failed, for a hand-back.
        offer_id: The offer that the traveller does not want, for a declined quote.
    """

    source: str
    target: str
    kind: HandoffKind
    reason: str
    tried: Tried
    offer_id: str


class Question(TypedDict):
    """What the traveller is asked, and what was wrong with the latest answer ('' when nothing was)."""

    reason: str
    problem: str


class TravelState(TypedDict, total=False):
    """State of a thread, one trip.

    Only `messages`, `quote_history` and `handoffs` have reducers; they are appended to. A hold is written by the agent
    that chooses it and by the nodes that hold, confirm and release it, never by two in one step.

    Attributes:
        messages: The conversation, and every call to a tool beside its result.
        owner: Whose thread it is (intake, once).
        graph_version: The version of the graph that wrote last (intake).
        policy_version: The policy the trip is handled by; stays what it was when the thread began (intake).
        asked_on: The day of the traveller's latest message, ISO (intake).
        preferences: What the memory store held on the traveller (intake).
        trip_constraints: What the traveller wants (intake, ask_traveller, close).
        flight_hold: The fare.
        hotel_hold: The room.
        quote: The quote in force (payments).
        approval: The latest answer to a quote (approval).
        payment: What was paid (recheck, capture, compensate, close).
        bookings: What is booked (ticketing, compensate).
        quote_history: Every quote, oldest first (payments).
        handoffs: Every hand-off, oldest first.
        handoff_count: Hand-backs and lapses since the traveller was last heard.
        question: What ask_traveller asks.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    owner: Owner
    graph_version: int
    policy_version: str
    asked_on: str
    preferences: dict[str, str]
    trip_constraints: Trip
    flight_hold: Hold | None
    hotel_hold: Hold | None
    quote: Quote | None
    approval: Approval | None
    payment: Payment | None
    bookings: Bookings
    quote_history: Annotated[list[Quote], operator.add]
    handoffs: Annotated[list[Handoff], operator.add]
    handoff_count: int
    question: Question


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is set up: scalars of `configurable`, which LangGraph keeps in checkpoint metadata.

    Attributes:
        flights_prompt: Version of the flight agent's prompt.
        hotels_prompt: Version of the hotel agent's prompt.
        temperature: The model's sampling temperature; None leaves it to the model.
        validate_results: Whether search results must be about what was asked; off reproduces the days before that.
        policy_version: The policy for new threads.
        today: ISO date of the traveller's message; by default the clock's.
        payment_method: Token of the traveller's usual payment method.
        step_up: Reference of a step-up proof that the caller's session holds, '' for none.
    """

    flights_prompt: str = CURRENT_FLIGHTS_PROMPT
    hotels_prompt: str = CURRENT_HOTELS_PROMPT
    temperature: float | None = None
    validate_results: bool = True
    policy_version: str = CURRENT_POLICY
    today: str | None = None
    payment_method: str = ""
    step_up: str = ""

    def over(self, configurable: Mapping[str, Any]) -> Settings:
        """Returns these settings with those that a run's `configurable` names put over them."""
        today = configurable.get("today", self.today)
        temperature = configurable.get("temperature", self.temperature)
        return Settings(
            flights_prompt=str(configurable.get("flights_prompt", self.flights_prompt)),
            hotels_prompt=str(configurable.get("hotels_prompt", self.hotels_prompt)),
            temperature=None if temperature is None else float(temperature),
            validate_results=_flag(configurable.get("validate_results", self.validate_results)),
            policy_version=str(configurable.get("policy_version", self.policy_version)),
            today=None if today is None else str(today),
            payment_method=str(configurable.get("payment_method", self.payment_method)),
            step_up=str(configurable.get("step_up", self.step_up)),
        )


def _flag(value: object) -> bool:
    return value.strip().lower() not in ("false", "0", "no", "") if isinstance(value, str) else bool(value)
