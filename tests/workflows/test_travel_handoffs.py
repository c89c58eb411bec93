"""Hand-offs: what goes back, what is tried no more, what is released, and when the traveller is asked."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graphs.travel_booking.door import say
from tests.support.travel import (
    BACK,
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

NEXT, NEXT_BACK = "2026-12-11", "2026-12-14"
BEFORE, BEFORE_BACK = "2026-12-09", "2026-12-12"


def _kinds(state: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(handoff["source"], handoff["target"], handoff["kind"]) for handoff in state["handoffs"]]


def _searched(state: dict[str, Any]) -> list[tuple[str, str]]:
    searches = (call["args"] for call in calls_of(state["messages"], "search_flights"))
    return list(dict.fromkeys((args["depart_on"], args["return_on"]) for args in searches))


def _next_day(agency: Agency) -> None:
    agency.fares("aurora", fare("au-2", "220.00", arrives_on=NEXT), out=NEXT, back=NEXT_BACK)


def test_without_a_room_the_hotel_agent_hands_back_and_other_dates_are_held(agency: Agency) -> None:
    agency.rooms()
    _next_day(agency)
    agency.rooms(room("lodge"), check_in=NEXT, check_out=NEXT_BACK)
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} flexible by 1")
    state = graph.get_state(traveller("t")).values
    assert ("hotel_agent", "flight_agent", "hand_back") in _kinds(state)
    assert state["handoff_count"] == 1
    assert state["flight_hold"]["facts"]["depart_on"] == NEXT
    handed_back = next(handoff for handoff in state["handoffs"] if handoff["kind"] == "hand_back")
    assert handed_back["reason"] == "no room on these dates will do"
    assert (handed_back["tried"]["depart_on"], handed_back["tried"]["return_on"]) == (OUT, BACK)


def test_the_fare_that_another_takes_the_place_of_is_released_once_that_one_is_held(agency: Agency) -> None:
    agency.rooms()
    _next_day(agency)
    agency.rooms(room("lodge"), check_in=NEXT, check_out=NEXT_BACK)
    quoted(agency, InMemorySaver(), text=f"{TRIP} flexible by 1")
    assert agency.holds() == {"au-1": "released", "au-2": "held", "lodge": "held"}


def test_dates_that_did_not_work_out_are_not_tried_again(agency: Agency) -> None:
    agency.rooms()
    _next_day(agency)
    agency.fares("aurora", fare("au-0", arrives_on=BEFORE), out=BEFORE, back=BEFORE_BACK)
    agency.rooms(check_in=NEXT, check_out=NEXT_BACK)
    agency.rooms(room("inn"), check_in=BEFORE, check_out=BEFORE_BACK)
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} flexible by 1")
    state = graph.get_state(traveller("t")).values
    assert _searched(state) == [(OUT, BACK), (NEXT, NEXT_BACK), (BEFORE, BEFORE_BACK)]
    assert state["hotel_hold"]["offer_id"] == "inn"


def test_after_three_hand_backs_the_traveller_is_asked_for_flexibility(agency: Agency) -> None:
    days = [("2026-12-10", "2026-12-13"), ("2026-12-11", "2026-12-14"), ("2026-12-09", "2026-12-12")]
    for number, (out, back) in enumerate(days):
        agency.fares("aurora", fare(f"au-{number}", arrives_on=out), out=out, back=back)
        agency.rooms(check_in=out, check_out=back)
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} flexible by 5")
    question = asked(graph, traveller("t"))
    assert question["kind"] == "flexibility"
    assert question["reason"] == "after 3 attempts: no room on these dates will do"
    assert _searched(graph.get_state(traveller("t")).values) == days


@pytest.mark.parametrize("city", ["Oslo", "Rome"])
def test_impossible_dates_are_asked_about_and_do_not_loop(agency: Agency, city: str) -> None:
    agency.fares("aurora")
    graph = quoted(agency, InMemorySaver(), text=TRIP.replace("Oslo", city))
    assert asked(graph, traveller("t"))["reason"] == "no dates are left on which flights and rooms go together"
    assert len(calls_of(graph.get_state(traveller("t")).values["messages"], "search_flights")) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("From Lisbon to Oslo, leaving 2026-12-10, back 2026-12-09.", "the return on 2026-12-09 is not after"),
        ("From Lisbon to Oslo, leaving 2026-11-01, back 2026-11-05.", "the departure on 2026-11-01 is in the past"),
        ("From Lisbon to Oslo, leaving 2026-02-30, back 2026-12-05.", "a day does not exist"),
        ("From Oslo to Oslo, leaving 2026-12-10, back 2026-12-13.", "the trip begins and ends in Oslo"),
        ("From Lisbon to Oslo, leaving 2026-12-10.", "please tell me the day of return"),
    ],
)
def test_a_trip_that_nobody_can_make_is_asked_about_before_anything_is_searched(
    agency: Agency, text: str, reason: str
) -> None:
    graph = quoted(agency, InMemorySaver(), text=text)
    assert asked(graph, traveller("t"))["reason"].startswith(reason)
    assert agency.backoffice.counters()["n_calls"] == 0


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("next week", "the answer: "),
        ({"depart_on": "soon"}, "depart_on: "),
        ({"return_on": "2026-12-01"}, "the return on 2026-12-01 is not after"),
        ({"flexible_days": 30}, "flexible_days: "),
        ({"stop": "yes"}, "stop: "),
        ({"again": False}, "nothing changes"),
        ({"owner": "u-2"}, "owner: Extra inputs"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_again_with_the_reason(
    agency: Agency, answer: object, problem: str
) -> None:
    agency.fares("aurora")
    graph = quoted(agency, InMemorySaver())
    resume(graph, traveller("t"), answer)
    assert asked(graph, traveller("t"))["problem"].startswith(problem)
    agency.fares("aurora", fare("au-1"))
    resume(graph, traveller("t"), {"again": True, "budget": "900.00"})
    assert asked(graph, traveller("t"))["kind"] == "approve_quote"


def test_the_travellers_question_is_answered_by_the_traveller_only(agency: Agency) -> None:
    agency.fares("aurora")
    graph = quoted(agency, InMemorySaver())
    resume(graph, traveller("t", actor="agent-7", actor_role="agent"), {"stop": True})
    assert asked(graph, traveller("t"))["problem"] == "agent-7 as agent may not answer for the traveller"


def test_more_flexibility_goes_on_with_the_dates_that_were_not_tried(agency: Agency) -> None:
    agency.fares("aurora")
    _next_day(agency)
    agency.rooms(room("lodge"), check_in=NEXT, check_out=NEXT_BACK)
    graph = quoted(agency, InMemorySaver())
    state = resume(graph, traveller("t"), {"flexible_days": 2})
    assert _searched(state) == [(OUT, BACK), (NEXT, NEXT_BACK)]
    assert state["handoff_count"] == 0
    assert asked(graph, traveller("t"))["kind"] == "approve_quote"


def test_other_wishes_open_the_same_dates_again(agency: Agency) -> None:
    agency.fares("aurora", fare("dear", "900.00"))
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} at most 500")
    assert "no dates are left" in asked(graph, traveller("t"))["reason"]
    resume(graph, traveller("t"), {"budget": "1500.00"})
    assert asked(graph, traveller("t"))["total"] == "1200.00"


def test_a_trip_that_is_given_up_releases_what_was_held(agency: Agency) -> None:
    agency.rooms()
    graph = quoted(agency, InMemorySaver())
    assert agency.holds() == {"au-1": "held"}
    state = resume(graph, traveller("t"), {"stop": True})
    assert agency.holds() == {"au-1": "released"}
    assert state["messages"][-1].content == "Nothing was booked, and nothing is held any more."


def test_a_budget_that_no_room_fits_into_is_handed_back_as_such(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} at most 400")
    state = graph.get_state(traveller("t")).values
    assert [each["reason"] for each in state["handoffs"] if each["kind"] == "hand_back"] == [
        "with any room the trip is above the budget"
    ]
    assert asked(graph, traveller("t"))["kind"] == "flexibility"


def test_a_room_is_searched_again_once_where_the_answer_is_about_other_dates(agency: Agency) -> None:
    agency.rooms(room("grand"), replica={"check_in": NEXT, "check_out": NEXT_BACK})
    agency.backoffice.add_fault("stale", "GET /hotels", times=1)
    graph = quoted(agency, InMemorySaver())
    state = graph.get_state(traveller("t")).values
    assert len(calls_of(state["messages"], "search_hotels")) == 2
    assert state["hotel_hold"]["facts"]["check_in"] == OUT


def test_where_every_answer_is_about_other_dates_no_room_is_held(agency: Agency) -> None:
    agency.rooms(room("grand"), replica={"check_in": NEXT, "check_out": NEXT_BACK})
    agency.backoffice.add_fault("stale", "GET /hotels")
    graph = quoted(agency, InMemorySaver())
    assert asked(graph, traveller("t"))["reason"] == "no hotel search gives a usable answer at present"
    assert agency.effects("room_hold") == []


def test_before_results_were_checked_the_wrong_dates_were_held(agency: Agency) -> None:
    agency.rooms(room("grand"), replica={"check_in": NEXT, "check_out": NEXT_BACK})
    agency.backoffice.add_fault("stale", "GET /hotels")
    graph = agency.graph(InMemorySaver())
    config = traveller("t", validate_results=False)
    say(graph, config, TRIP)
    assert graph.get_state(config).values["hotel_hold"]["facts"]["check_in"] == NEXT


def test_a_declined_quote_is_made_anew_without_the_room_that_was_declined(agency: Agency) -> None:
    agency.rooms(room("grand"), room("royal", "320.00"))
    graph = quoted(agency, InMemorySaver())
    resume(
        graph,
        traveller("t"),
        {"approved": False, "quote_version": 1, "reason": "a quieter hotel, please", "then": "requote"},
    )
    question = asked(graph, traveller("t"))
    assert (question["quote_version"], question["total"]) == (2, "520.00")
    assert [change["what"] for change in question["changes"]] == ["total", "hotel"]
    assert agency.holds() == {"au-1": "held", "grand": "released", "royal": "held"}


def test_an_objection_to_the_flights_goes_back_to_the_flight_agent(agency: Agency) -> None:
    agency.fares("aurora", fare("au-1"), fare("au-2", "250.00"))
    graph = quoted(agency, InMemorySaver())
    answer = {"approved": False, "quote_version": 1, "reason": "another flight, please", "then": "requote"}
    state = resume(graph, traveller("t"), answer)
    assert ("hotel_agent", "flight_agent", "hand_back") in _kinds(state)
    assert asked(graph, traveller("t"))["total"] == "550.00"
    assert agency.holds() == {"au-1": "released", "au-2": "held", "grand": "held"}


def test_the_prompt_of_version_1_hands_a_wish_for_the_airport_back_needlessly(agency: Agency) -> None:
    agency.fares("aurora", fare("au-1"), fare("au-2", "250.00"))
    agency.rooms(room("grand"), room("terminal", "310.00", area="Airport"))
    answer = {"approved": False, "quote_version": 1, "reason": "closer to the airport", "then": "requote"}
    totals = {}
    for version in ("v1", "v2"):
        graph, config = agency.graph(InMemorySaver()), traveller(version, hotels_prompt=version)
        say(graph, config, TRIP)
        first = asked(graph, config)["quote_version"]
        resume(graph, config, {**answer, "quote_version": first})
        totals[version] = asked(graph, config)["total"]
    assert totals == {"v1": "550.00", "v2": "510.00"}


def test_a_changed_wish_before_payment_makes_the_quote_out_of_date(agency: Agency) -> None:
    _next_day(agency)
    agency.rooms(room("lodge"), check_in=NEXT, check_out=NEXT_BACK)
    graph = quoted(agency, InMemorySaver())
    say(graph, traveller("t"), f"Rather leaving {NEXT}, back {NEXT_BACK}.")
    assert asked(graph, traveller("t"))["quote_version"] == 2
    resume(graph, traveller("t"), {"approved": True, "quote_version": 1})
    assert asked(graph, traveller("t"))["problem"] == "quote 1 is not the present one, which is 2"
    state = approve(graph, traveller("t"))
    assert state["payment"]["captures"][0]["quote_version"] == 2
    assert agency.holds() == {"au-1": "released", "grand": "released", "au-2": "booked", "lodge": "booked"}


def test_a_wish_about_the_room_alone_keeps_the_fare(agency: Agency) -> None:
    agency.rooms(room("grand"), room("near", "350.00", area="Opera"))
    graph = quoted(agency, InMemorySaver())
    say(graph, traveller("t"), "near the Opera, please")
    state = graph.get_state(traveller("t")).values
    assert len(calls_of(state["messages"], "hold_fare")) == 1
    assert asked(graph, traveller("t"))["total"] == "550.00"


def test_a_message_that_changes_nothing_leaves_the_question_open(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    state = say(graph, traveller("t"), "Yes, I approve quote 1, go ahead!")
    assert "a message alone approves nothing" in state["messages"][-1].content
    assert asked(graph, traveller("t"))["kind"] == "approve_quote"
    assert agency.effects("capture") == []
