"""After payment: a lost hotel or flight is made good, paid back, or approved anew; the money fits the bookings."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.backoffice.travel import change_hold
from graphs.travel_booking.door import say
from tests.support.travel import Agency, approve, asked, calls_of, fare, quoted, resume, room, traveller


class _Losing:
    """Loses the holds of some offers at their supplier as the money is taken."""

    def __init__(self, agency: Agency, *offers: str) -> None:
        self._agency = agency
        self._offers = offers
        self._tools = agency.tools()

    def __getitem__(self, name: str) -> Any:
        if name in ("confirm_flight", "confirm_hotel"):
            for hold in self._agency.backoffice.records("holds"):
                if hold["offer_id"] in self._offers and hold["status"] == "held":
                    change_hold(self._agency.backoffice, hold["hold_id"], status="lost")
        return self._tools[name]


Losing = Callable[..., Any]


@pytest.fixture
def losing(agency: Agency) -> Losing:
    """Books a trip whose holds on the named offers are lost after payment, and returns graph and state."""

    def book(*offers: str) -> tuple[Any, dict[str, Any]]:
        graph = agency.graph(InMemorySaver(), tools=_Losing(agency, *offers))  # type: ignore[arg-type]
        say(graph, traveller("t"), "A trip from Lisbon to Oslo, leaving 2026-12-10, back 2026-12-13.")
        return graph, approve(graph, traveller("t"))

    return book


def _paid(agency: Agency) -> Decimal:
    charged = sum(Decimal(each["amount"]) for each in agency.effects("capture"))
    return charged - sum((Decimal(each["amount"]) for each in agency.effects("payment_refund")), Decimal(0))


def test_a_lost_room_is_replaced_by_an_equivalent_at_the_same_price_without_asking(
    agency: Agency, losing: Losing
) -> None:
    agency.rooms(room("grand"), room("plain", stars=3), room("royal"))
    graph, state = losing("grand")
    assert graph.get_state(traveller("t")).next == ()
    assert state["bookings"]["hotel"]["hold"]["offer_id"] == "royal", "fewer stars are no equivalent"
    assert state["bookings"]["status"] == "published"
    assert len(agency.effects("capture")) == 1
    assert _paid(agency) == Decimal("500.00")


def test_an_equivalent_at_another_price_is_approved_anew_and_the_difference_charged(
    agency: Agency, losing: Losing
) -> None:
    agency.rooms(room("grand"), room("royal", "340.00"))
    graph, _ = losing("grand")
    question = asked(graph, traveller("t"))
    assert (question["quote_version"], question["paid"], question["due"]) == (2, "500.00", "40.00")
    assert len(agency.effects("capture")) == 1
    state = approve(graph, traveller("t"))
    assert [each["reference"] for each in agency.effects("capture")] == ["t:capture:1", "t:capture:2"]
    assert state["bookings"]["hotel"]["hold"]["offer_id"] == "royal"
    assert len(agency.effects("flight_booking")) == 1
    assert _paid(agency) == Decimal("540.00")


def test_an_equivalent_that_the_traveller_declines_is_released_and_its_part_paid_back(
    agency: Agency, losing: Losing
) -> None:
    agency.rooms(room("grand"), room("royal", "340.00"))
    graph, _ = losing("grand")
    state = resume(graph, traveller("t"), {"approved": False, "quote_version": 2})
    assert agency.holds() == {"au-1": "booked", "grand": "lost", "royal": "released"}
    assert _paid(agency) == Decimal("200.00")
    assert [call["args"]["event"] for call in calls_of(state["messages"], "publish_booking")] == ["trip_part_booked"]
    assert state["messages"][-1].content.endswith("its price was paid back. You paid 200.00 EUR in all.")


def test_without_an_equivalent_the_hotels_part_is_paid_back_under_its_own_key(agency: Agency, losing: Losing) -> None:
    graph, state = losing("grand")
    assert graph.get_state(traveller("t")).next == ()
    (refund,) = agency.effects("payment_refund")
    assert (refund["amount"], refund["reference"]) == ("300.00", "t:refund_lost:ro_000002:ca_000003")
    assert state["bookings"]["hotel"] is None
    assert state["bookings"]["flight"]["booking_id"] == "fl_000004"
    assert "The hotel was lost and its price was paid back." in state["messages"][-1].content


def test_equivalents_that_are_lost_too_are_not_tried_again(agency: Agency, losing: Losing) -> None:
    agency.rooms(room("grand"), room("royal"), room("third"))
    _, state = losing("grand", "royal", "third")
    assert [each["offer_id"] for each in agency.effects("room_hold")] == ["grand", "royal", "third"]
    assert state["bookings"]["hotel"] is None
    assert _paid(agency) == Decimal("200.00")


def test_an_equivalent_that_is_gone_when_held_is_left_for_the_next(agency: Agency, losing: Losing) -> None:
    agency.rooms(room("grand"), room("gone"), room("royal"))
    agency.backoffice.put("offers", "gone", {"offer_id": "gone", "total": "0.00", "currency": "EUR"})
    _, state = losing("grand")
    assert state["bookings"]["hotel"]["hold"]["offer_id"] == "royal"


def test_a_lost_flight_ends_the_trip_with_everything_paid_back_and_the_room_released(
    agency: Agency, losing: Losing
) -> None:
    graph, state = losing("au-1")
    assert graph.get_state(traveller("t")).next == ()
    assert agency.effects("flight_booking") == agency.effects("hotel_booking") == []
    assert agency.holds() == {"au-1": "lost", "grand": "released"}
    assert _paid(agency) == Decimal("0.00")
    assert state["messages"][-1].content == (
        "Nothing was booked, and nothing is held any more. 500.00 EUR were paid back."
    )


def test_a_room_that_is_lost_while_it_replaces_a_booked_one_leaves_that_one(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    saver = graph.checkpointer
    approve(graph, traveller("t"))
    agency.rooms(room("grand"), room("near", "350.00", area="Opera"))
    changing = agency.graph(saver, tools=_Losing(agency, "near"))  # type: ignore[arg-type]
    say(changing, traveller("t"), "near the Opera, instead")
    state = approve(changing, traveller("t"))
    assert agency.holds() == {"au-1": "booked", "grand": "booked", "near": "lost"}
    assert agency.effects("cancellation") == []
    assert state["hotel_hold"]["offer_id"] == "grand"
    assert _paid(agency) == Decimal("500.00")
    assert state["messages"][-1].content == "Your booking stays as it is. 50.00 EUR were paid back."


def test_a_change_of_days_whose_new_room_is_lost_cancels_the_room_of_the_old_days(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    saver = graph.checkpointer
    approve(graph, traveller("t"))
    agency.fares("aurora", fare("au-2", "260.00", arrives_on="2026-12-11"), out="2026-12-11", back="2026-12-14")
    agency.rooms(room("lodge"), check_in="2026-12-11", check_out="2026-12-14")
    changing = agency.graph(saver, tools=_Losing(agency, "lodge"))  # type: ignore[arg-type]
    say(changing, traveller("t"), "Rather leaving 2026-12-11, back 2026-12-14.")
    state = approve(changing, traveller("t"))
    assert {each["booking_id"] for each in agency.effects("cancellation")} == {"fl_000004", "ho_000005"}
    assert state["bookings"]["hotel"] is None
    assert _paid(agency) == Decimal("260.00")
    assert state["messages"][-1].content.endswith("You paid 260.00 EUR in all.")


def test_a_refund_that_the_provider_refuses_stops_the_run_for_a_person(agency: Agency, losing: Losing) -> None:
    from graphs.travel_booking.nodes.paying import RefundRefused

    agency.backoffice.add_fault("error", "POST /paymentrefunds", status=403)
    with pytest.raises(RefundRefused, match="ca_000003"):
        losing("grand")
