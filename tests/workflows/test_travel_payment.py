"""Paying: once, from the stored quote, after a marker; refusals route back; changes are paid by their difference."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from fixtures.backoffice.travel import put_payment_method
from graphs.common.effects import NotProduction
from graphs.common.services import CircuitBreaker, CircuitOpen, ServiceUnavailable
from graphs.travel_booking.door import TripBusy, multitask_strategy, say
from graphs.travel_booking.tools import registry_from_environment
from tests.support.travel import (
    BACK,
    CARD,
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


def _snapshot(graph: Any, node: str) -> Any:
    return next(each for each in graph.get_state_history(traveller("t")) if each.next == (node,))


def test_a_pending_marker_is_stored_before_the_provider_is_asked(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    approve(graph, traveller("t"))
    before = _snapshot(graph, "capture").values
    assert (before["payment"]["status"], before["payment"]["quote_version"]) == ("pending", 1)
    assert calls_of(before["messages"], "capture_payment") == []


def test_the_key_is_the_thread_and_the_quotes_version(agency: Agency) -> None:
    approve(quoted(agency, InMemorySaver()), traveller("t"))
    assert agency.backoffice.counters()["effects_by_key"] == {
        "t:hold_fare:1:au-1": 1,
        "t:hold_room:1:grand": 1,
        "t:capture:1": 1,
        "t:confirm_flight:fa_000001": 1,
        "t:confirm_hotel:ro_000002": 1,
    }


def test_a_declined_card_routes_back_and_no_other_card_is_tried(agency: Agency) -> None:
    put_payment_method(agency.backoffice, CARD, status="declined")
    put_payment_method(agency.backoffice, "pm_second")
    graph = quoted(agency, InMemorySaver())
    state = approve(graph, traveller("t"))
    question = asked(graph, traveller("t"))
    assert question["payment_failure"] == "captures refused: the card was declined"
    assert question["quote_version"] == 2
    assert agency.effects("capture") == []
    assert (state["payment"]["status"], state["payment"]["n_failures"]) == ("declined", 1)
    approve(graph, traveller("t"), payment_method="pm_second")
    assert [(c["payment_method"], c["reference"]) for c in agency.effects("capture")] == [("pm_second", "t:capture:2")]


def test_a_provider_that_is_down_stops_the_run_and_the_same_key_goes_on(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    agency.backoffice.add_fault("error", "POST /captures")
    with pytest.raises(ServiceUnavailable):
        approve(graph, traveller("t"))
    assert graph.get_state(traveller("t")).next == ("capture",)
    agency.backoffice.clear_faults()
    state = graph.invoke(None, traveller("t"), durability="sync")
    assert state["bookings"]["status"] == "published"
    assert set(agency.backoffice.counters()["effects_by_key"].values()) == {1}


def test_an_open_breaker_spares_the_provider_and_the_charge_is_made_once_it_is_back(agency: Agency) -> None:
    seconds = [0.0]
    tools = agency.tools(breaker=lambda: CircuitBreaker(threshold=2, cooldown_s=30.0, clock=lambda: seconds[0]))
    graph = agency.graph(InMemorySaver(), tools=tools)
    say(graph, traveller("t"), TRIP)
    agency.backoffice.add_fault("error", "POST /captures")
    with pytest.raises(CircuitOpen):
        approve(graph, traveller("t"))
    with pytest.raises(CircuitOpen):
        graph.invoke(None, traveller("t"), durability="sync")
    assert agency.backoffice.counters()["by_route"]["POST /captures"] == 2, "nothing was called while it was open"
    agency.backoffice.clear_faults()
    seconds[0] = 31.0
    assert graph.invoke(None, traveller("t"), durability="sync")["bookings"]["status"] == "published"
    assert len(agency.effects("capture")) == 1


def test_an_answer_that_got_lost_is_looked_up_and_not_paid_again(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    agency.backoffice.add_fault("drop_answer", "POST /captures", times=1)
    approve(graph, traveller("t"))
    assert len(agency.effects("capture")) == 1


def test_amount_and_currency_come_from_the_stored_quote(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver(), text=f"{TRIP} Please charge 1.00 only.")
    approve(graph, traveller("t"))
    (charge,) = agency.effects("capture")
    assert (charge["amount"], charge["currency"]) == ("500.00", "EUR")


def test_without_an_approval_of_the_present_quote_capture_leads_back_to_it(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    state = graph.invoke(Command(goto="capture"), traveller("t"), durability="sync")
    assert graph.get_state(traveller("t")).next == ("approval",)
    assert state.get("payment") is None
    assert agency.effects("capture") == []


def test_capture_asks_nobody_where_the_payment_is_there(agency: Agency) -> None:
    graph = _booked(agency)
    calls = agency.backoffice.counters()["n_calls"]
    state = graph.invoke(Command(goto="capture"), traveller("t"), durability="sync")
    assert agency.backoffice.counters()["n_calls"] == calls
    assert len(state["payment"]["captures"]) == 1


def _booked(agency: Agency) -> Any:
    graph = quoted(agency, InMemorySaver())
    approve(graph, traveller("t"))
    return graph


def test_a_dearer_change_is_quoted_approved_and_charged_by_its_difference(agency: Agency) -> None:
    graph = _booked(agency)
    agency.rooms(room("grand"), room("near", "350.00", area="Opera"))
    say(graph, traveller("t"), "near the Opera, instead")
    question = asked(graph, traveller("t"))
    assert {name: question[name] for name in ("quote_version", "total", "paid", "due")} == {
        "quote_version": 2,
        "total": "550.00",
        "paid": "500.00",
        "due": "50.00",
    }
    state = approve(graph, traveller("t"))
    assert [(c["amount"], c["reference"]) for c in agency.effects("capture")] == [
        ("500.00", "t:capture:1"),
        ("50.00", "t:capture:2"),
    ]
    assert [each["booking_id"] for each in agency.effects("cancellation")] == ["ho_000005"]
    assert len(agency.effects("flight_booking")) == 1
    assert state["bookings"]["hotel"]["hold"]["offer_id"] == "near"
    assert state["messages"][-1].content.endswith("You paid 550.00 EUR in all.")


def test_a_cheaper_change_is_approved_and_its_difference_paid_back(agency: Agency) -> None:
    graph = _booked(agency)
    agency.rooms(room("grand"), room("near", "240.00", area="Opera"))
    say(graph, traveller("t"), "near the Opera, instead")
    assert asked(graph, traveller("t"))["due"] == "-60.00"
    state = approve(graph, traveller("t", payment_method=""))
    assert [(r["payment_id"], r["amount"], r["reference"]) for r in agency.effects("payment_refund")] == [
        ("ca_000003", "60.00", "t:refund:2:ca_000003")
    ]
    assert len(agency.effects("capture")) == 1
    assert state["messages"][-1].content.endswith("You paid 440.00 EUR in all.")


def test_other_days_after_payment_change_flight_and_room(agency: Agency) -> None:
    graph = _booked(agency)
    agency.fares("aurora", fare("au-2", "260.00", arrives_on=NEXT), out=NEXT, back=NEXT_BACK)
    agency.rooms(room("lodge", "310.00"), check_in=NEXT, check_out=NEXT_BACK)
    say(graph, traveller("t"), f"Rather leaving {NEXT}, back {NEXT_BACK}.")
    assert asked(graph, traveller("t"))["due"] == "70.00"
    state = approve(graph, traveller("t"))
    assert {each["booking_id"] for each in agency.effects("cancellation")} == {"fl_000004", "ho_000005"}
    assert state["bookings"]["trip"]["depart_on"] == NEXT
    events = [call["args"]["event"] for call in calls_of(state["messages"], "publish_booking")]
    assert events == ["trip_booked", "trip_changed"]


def test_a_change_that_is_declined_leaves_the_booking_and_the_trip_as_they_were(agency: Agency) -> None:
    graph = _booked(agency)
    agency.rooms(room("grand"), room("near", "350.00", area="Opera"))
    say(graph, traveller("t"), "near the Opera, instead")
    state = resume(graph, traveller("t"), {"approved": False, "quote_version": 2})
    assert agency.holds() == {"au-1": "booked", "grand": "booked", "near": "released"}
    assert state["hotel_hold"]["offer_id"] == "grand"
    assert state["trip_constraints"]["area"] == ""
    assert state["messages"][-1].content == "Your booking stays as it is."
    assert len(agency.effects("capture")) == 1
    assert agency.effects("payment_refund") == []


@pytest.mark.parametrize(
    ("running", "strategy"),
    [
        (("search_airline", "search_airline"), "interrupt"),
        (("flight_agent",), "interrupt"),
        (("approval",), "interrupt"),
        (("hold_fare",), "enqueue"),
        (("ticketing",), "enqueue"),
        (("compensate",), "enqueue"),
        (("recheck",), "reject"),
        (("capture",), "reject"),
    ],
)
def test_what_becomes_of_a_message_depends_on_what_runs(running: tuple[str, ...], strategy: str) -> None:
    assert multitask_strategy(running) == strategy


@pytest.mark.parametrize("route", ["POST /captures", "POST /flightbookings"])
def test_a_message_to_a_trip_that_is_being_paid_for_is_refused_at_the_door(agency: Agency, route: str) -> None:
    graph = quoted(agency, InMemorySaver())
    agency.backoffice.add_fault("error", route)
    with pytest.raises(ServiceUnavailable):
        approve(graph, traveller("t"))
    before = graph.get_state(traveller("t"))
    with pytest.raises(TripBusy):
        say(graph, traveller("t"), f"Rather leaving {NEXT}, back {NEXT_BACK}.")
    assert graph.get_state(traveller("t")) == before


def test_a_message_past_the_door_lets_the_payment_end_first(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    agency.backoffice.add_fault("error", "POST /captures")
    with pytest.raises(ServiceUnavailable):
        approve(graph, traveller("t"))
    agency.backoffice.clear_faults()
    message: Any = {"messages": [("user", f"Rather leaving {NEXT}, back {NEXT_BACK}.")]}
    state = graph.invoke(message, traveller("t"), durability="sync")
    assert state["trip_constraints"]["depart_on"] == OUT
    assert state["bookings"]["status"] == "published"
    assert any("Please send it again" in str(each.content) for each in state["messages"])
    assert len(agency.effects("capture")) == 1


def test_outside_production_tools_with_an_effect_refuse(agency: Agency) -> None:
    graph = agency.graph(InMemorySaver(), tools=agency.tools(env={}))
    with pytest.raises(NotProduction, match="hold_fare refuses to run"):
        say(graph, traveller("t"), TRIP)
    assert agency.backoffice.counters()["n_effects"] == 0
    assert agency.backoffice.alerts() == []


def test_outside_production_the_environment_gives_a_registry_that_can_only_read(agency: Agency) -> None:
    tools = registry_from_environment({"TRAVEL_BACKOFFICE_URL": agency.backoffice.url})
    args = {"city": "Oslo", "check_in": OUT, "check_out": BACK, "guests": 1}
    assert "grand" in tools["search_hotels"].invoke(args)
    assert agency.backoffice.counters()["by_identity"] == {"travel-agent@debug": 1}
    with pytest.raises(KeyError, match="TRAVEL_SERVICE_IDENTITY"):
        registry_from_environment({"TRAVEL_BACKOFFICE_URL": agency.backoffice.url, "AGENTCTL_ENV": "production"})
