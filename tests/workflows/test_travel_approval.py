"""Approving a quote: who may answer, what counts as an answer, and what a newer quote does to an older approval."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.backoffice.travel import change_hold, put_payment_method
from graphs.common.answers import AlreadyAnswered, AnswerClaims
from graphs.common.owners import NotTheOwner
from graphs.travel_booking.application import application_database
from graphs.travel_booking.door import reply, say
from tests.support.stored import is_postgres
from tests.support.stores import saver_at
from tests.support.travel import NOW, TRIP, Agency, approve, asked, fare, quoted, resume, room, traveller

APPROVED = {"approved": True, "quote_version": 1}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("yes", "the answer: "),
        (True, "the answer: "),
        ({"approved": "yes", "quote_version": 1}, "approved: "),
        ({"approved": 1, "quote_version": 1}, "approved: "),
        ({"approved": True}, "quote_version: Field required"),
        ({"approved": True, "quote_version": "1"}, "quote_version: "),
        ({"approved": True, "quote_version": 2}, "quote 2 is not the present one, which is 1"),
        ({"approved": True, "quote_version": 1, "amount": "1.00"}, "amount: Extra inputs are not permitted"),
        ({"approved": True, "quote_version": 1, "payment_method": "4111111111111111"}, "payment_method: "),
    ],
)
def test_what_is_no_answer_is_asked_again_with_the_reason_and_charges_nothing(
    agency: Agency, answer: object, problem: str
) -> None:
    graph = quoted(agency, InMemorySaver())
    resume(graph, traveller("t"), answer)
    assert asked(graph, traveller("t"))["problem"].startswith(problem)
    assert agency.effects("capture") == []
    approve(graph, traveller("t"))
    assert len(agency.effects("capture")) == 1


@pytest.mark.parametrize(
    ("who", "problem"),
    [
        ({"actor": "agent-7", "actor_role": "agent"}, "agent-7 as agent may not answer for the traveller"),
        ({"actor": "u-2"}, "u-2 as customer may not answer for the traveller"),
        ({"user_id": "u-2"}, "u-2 may not answer for another tenant or user"),
        ({"tenant": "globex"}, "u-1 may not answer for another tenant or user"),
    ],
)
def test_only_the_owner_in_person_approves(agency: Agency, who: dict[str, str], problem: str) -> None:
    graph = quoted(agency, InMemorySaver())
    resume(graph, traveller("t", **who), APPROVED)
    assert asked(graph, traveller("t"))["problem"] == problem
    assert agency.effects("capture") == []


def test_an_answer_at_the_door_is_refused_before_anything_is_written(agency: Agency) -> None:
    graph, claims = quoted(agency, InMemorySaver()), AnswerClaims(application_database(agency.database_url))
    before = graph.get_state(traveller("t"))
    with pytest.raises(NotTheOwner):
        reply(graph, traveller("t", tenant="globex"), APPROVED, claims=claims)
    assert graph.get_state(traveller("t")) == before


def test_a_payment_method_is_needed_and_may_come_with_the_answer(agency: Agency) -> None:
    put_payment_method(agency.backoffice, "pm_other")
    graph = quoted(agency, InMemorySaver())
    without = traveller("t", payment_method="")
    resume(graph, without, APPROVED)
    assert asked(graph, without)["problem"].startswith("a payment method is needed")
    resume(graph, without, {**APPROVED, "payment_method": "pm_other"})
    assert [charge["payment_method"] for charge in agency.effects("capture")] == ["pm_other"]


def test_a_high_amount_needs_a_proof_that_the_callers_session_holds(agency: Agency) -> None:
    agency.fares("aurora", fare("first", "2500.00"))
    graph = quoted(agency, InMemorySaver())
    assert asked(graph, traveller("t"))["needs_step_up"]
    resume(graph, traveller("t"), APPROVED)
    assert asked(graph, traveller("t"))["problem"].startswith("an amount this high needs a fresh proof")
    resume(graph, traveller("t"), {**APPROVED, "step_up": "sca_1"})
    assert asked(graph, traveller("t"))["problem"].startswith("step_up: Extra inputs")
    approve(graph, traveller("t", step_up="sca_1"))
    assert [charge["step_up"] for charge in agency.effects("capture")] == ["sca_1"]


def test_an_amount_at_the_limit_needs_no_proof(agency: Agency) -> None:
    agency.fares("aurora", fare("first", "1700.00"))
    graph = quoted(agency, InMemorySaver())
    assert not asked(graph, traveller("t"))["needs_step_up"]
    approve(graph, traveller("t"))
    assert agency.effects("capture")[0]["amount"] == "2000.00"


def test_a_declined_quote_ends_the_trip_and_releases_both_holds(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    state = resume(graph, traveller("t"), {"approved": False, "quote_version": 1, "reason": "too expensive"})
    assert agency.holds() == {"au-1": "released", "grand": "released"}
    assert agency.effects("capture") == []
    assert state["messages"][-1].content == "Nothing was booked, and nothing is held any more."
    assert state["handoffs"][-1]["reason"] == "too expensive"
    assert graph.get_state(traveller("t")).next == ()


def test_the_approval_is_kept_with_who_when_and_which_version(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    approval = approve(graph, traveller("t"))["approval"]
    assert approval == {
        "status": "approved",
        "quote_version": 1,
        "by": "u-1",
        "answered_at": NOW.isoformat(),
        "payment_method": "pm_visa",
        "step_up": "",
    }


@pytest.mark.parametrize(("offer", "total"), [("au-1", "650.00"), ("grand", "550.00")])
def test_a_price_that_changed_since_the_quote_is_approved_anew_with_the_difference(
    agency: Agency, offer: str, total: str
) -> None:
    graph = quoted(agency, InMemorySaver())
    held = next(hold["hold_id"] for hold in agency.backoffice.records("holds") if hold["offer_id"] == offer)
    change_hold(agency.backoffice, held, total="350.00")
    approve(graph, traveller("t"))
    question = asked(graph, traveller("t"))
    assert (question["quote_version"], question["total"]) == (2, total)
    assert question["because"] == "the price has changed since the quote"
    assert question["changes"][0] == {"what": "total", "before": "500.00 EUR", "after": f"{total} EUR"}
    assert agency.effects("capture") == []
    approve(graph, traveller("t"))
    assert [charge["amount"] for charge in agency.effects("capture")] == [total]


@pytest.mark.parametrize("status", ["expired", "lost"])
@pytest.mark.parametrize("offer", ["au-1", "grand"])
def test_a_hold_that_ended_since_the_quote_is_held_anew_released_and_approved_anew(
    agency: Agency, offer: str, status: str
) -> None:
    graph = quoted(agency, InMemorySaver())
    held = next(hold["hold_id"] for hold in agency.backoffice.records("holds") if hold["offer_id"] == offer)
    change_hold(agency.backoffice, held, status=status)
    state = approve(graph, traveller("t"))
    assert asked(graph, traveller("t"))["quote_version"] == 2
    assert agency.effects("capture") == []
    assert [release["hold_id"] for release in agency.effects("release")] == [held]
    assert [each["kind"] for each in state["handoffs"]].count("lapsed") == 1
    approve(graph, traveller("t"))
    assert len(agency.effects("capture")) == 1


def test_a_hold_that_ended_before_the_quote_is_held_anew_before_it_is_quoted(agency: Agency) -> None:
    agency.backoffice.put("holds", "none", {"hold_id": "none", "offer_id": "none", "status": "expired"})
    ended = iter(("fa_000001",))

    class Lapsing:
        """The supplier's fare hold ends as the room is held."""

        def __init__(self, tools: Any) -> None:
            self._tools = tools

        def __getitem__(self, name: str) -> Any:
            if name == "hold_room" and (hold := next(ended, None)):
                change_hold(agency.backoffice, hold, status="expired")
            return self._tools[name]

    graph = agency.graph(InMemorySaver(), tools=Lapsing(agency.tools()))  # type: ignore[arg-type]
    state = say(graph, traveller("t"), TRIP)
    assert asked(graph, traveller("t"))["quote_version"] == 1
    assert [release["hold_id"] for release in agency.effects("release")] == ["fa_000001"]
    assert len(agency.effects("fare_hold")) == 2
    assert len(agency.effects("room_hold")) == 1, "a room in force on the fare's dates is kept"
    assert state["handoff_count"] == 1


