"""Whole trips: what is searched, held, quoted, paid and told, from a message to a ticket."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs.common.owners import NotTheOwner
from graphs.travel_booking.door import say
from graphs.travel_booking.state import GRAPH_VERSION
from tests.support.travel import (
    BACK,
    NOW,
    OUT,
    TRIP,
    Agency,
    approve,
    asked,
    calls_of,
    fare,
    quoted,
    resume,
    room,
    traveller,
)

ROUTE = [
    "intake",
    "flight_agent",
    "search_airline",
    "search_airline",
    "search_airline",
    "flight_agent",
    "hold_fare",
    "hotel_agent",
    "search_hotels",
    "hotel_agent",
    "hold_room",
    "payments",
    "approval",
    "recheck",
    "capture",
    "ticketing",
    "publish",
]


def _route(graph: Any, config: Any) -> list[str]:
    history = reversed(list(graph.get_state_history(config)))
    return [task.name for snapshot in history for task in snapshot.tasks if task.name != "__start__"]


def test_a_trip_is_held_quoted_approved_paid_once_booked_and_told(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    state = approve(graph, traveller("t"))
    assert _route(graph, traveller("t")) == ROUTE
    assert agency.backoffice.counters()["effects"] == {
        "fare_hold": 1,
        "room_hold": 1,
        "capture": 1,
        "flight_booking": 1,
        "hotel_booking": 1,
    }
    assert agency.effects("capture")[0]["amount"] == "500.00"
    assert state["bookings"]["status"] == "published"
    assert state["messages"][-1].content == (
        "Your trip is booked. Flight fl_000004: Lisbon to Oslo with aurora, 2026-12-10 09:00, arriving 2026-12-10"
        " 14:00, nonstop, back 2026-12-13. Hotel ho_000005: Grand (4 stars, Centre), 2026-12-10 to 2026-12-13."
        " You paid 500.00 EUR in all."
    )
    assert (state["graph_version"], state["policy_version"]) == (GRAPH_VERSION, "2026-11")


def test_the_quote_names_lines_total_deadline_and_version(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    question = asked(graph, traveller("t"))
    assert {name: question[name] for name in ("quote_version", "total", "currency", "due", "deadline", "because")} == {
        "quote_version": 1,
        "total": "500.00",
        "currency": "EUR",
        "due": "500.00",
        "deadline": "2026-12-01T18:00:00+00:00",
        "because": "the first quote",
    }
    assert [(line["kind"], line["total"]) for line in question["lines"]] == [("flight", "200.00"), ("hotel", "300.00")]
    assert graph.get_state(traveller("t")).values["quote"]["quoted_at"] == NOW.isoformat()


def test_nothing_is_charged_before_the_traveller_answered(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    assert graph.get_state(traveller("t")).next == ("approval",)
    assert set(agency.backoffice.counters()["effects"]) == {"fare_hold", "room_hold"}


def test_as_many_airlines_are_asked_side_by_side_as_the_policy_allows(agency: Agency) -> None:
    together = threading.Barrier(3)

    class Meeting:
        def __init__(self, tool: Any) -> None:
            self._tool = tool

        def invoke(self, call: Any, config: Any) -> Any:
            together.wait(timeout=30)
            return self._tool.invoke(call, config)

    class Tools:
        def __init__(self, tools: Any) -> None:
            self._tools = tools

        def __getitem__(self, name: str) -> Any:
            tool = self._tools[name]
            return Meeting(tool) if name == "search_flights" else tool

    graph = agency.graph(InMemorySaver(), tools=Tools(agency.tools()))  # type: ignore[arg-type]
    state = say(graph, traveller("t"), TRIP)
    airlines = [call["args"]["airline"] for call in calls_of(state["messages"], "search_flights")]
    assert airlines == ["aurora", "borealis", "cirrus"]


def test_a_search_is_given_its_arguments_and_nothing_else_of_the_trip(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    calls = calls_of(graph.get_state(traveller("t")).values["messages"], "search_flights")
    assert {tuple(call["args"]) for call in calls} == {
        ("airline", "origin", "destination", "depart_on", "return_on", "travellers")
    }


def test_an_airline_that_is_down_holds_no_other_up(agency: Agency) -> None:
    agency.fares("borealis", fare("bo-1", "210.00"))
    agency.backoffice.add_fault("error", "GET /flights", subject="aurora")
    graph = quoted(agency, InMemorySaver())
    assert asked(graph, traveller("t"))["lines"][0]["total"] == "210.00"


def test_where_no_airline_answers_the_traveller_is_asked_and_may_try_again(agency: Agency) -> None:
    agency.backoffice.add_fault("error", "GET /flights")
    graph = quoted(agency, InMemorySaver())
    assert asked(graph, traveller("t"))["reason"] == "no airline answers at present"
    agency.backoffice.clear_faults()
    resume(graph, traveller("t"), {"again": True})
    assert asked(graph, traveller("t"))["kind"] == "approve_quote"


@pytest.mark.parametrize(
    ("wish", "offers", "chosen"),
    [
        ("", (fare("late", "150.00", arrives_at="22:00"), fare("early", "180.00")), "late"),
        ("arriving by 18:00", (fare("late", "150.00", arrives_at="22:00"), fare("early", "180.00")), "early"),
        ("arriving by 18:00", (fare("night", "150.00", arrives_on="2026-12-11", arrives_at="06:00"), fare("e")), "e"),
        ("nonstop", (fare("slow", "150.00", stops=1), fare("direct", "180.00")), "direct"),
    ],
)
def test_the_flight_agent_keeps_to_what_the_traveller_asked(
    agency: Agency, wish: str, offers: tuple[dict[str, Any], ...], chosen: str
) -> None:
    agency.fares("aurora", *offers)
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} {wish}")
    assert graph.get_state(traveller("t")).values["flight_hold"]["offer_id"] == chosen


@pytest.mark.parametrize(
    ("wish", "rooms", "chosen"),
    [
        ("", (room("cheap", "90.00", stars=2), room("good")), "cheap"),
        ("at least 4 stars", (room("cheap", "90.00", stars=2), room("good")), "good"),
        ("near the Opera", (room("far", "90.00"), room("near", area="Opera")), "near"),
    ],
)
def test_the_hotel_agent_keeps_to_what_the_traveller_asked(
    agency: Agency, wish: str, rooms: tuple[dict[str, Any], ...], chosen: str
) -> None:
    agency.rooms(*rooms)
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} {wish}")
    assert graph.get_state(traveller("t")).values["hotel_hold"]["offer_id"] == chosen


def test_the_room_is_for_the_nights_from_the_flights_arrival(agency: Agency) -> None:
    agency.fares("aurora", fare("night", arrives_on="2026-12-11", arrives_at="06:00"))
    agency.rooms(room("later"), check_in="2026-12-11")
    graph = quoted(agency, InMemorySaver())
    (search,) = calls_of(graph.get_state(traveller("t")).values["messages"], "search_hotels")
    assert (search["args"]["check_in"], search["args"]["check_out"]) == ("2026-12-11", BACK)


def test_a_quote_says_which_wishes_it_leaves_unmet(agency: Agency) -> None:
    agency.fares("aurora", fare("late", arrives_at="22:00"))
    graph = agency.graph(InMemorySaver())
    config = traveller("t", flights_prompt="v1")
    say(graph, config, f"{TRIP} arriving by 18:00")
    assert asked(graph, config)["unmet"] == [f"arrives on {OUT} at 22:00, after 18:00"]


def test_a_fare_that_is_gone_or_dearer_when_held_is_left_for_the_next(agency: Agency) -> None:
    agency.fares("aurora", fare("gone", "100.00"), fare("dearer", "110.00"), fare("next", "120.00"))
    agency.backoffice.put("offers", "dearer", {"offer_id": "dearer", "total": "400.00", "currency": "EUR"})
    agency.backoffice.put("offers", "gone", {"offer_id": "gone", "total": "0.00", "currency": "EUR"})
    graph = quoted(agency, InMemorySaver())
    state = graph.get_state(traveller("t")).values
    assert state["flight_hold"]["offer_id"] == "next"
    assert [hold["offer_id"] for hold in agency.effects("fare_hold")] == ["next"]


def test_progress_is_streamed_and_names_no_person(agency: Agency) -> None:
    graph = agency.graph(InMemorySaver())
    config = traveller("t", user_id="u-secret")
    message: Any = {"messages": [HumanMessage(TRIP)]}
    events = [event["progress"] for event in graph.stream(message, config, stream_mode="custom", durability="sync")]
    assert "searching 3 airlines" in events
    assert {"fare held", "hotels searched", "room held", "quote 1 is ready"} <= set(events)
    assert "u-secret" not in json.dumps(events)


def test_a_message_without_a_trip_gets_a_reply_and_calls_nothing(agency: Agency) -> None:
    state = say(agency.graph(InMemorySaver()), traveller("t"), "Good morning!")
    assert state["messages"][-1].content.startswith("How can I help with your trip?")
    assert agency.backoffice.counters()["n_calls"] == 0


def test_another_tenant_or_user_cannot_write_to_the_thread(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    before = graph.get_state(traveller("t"))
    for stranger in (traveller("t", user_id="u-2"), traveller("t", tenant="globex")):
        with pytest.raises(NotTheOwner):
            say(graph, stranger, "back 2026-12-14 instead")
    assert graph.get_state(traveller("t")) == before
