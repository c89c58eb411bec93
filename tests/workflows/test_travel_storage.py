"""What is kept of a trip: no card or passport number anywhere, deletion, and rows of an earlier graph."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.backoffice.travel import put_payment_method
from graphs.common.answers import AnswerClaims
from graphs.common.deletion import delete_case
from graphs.travel_booking.application import TABLES, application_database
from graphs.travel_booking.door import reply, say
from graphs.travel_booking.memory import travellers_namespace
from graphs.travel_booking.state import GRAPH_VERSION
from tests.support.stored import is_postgres, rows_naming
from tests.support.travel import BACK, OUT, TRIP, Agency, approve, asked, fare, room, traveller

ROWS = Path(__file__).parent / "rows" / "travel_booking_v1.sql"
CARD_NUMBER, CODE, PASSPORT = "4111111111111111", "737", "C01X00T47"
TOLD = f"{TRIP} My card is {CARD_NUMBER}, CVV {CODE}, passport number {PASSPORT}."
SPACED = "4111 1111 1111 1111"


def _found(urls: set[str], text: str) -> int:
    return sum(sum(rows_naming(url, text).values()) for url in urls)


def test_no_stored_byte_holds_a_card_number_a_security_code_or_a_passport_number(
    agency: Agency, stores: tuple[Any, Any], store_url: str
) -> None:
    """The traveller writes them, an answer has them, and suppliers send them back: none is stored in any column."""
    saver, memory = stores
    database_url = store_url if is_postgres(store_url) else agency.database_url
    secrets = {"passport": PASSPORT, "card": CARD_NUMBER, "cvv": f"cvv={CODE}"}
    offer, suite = fare("au-1", **secrets), room("grand", **secrets)
    agency.fares("aurora", offer)
    agency.rooms(suite)
    put_payment_method(agency.backoffice, "pm_visa")
    graph = agency.graph(saver, memory=memory, tools=agency.tools(database_url=database_url))
    claims = AnswerClaims(application_database(database_url))
    say(graph, traveller("t"), TOLD)
    refused = {"approved": False, "quote_version": 1, "then": "requote", "reason": f"charge {SPACED}, CVC {CODE}"}
    agency.rooms(suite, room("royal", **secrets))
    reply(graph, traveller("t"), refused, claims=claims)
    say(graph, traveller("t"), f"4 stars will do. Remember my passport: {PASSPORT}. Always an aisle seat, please.")
    approve(graph, traveller("t"))
    urls = {store_url, database_url}
    found = {text: _found(urls, text) for text in (CARD_NUMBER, SPACED, PASSPORT, f"CVV {CODE}", f"CVC {CODE}", "cvv=")}
    assert set(found.values()) == {0}, found
    assert _found(urls, "[removed]") > 0
    assert _found(urls, "A quiet house.") > 0, "the same scan does find what is stored"
    assert len(agency.effects("capture")) == 1


def test_past_the_door_the_thread_goes_on_without_such_a_number(agency: Agency, stores: tuple[Any, Any]) -> None:
    """The input itself is stored before any node runs: only the door can keep a number out of that row."""
    graph = agency.graph(stores[0])
    message: Any = {"messages": [("user", TOLD)]}
    state = graph.invoke(message, traveller("t"), durability="sync")
    assert CARD_NUMBER not in str(state["messages"])
    assert PASSPORT not in str(state["messages"])


def test_deleting_a_case_leaves_nothing_of_it_in_any_table(
    agency: Agency, stores: tuple[Any, Any], store_url: str
) -> None:
    saver, memory = stores
    database_url = store_url if is_postgres(store_url) else agency.database_url
    graph = agency.graph(saver, memory=memory, tools=agency.tools(database_url=database_url))
    database = application_database(database_url)
    for thread, user in (("trip-gone", "u-gone"), ("trip-kept", "u-kept")):
        config = traveller(thread, user_id=user)
        say(graph, config, f"{TRIP} From now on I fly with Cirrus.")
        answer = {"approved": True, "quote_version": asked(graph, config)["quote_version"]}
        reply(graph, config, answer, claims=AnswerClaims(database))
    before = rows_naming(database_url, "trip-gone")
    assert {name: before[name] for name in (*TABLES, "answer_claims")} == {
        "quotes": 1,
        "bookings": 1,
        "outbox": 1,
        "answer_claims": 1,
    }
    assert before["outbound_requests"] == 5
    namespace = travellers_namespace({"tenant": "acme", "user_id": "u-gone"})
    deleted = delete_case(
        "trip-gone", saver=saver, memory=memory, namespace=namespace, database=database, tables=TABLES
    )
    assert (deleted.n_rows, deleted.n_items) == (9, 1)
    for url in {store_url, database_url}:
        assert set(rows_naming(url, "trip-gone").values()) == {0}
        assert set(rows_naming(url, "u-gone").values()) == {0}
    kept = graph.get_state(traveller("trip-kept", user_id="u-kept")).values
    assert kept["bookings"]["status"] == "published"
    assert memory.get(("travellers", "u-kept"), "airline") is not None


@pytest.fixture
def version_1(tmp_path: Path) -> Iterator[SqliteSaver]:
    """Threads that version 1 of the graph left behind."""
    store = tmp_path / "v1.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(ROWS.read_text(encoding="utf-8"))
    with SqliteSaver.from_conn_string(str(store)) as saver:
        yield saver


def _as_then(agency: Agency) -> None:
    """Holds at the suppliers as they were when version 1 made its quotes."""
    for number, offer, total in (
        (1, "au-1", "200.00"),
        (2, "grand", "300.00"),
        (3, "au-1", "200.00"),
        (4, "grand", "300.00"),
    ):
        hold = f"{'fa' if number % 2 else 'ro'}_{number:06d}"
        known = {"hold_id": hold, "offer_id": offer, "status": "held", "total": total, "currency": "EUR"}
        agency.backoffice.put("holds", hold, {**known, "expires_at": "2026-12-01T18:00:00+00:00"})


def test_a_thread_parked_under_version_1_resumes_under_the_present_version(
    agency: Agency, version_1: SqliteSaver
) -> None:
    _as_then(agency)
    graph = agency.graph(version_1)
    parked = graph.get_state(traveller("parked-v1"))
    assert parked.values["graph_version"] == 1 < GRAPH_VERSION
    assert {"policy_version", "asked_on", "preferences", "question"}.isdisjoint(parked.values)
    assert {"paid", "due", "unmet", "changes"}.isdisjoint(parked.values["quote"])
    assert parked.next == ("approval",)
    state = approve(graph, traveller("parked-v1"))
    assert [charge["amount"] for charge in agency.effects("capture")] == ["500.00"]
    assert state["bookings"]["status"] == "published"
    later = say(graph, traveller("parked-v1"), "Thank you!")
    assert later["graph_version"] == GRAPH_VERSION


def test_a_thread_parked_under_version_1_takes_a_changed_wish_too(agency: Agency, version_1: SqliteSaver) -> None:
    _as_then(agency)
    graph = agency.graph(version_1)
    agency.rooms(room("grand"), room("near", "350.00", area="Opera"))
    say(graph, traveller("parked-v1"), "near the Opera, please")
    question = asked(graph, traveller("parked-v1"))
    assert question["total"] == "550.00"
    assert [change["what"] for change in question["changes"]] == ["total", "hotel"]
    assert agency.holds()["grand"] == "held" or agency.effects("release")


def test_a_thread_that_stopped_before_its_payment_under_version_1_goes_on(
    agency: Agency, version_1: SqliteSaver
) -> None:
    _as_then(agency)
    graph = agency.graph(version_1)
    assert graph.get_state(traveller("stopped-v1")).next == ("capture",)
    state = graph.invoke(None, traveller("stopped-v1"), durability="sync")
    assert [charge["reference"] for charge in agency.effects("capture")] == ["stopped-v1:capture:1"]
    assert state["bookings"]["trip"]["depart_on"] == OUT
    assert state["bookings"]["trip"]["return_on"] == BACK