def test_holds_that_keep_lapsing_are_asked_about(agency: Agency) -> None:
    class Lapsing:
        """Every room hold has ended by the time that it is checked."""

        def __init__(self, tools: Any) -> None:
            self._tools = tools

        def __getitem__(self, name: str) -> Any:
            if name == "check_hold":
                for hold in agency.backoffice.records("holds"):
                    change_hold(agency.backoffice, hold["hold_id"], status="expired")
            return self._tools[name]

    graph = agency.graph(InMemorySaver(), tools=Lapsing(agency.tools()))  # type: ignore[arg-type]
    say(graph, traveller("t"), TRIP)
    assert asked(graph, traveller("t"))["reason"].endswith("has lapsed again")
    assert len(agency.effects("fare_hold")) == 3


def test_the_same_quote_of_the_same_state_keeps_its_version_and_another_gets_a_new_one(agency: Agency) -> None:
    saver = InMemorySaver()
    graph = quoted(agency, saver)
    before = next(s for s in graph.get_state_history(traveller("t")) if s.next == ("payments",))
    again: Any = {"configurable": {**traveller("t")["configurable"], **before.config["configurable"]}}
    graph.invoke(None, again, durability="sync")
    assert asked(graph, traveller("t"))["quote_version"] == 1
    change_hold(agency.backoffice, "ro_000002", total="310.00")
    graph.invoke(None, again, durability="sync")
    assert asked(graph, traveller("t"))["quote_version"] == 2, "an approval of quote 1 fits no other branch's quote"


