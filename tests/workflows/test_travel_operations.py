"""Around the workflow: outbox and consumer, reminders, counters, reconciliation, rates, what must never be stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.backoffice.travel import IDENTITY, change_hold, put_payment_method
from graphs.common.database import Database
from graphs.common.effects import http_client
from graphs.travel_booking.application import application_database
from graphs.travel_booking.door import say
from graphs.travel_booking.limits import RateExceeded, SupplierLimits
from graphs.travel_booking.operations.counters import counted
from graphs.travel_booking.operations.notifications import backoffice_notifier, notification_consumer
from graphs.travel_booking.operations.outbox import INBOX_TABLE, Consumer, Event, Outbox, relay
from graphs.travel_booking.operations.reconciliation import Finding, Transaction, reconcile
from graphs.travel_booking.operations.reminders import reminders
from graphs.travel_booking.policy import load_policies
from graphs.travel_booking.redaction import redacted
from tests.support.travel import NOW, TRIP, Agency, approve, quoted, resume, traveller

EVENT = Event("t:publish:1:trip_booked", "t", {"event": "trip_booked"})


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    """An outbox with one event."""
    box = Outbox(application_database(str(tmp_path / "outbox.sqlite")))
    box.record(EVENT)
    return box


def test_booking_and_event_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    database = application_database(str(tmp_path / "application.sqlite"))
    with database.transaction() as transaction:
        transaction.execute("DROP TABLE outbox")
    with pytest.raises(Exception, match="no such table: outbox"):
        Outbox(database).record(EVENT)
    with database.transaction() as transaction:
        assert transaction.execute("SELECT * FROM bookings") == []


def test_an_event_that_is_recorded_twice_is_sent_once(outbox: Outbox) -> None:
    outbox.record(EVENT)
    assert outbox.unsent() == [EVENT]


def test_a_notification_that_fails_stays_for_the_next_pass_and_holds_no_other_up(outbox: Outbox) -> None:
    outbox.record(Event("u:publish:1:trip_booked", "u", {}))

    def send(event: Event) -> None:
        if event.thread == "t":
            raise ConnectionError("no route")

    assert relay(outbox, send).failed == {EVENT.id: "ConnectionError: no route"}
    assert [event.thread for event in outbox.unsent()] == ["t"]
    assert relay(outbox, lambda event: None).sent == (EVENT.id,)


def test_a_consumer_whose_notification_failed_takes_the_event_again(tmp_path: Path) -> None:
    told: list[str] = []

    def notify(event: Event) -> None:
        told.append(event.id)
        if len(told) == 1:
            raise ConnectionError("no route")

    consumer = Consumer(Database(str(tmp_path / "inbox.sqlite"), (INBOX_TABLE,)), notify)
    with pytest.raises(ConnectionError):
        consumer.take(EVENT)
    assert [consumer.take(EVENT), consumer.take(EVENT)] == [True, False]
    assert len(told) == 2


def test_a_failed_notification_undoes_no_booking(agency: Agency) -> None:
    agency.backoffice.add_fault("error", "POST /notifications")
    graph = quoted(agency, InMemorySaver())
    state = approve(graph, traveller("t"))
    with http_client(agency.backoffice.url, identity=IDENTITY) as http:
        consumer = notification_consumer(agency.database_url, backoffice_notifier(http))
        outbox = Outbox(application_database(agency.database_url))

        def take(event: Event) -> None:
            consumer.take(event)

        assert len(relay(outbox, take).failed) == 1
        assert graph.get_state(traveller("t")).values["bookings"] == state["bookings"]
        agency.backoffice.clear_faults()
        relay(outbox, take)
    (note,) = agency.effects("notification")
    assert (note["event"], note["flight_booking"], note["total"]) == ("trip_booked", "fl_000004", "500.00")


def test_quotes_whose_holds_end_soon_can_be_listed(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver(), "waits")
    say(graph, traveller("paid"), TRIP)
    approve(graph, traveller("paid"))
    threads = ["paid", "waits", "unknown"]
    within = load_policies()["2026-11"].remind_within
    assert reminders(graph, threads, now=NOW, within=within) == []
    soon = datetime(2026, 12, 1, 17, tzinfo=UTC)
    (reminder,) = reminders(graph, threads, now=soon, within=within)
    assert (reminder.thread, reminder.quote_version, reminder.is_over) == ("waits", 1, False)
    assert reminder.deadline.isoformat() == "2026-12-01T18:00:00+00:00"
    (late,) = reminders(graph, threads, now=soon + timedelta(hours=2), within=within)
    assert late.is_over


def test_hand_backs_expiries_latency_and_refused_captures_are_counted(agency: Agency) -> None:
    times = iter([NOW, NOW + timedelta(seconds=90)] * 9)
    graph = agency.graph(InMemorySaver(), clock=lambda: next(times))
    say(graph, traveller("t"), TRIP)
    put_payment_method(agency.backoffice, "pm_bad", status="declined")
    approve(graph, traveller("t"), payment_method="pm_bad")
    for hold in agency.backoffice.records("holds"):
        if hold["offer_id"] == "grand":
            change_hold(agency.backoffice, hold["hold_id"], status="expired")
    approve(graph, traveller("t"))
    approve(graph, traveller("t"))
    agency.rooms()
    say(graph, traveller("u"), TRIP)
    states: Any = [graph.get_state(traveller(thread)).values for thread in ("t", "u")]
    found = counted(states)
    assert (found.n_trips, found.n_quotes, found.n_capture_failures) == (2, 3, 1)
    assert (found.n_hand_backs, found.n_hold_expiries) == (1, 1)
    assert found.approval_latencies_s == (90.0,)


def _payment(amount: str = "500.00", status: str = "settled") -> Any:
    captures = [{"payment_id": "ca_1", "quote_version": 1, "amount": amount}] if amount else []
    return {"status": status, "quote_version": 1, "captures": captures, "refunds": []}


@pytest.mark.parametrize(
    ("moved", "payment", "finding"),
    [
        ([("ca_1", "t", "500.00")], _payment(), None),
        ([("ca_1", "t", "500.00")], _payment("", "pending"), Finding("thread_does_not_know", "t", "ca_1")),
        ([], _payment("", "pending"), Finding("unfinished", "t", "")),
        ([], _payment(), Finding("provider_does_not_know", "t", "ca_1")),
        ([("ca_1", "t", "50.00")], _payment(), Finding("amounts_differ", "t", "ca_1")),
        ([("ca_1", "other", "500.00")], None, Finding("unknown_thread", "other", "ca_1")),
    ],
)
def test_what_the_provider_moved_is_matched_against_the_threads(
    moved: list[tuple[str, str, str]], payment: Any, finding: Finding | None
) -> None:
    transactions = [Transaction(number, "capture", thread, Decimal(amount)) for number, thread, amount in moved]
    assert reconcile(transactions, {"t": payment}) == ([finding] if finding else [])


def test_each_supplier_is_asked_no_more_often_than_agreed() -> None:
    now = [0.0]
    slept: list[float] = []
    limits = SupplierLimits(per_minute=60, burst=2, max_wait_s=1.5, clock=lambda: now[0], sleep=slept.append)
    for _ in range(3):
        limits.wait("aurora")
    assert slept == [1.0], "two at once, the third a second later"
    with pytest.raises(RateExceeded, match="aurora"):
        limits.wait("aurora")
    limits.wait("borealis")
    assert slept == [1.0], "another supplier has a bucket of its own"
    now[0] = 60.0
    limits.wait("aurora")
    assert slept == [1.0], "a bucket fills up again"


def test_an_airline_that_was_asked_too_often_is_left_out_of_a_search(agency: Agency) -> None:
    limits = SupplierLimits(per_minute=1, burst=1, max_wait_s=0.0)
    limits.wait("borealis")
    graph = agency.graph(InMemorySaver(), tools=agency.tools(limits=limits))
    say(graph, traveller("t"), TRIP)
    assert agency.backoffice.counters()["by_route"]["GET /flights"] == 2


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("my card is 4111 1111 1111 1111, ok?", "my card is [removed], ok?"),
        ("5500-0055-5555-5559", "[removed]"),
        ("378282246310005", "[removed]"),
        ("CVV 123", "CVV [removed]"),
        ("the security code is 9876.", "the security code is [removed]."),
        ("passport number: X1234567", "passport number: [removed]"),
        ("Passport no. is C01X00T47", "Passport no. is [removed]"),
        ("order 4111111111111112 is no card", "order 4111111111111112 is no card"),
        ("at most 1500.00 EUR for 2 people", "at most 1500.00 EUR for 2 people"),
        ("leaving 2026-12-10, back 2026-12-13", "leaving 2026-12-10, back 2026-12-13"),
        ("I have a valid passport", "I have a valid passport"),
    ],
)
def test_numbers_that_must_not_be_stored_are_taken_out_of_a_text(text: str, kept: str) -> None:
    assert redacted(text) == kept


def test_an_answers_reason_is_cleaned_too(agency: Agency) -> None:
    graph = quoted(agency, InMemorySaver())
    answer = {"approved": False, "quote_version": 1, "reason": "use 4111 1111 1111 1111"}
    assert resume(graph, traveller("t"), answer)["handoffs"][-1]["reason"] == "use [removed]"
