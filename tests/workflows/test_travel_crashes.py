"""Real processes killed between an effect and its checkpoint; another one resumes the trip."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.backoffice.travel import IDENTITY
from graphs.common.answers import AnswerClaims, recover
from graphs.common.effects import http_client
from graphs.common.owners import caller_of
from graphs.travel_booking.application import application_database
from graphs.travel_booking.door import say
from graphs.travel_booking.operations.notifications import backoffice_notifier, notification_consumer
from graphs.travel_booking.operations.outbox import Outbox, relay
from graphs.travel_booking.operations.reconciliation import reconcile, transactions_of
from tests.support.travel import TRIP, Agency, approve, quoted, traveller

REPOSITORY = Path(__file__).parents[2]
ONE_OF_EACH = {"fare_hold": 1, "room_hold": 1, "capture": 1, "flight_booking": 1, "hotel_booking": 1}


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The checkpoint store."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return str(request.getfixturevalue("fresh_postgres_url"))


def _saver(url: str) -> Any:
    return PostgresSaver.from_conn_string(url) if url.startswith("postgres") else SqliteSaver.from_conn_string(url)


def _killed(*arguments: str) -> None:
    died = subprocess.run(
        [sys.executable, "-m", "tests.support.dying_travel", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr


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
    agency: Agency, store_url: str, operation: str, when: str, keys: str, stopped_at: str
) -> None:
    database_url = store_url if store_url.startswith("postgres") else agency.database_url
    with _saver(store_url) as saver:
        saver.setup()
        say(agency.graph(saver, tools=agency.tools(database_url=database_url)), traveller("t"), TRIP)
    _killed(store_url, database_url, agency.backoffice.url, operation, when)
    assert len(agency.effects("capture")) == 1
    if keys == "expired":
        agency.backoffice.expire_keys()
    with _saver(store_url) as saver:
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
def test_a_relay_killed_between_sending_and_marking_sends_again_and_the_traveller_is_told_once(agency: Agency) -> None:
    approve(quoted(agency, InMemorySaver()), traveller("t"))
    _killed("-", agency.database_url, agency.backoffice.url, "relay", "-")
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
