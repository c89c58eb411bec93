"""The travel incidents: each really happened, and in a world put right the trip would have come out right."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from langgraph.store.sqlite import SqliteStore

from fixtures.backoffice import BackOffice, running
from fixtures.incidents.common import SeededThread
from fixtures.incidents.travel.files import Dates, Incident, load_incidents
from fixtures.incidents.travel.ordinary import ordinary_trips
from fixtures.incidents.travel.seeding import seed

INCIDENTS = {incident.name: incident for incident in load_incidents()}
pytestmark = pytest.mark.xdist_group("travel-incidents")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackOffice]:
    with running(tmp_path_factory.mktemp("office") / "ledger.sqlite") as backoffice:
        yield backoffice


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seeded") / "prod.sqlite"


@pytest.fixture(scope="module")
def threads(office: BackOffice, production: Path) -> Mapping[str, SeededThread]:
    return {thread.thread: thread for thread in seed(str(production), office, n_ordinary=6)}


@pytest.fixture(scope="module")
def elsewhere(office: BackOffice, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SeededThread]:
    """Every incident in a world put right, as THREAD.2, and the same mistake on another route, as THREAD.3."""
    store = tmp_path_factory.mktemp("elsewhere") / "prod.sqlite"
    cases = [*map(_put_right, INCIDENTS.values()), *map(_on_another_route, INCIDENTS.values())]
    return {thread.thread: thread for thread in seed(str(store), office, incidents=cases, n_ordinary=0)}


def test_there_are_five_incidents_with_the_verdicts_they_were_written_for() -> None:
    assert {name: incident.experiment.expected["verdict"] for name, incident in INCIDENTS.items()} == {
        "wrong-dates": "tool_data",
        "refused-room": "tool_data",
        "late-arrival": "model_or_prompt",
        "needless-hand-back": "routing",
        "wrong-preference": "state",
    }


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_the_trip_really_came_out_wrong(threads: Mapping[str, SeededThread], name: str) -> None:
    incident = INCIDENTS[name]
    assert threads[incident.thread].status == "done"
    assert incident.wrong_reply in threads[incident.thread].reply
    assert incident.right_reply not in threads[incident.thread].reply


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_with_the_world_put_right_the_trip_comes_out_right(elsewhere: Mapping[str, SeededThread], name: str) -> None:
    incident = INCIDENTS[name]
    assert incident.right_reply in elsewhere[f"{incident.thread}.2"].reply


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_another_traveller_meets_the_same_mistake_elsewhere(elsewhere: Mapping[str, SeededThread], name: str) -> None:
    """So nothing knows an incident by its literals."""
    incident = INCIDENTS[name]
    assert incident.wrong_reply in elsewhere[f"{incident.thread}.3"].reply


def test_what_the_earlier_thread_left_in_memory_is_the_opposite_of_what_was_said(
    threads: Mapping[str, SeededThread], production: Path
) -> None:
    earlier = INCIDENTS["wrong-preference"].earlier
    assert earlier is not None
    assert threads[earlier.thread].reply == "Thank you, I have noted that."
    assert "not want to fly with borealis" in str(earlier.steps[0].message)
    with SqliteStore.from_conn_string(str(production)) as memory:
        item = memory.get(("travellers", earlier.user_id), "airline")
        assert item is not None
        assert item.value == {"value": "borealis"}


def test_ordinary_trips_end_in_every_way_that_a_trip_can(threads: Mapping[str, SeededThread]) -> None:
    found = [threads[each.case.thread] for each in ordinary_trips(6)]
    assert [(thread.status, thread.reply.partition(".")[0]) for thread in found] == [
        ("done", "Your trip is booked"),
        ("done", "Your trip is booked"),
        ("interrupted", ""),
        ("interrupted", ""),
        ("done", "Nothing was booked, and nothing is held any more"),
        ("error", ""),
    ]


def test_every_booked_trip_was_charged_once_for_each_quote_that_was_approved(
    office: BackOffice, threads: Mapping[str, SeededThread]
) -> None:
    keys = [charge["reference"] for charge in office.effects("capture")]
    assert len(keys) == len(set(keys))
    booked = {name for name, thread in threads.items() if "is booked" in thread.reply}
    assert booked <= {key.partition(":")[0] for key in keys}
    changed = [each.case.thread for each in ordinary_trips(6)][1]
    assert [key for key in keys if key.startswith(f"{changed}:")] == [f"{changed}:capture:1", f"{changed}:capture:2"]
    assert [cancelled["reference"].partition(":")[0] for cancelled in office.effects("cancellation")] == [
        changed,
        changed,
    ]
    assert office.alerts() == []


def _put_right(incident: Incident) -> Incident:
    case = dataclasses.replace(incident.case, thread=f"{incident.thread}.2")
    return dataclasses.replace(incident, case=case, earlier=None, settings={}, faults=())


def _on_another_route(incident: Incident) -> Incident:
    """The same mistake on another route, with other offers, for another traveller."""
    origin, destination, user_id = "Oporto", "Aarhus", f"u-x-{incident.name}"

    def renamed(text: str) -> str:
        return text.replace(incident.case.origin, origin).replace(incident.case.destination, destination)

    def others(dates: Dates) -> Dates:
        fares = {
            airline: tuple({**offer, "offer_id": f"x-{offer['offer_id']}"} for offer in offers)
            for airline, offers in dates.fares.items()
        }
        rooms = tuple({**offer, "offer_id": f"x-{offer['offer_id']}"} for offer in dates.rooms)
        return dataclasses.replace(dates, fares=fares, rooms=rooms)

    case = incident.case
    other = dataclasses.replace(
        case,
        thread=f"{case.thread}.3",
        user_id=user_id,
        origin=origin,
        destination=destination,
        dates=tuple(others(dates) for dates in case.dates),
        steps=tuple(dataclasses.replace(step, message=step.message and renamed(step.message)) for step in case.steps),
    )
    earlier = incident.earlier and dataclasses.replace(
        incident.earlier, thread=f"{incident.earlier.thread}.3", user_id=user_id
    )
    faults = tuple({**fault, "subject": destination} if "subject" in fault else fault for fault in incident.faults)
    return dataclasses.replace(incident, case=other, earlier=earlier, faults=faults)
