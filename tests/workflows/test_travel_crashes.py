"""Real processes killed between an effect and its checkpoint; another one resumes the trip."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.backoffice.travel import IDENTITY
from graphs.common.answers import AnswerClaims, recover
from graphs.common.effects import http_client
from graphs.common.owners import caller_of
from graphs.travel_booking.application import application_database
from graphs.travel_booking.door import say
from graphs.travel_booking.operations.notifications import backoffice_notifier, notification_consumer
from graphs.travel_booking.operations.outbox import Outbox, relay
from graphs.travel_booking.operations.reconciliation import reconcile, transactions_of
from tests.support.killed import Killed
from tests.support.stored import is_postgres
from tests.support.stores import saver_at
from tests.support.travel import TRIP, Agency, approve, quoted, traveller

ONE_OF_EACH = {"fare_hold": 1, "room_hold": 1, "capture": 1, "flight_booking": 1, "hotel_booking": 1}


@pytest.mark.real_process
@pytest.mark.parametrize(
    ("store_url", "operation", "when", "keys", "stopped_at"),
    [
        ("sqlite", "capture", "before-row", "expired", "capture"),
        ("postgres", "capture", "before-row", "expired", "capture"),
        ("postgres", "capture", "after-row", "kept", "capture"),
        ("sqlite", "confirm_hotel", "before-row", "expired", "ticketing"),
    ],
    indirect=["store_url"],
)
def test_after_kill_9_the_trip_resumes_and_every_effect_was_done_once(
    agency: Agency, killed: Killed, store_url: str, operation: str, when: str, keys: str, stopped_at: str
) -> None:
    database_url = store_url if is_postgres(store_url) else agency.database_url
    with saver_at(store_url) as saver:
        saver.setup()
        say(agency.graph(saver, tools=agency.tools(database_url=database_url)), traveller("t"), TRIP)
    killed("dying_travel", store_url, database_url, agency.backoffice.url, operation, when)
    assert len(agency.effects("capture")) == 1
    if keys == "expired":
        agency.backoffice.expire_keys()
    with saver_at(store_url) as saver:
        graph = agency.graph(saver, tools=agency.tools(database_url=database_url))
        stopped = graph.get_state(traveller("t"))
        assert stopped.next == (stopped_at,)
        if operation == "capture":
            moved = transactions_of(agency.effects("capture"), [])
            (finding,) = reconcile(moved, {"t": stopped.values["payment"]})
            assert (finding.kind, finding.transaction) == ("thread_does_not_know", "ca_000003")
        state = graph.invoke(None, traveller("t"), durability="sync")
    assert state["bookings"]["status"] == "published"
    assert agency.backoffice.counters()["effects"] == ONE_OF_EACH
    assert reconcile(transactions_of(agency.effects("capture"), []), {"t": state["payment"]}) == []


@pytest.mark.real_process
def test_a_relay_killed_between_sending_and_marking_sends_again_and_the_traveller_is_told_once(
    agency: Agency, killed: Killed
) -> None:
    approve(quoted(agency, InMemorySaver()), traveller("t"))
    killed("dying_relay", agency.database_url, agency.backoffice.url)
    assert len(agency.effects("notification")) == 1
    outbox = Outbox(application_database(agency.database_url))
    assert [event.id for event in outbox.unsent()] == ["t:publish:1:trip_booked"]
    agency.backoffice.expire_keys()
    with http_client(agency.backoffice.url, identity=IDENTITY) as http:
        consumer = notification_consumer(agency.database_url, backoffice_notifier(http))
        taken: list[bool] = []
        relayed = relay(outbox, lambda event: taken.append(consumer.take(event)))
    assert relayed.sent == ("t:publish:1:trip_booked",)
    assert taken == [False], "the consumer knows the event by its id"
    assert len(agency.effects("notification")) == 1
    assert outbox.unsent() == []


def test_an_approval_whose_process_died_before_the_thread_took_it_is_taken_up_again(agency: Agency) -> None:
    graph, claims = quoted(agency, InMemorySaver()), AnswerClaims(application_database(agency.database_url))
    (question,) = graph.get_state(traveller("t")).interrupts
    claims.take("t", question.id, caller_of(traveller("t")["configurable"]), {"approved": True, "quote_version": 1})
    state = recover(graph, traveller("t"), claims=claims)
    assert state["approval"]["by"] == "u-1"
    assert agency.backoffice.counters()["effects"] == ONE_OF_EACH