def test_of_two_approvals_at_once_one_wins_and_the_trip_is_paid_for_once(agency: Agency, store_url: str) -> None:
    database_url = store_url if is_postgres(store_url) else agency.database_url
    with saver_at(store_url) as saver:
        saver.setup()
        graph = agency.graph(saver, tools=agency.tools(database_url=database_url))
        say(graph, traveller("t"), TRIP)
        (question,) = graph.get_state(traveller("t")).interrupts
    together = threading.Barrier(2)
    outcomes: dict[int, Any] = {}

    def run(number: int) -> None:
        with saver_at(store_url) as own:
            graph = agency.graph(own, tools=agency.tools(database_url=database_url))
            claims = AnswerClaims(application_database(database_url))
            together.wait(timeout=30)
            try:
                outcomes[number] = reply(graph, traveller("t"), APPROVED, claims=claims, asked=question.id)
            except AlreadyAnswered as taken:
                outcomes[number] = taken

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (taken,) = [outcome for outcome in outcomes.values() if isinstance(outcome, AlreadyAnswered)]
    (won,) = [outcome for outcome in outcomes.values() if not isinstance(outcome, AlreadyAnswered)]
    assert taken.winner == "u-1"
    assert won["bookings"]["status"] == "published"
    counters = agency.backoffice.counters()
    assert counters["effects"] == {
        "fare_hold": 1,
        "room_hold": 1,
        "capture": 1,
        "flight_booking": 1,
        "hotel_booking": 1,
    }
    assert set(counters["by_key"].values()) == {1}, "nothing ran twice"


def test_an_approval_that_is_run_twice_from_its_checkpoint_charges_once(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    waiting = graph.get_state(traveller("t")).config
    approve(graph, traveller("t"))
    resume(graph, {"configurable": {**traveller("t")["configurable"], **waiting["configurable"]}}, APPROVED)
    assert len(agency.effects("capture")) == 1
    assert len(agency.effects("flight_booking")) == 1
    assert agency.backoffice.counters()["by_key"]["t:capture:1"] == 1, "what was answered is not even asked again"


def test_a_room_is_offered_again_after_the_traveller_said_something_else(agency: Agency) -> None:
    agency.rooms(room("grand"), room("royal", "320.00"))
    graph = quoted(agency, InMemorySaver())
    resume(graph, traveller("t"), {"approved": False, "quote_version": 1, "reason": "no", "then": "requote"})
    assert asked(graph, traveller("t"))["total"] == "520.00"
    say(graph, traveller("t"), "4 stars will do")
    assert asked(graph, traveller("t"))["total"] == "500.00"
