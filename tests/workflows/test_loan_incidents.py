"""The loan incidents: each really happened, and in a world put right the case would have come out right."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fixtures.backoffice import BackOffice, running
from fixtures.incidents.common import SeededThread
from fixtures.incidents.loan.files import Incident, load_incidents
from fixtures.incidents.loan.ordinary import ordinary_cases
from fixtures.incidents.loan.seeding import seed
from tests.support.incidents import NOW

INCIDENTS = {incident.name: incident for incident in load_incidents()}
pytestmark = pytest.mark.xdist_group("loan-incidents")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackOffice]:
    with running(tmp_path_factory.mktemp("office") / "ledger.sqlite") as backoffice:
        yield backoffice


@pytest.fixture(scope="module")
def threads(office: BackOffice, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SeededThread]:
    store = tmp_path_factory.mktemp("seeded") / "prod.sqlite"
    return {thread.thread: thread for thread in seed(str(store), office, now=NOW, n_ordinary=7)}


def test_there_are_four_incidents_with_the_verdicts_they_were_written_for() -> None:
    assert {name: incident.experiment.expected["verdict"] for name, incident in INCIDENTS.items()} == {
        "stale-bureau": "tool_data",
        "misread-income": "model_or_prompt",
        "flaky-extraction": "nondeterminism",
        "wrong-employer": "state",
    }


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_the_case_really_came_out_wrong(threads: Mapping[str, SeededThread], name: str) -> None:
    incident = INCIDENTS[name]
    assert threads[incident.thread].reply.startswith(incident.wrong_outcome)
    assert threads[incident.thread].status == ("done" if incident.wrong_outcome else "interrupted")


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_with_the_world_put_right_the_case_comes_out_right(office: BackOffice, tmp_path: Path, name: str) -> None:
    incident = INCIDENTS[name]
    right = dataclasses.replace(
        incident,
        case=dataclasses.replace(incident.case, thread=f"{incident.thread}.2", answers=()),
        earlier=None,
        replica=None,
        settings={},
        seed=None,
        faults=(),
    )
    assert _outcome(office, tmp_path, right) == incident.right_outcome


@pytest.mark.parametrize("name", ["stale-bureau", "misread-income", "wrong-employer"])
def test_another_applicant_meets_the_same_mistake(office: BackOffice, tmp_path: Path, name: str) -> None:
    """So nothing knows an incident by its literals."""
    incident = INCIDENTS[name]
    somebody = {"applicant_id": f"ap-x-{name}", "full_name": "Ines Moor", "id_last4": "7310"}
    case = dataclasses.replace(
        incident.case,
        thread=f"{incident.thread}.3",
        applicant=dataclasses.replace(incident.case.applicant, **somebody),
        application={"amount": "9500.00"},
    )
    earlier = incident.earlier and dataclasses.replace(incident.earlier, thread=f"{incident.earlier.thread}.3")
    faults = tuple({**fault, "subject": somebody["applicant_id"]} for fault in incident.faults)
    other = dataclasses.replace(incident, case=case, earlier=earlier, faults=faults)
    assert _outcome(office, tmp_path, other).startswith(incident.wrong_outcome)


def test_ordinary_cases_end_in_every_way_that_a_case_can(threads: Mapping[str, SeededThread]) -> None:
    found = [threads[each.case.thread] for each in ordinary_cases(7)]
    assert [(thread.status, thread.reply.partition(":")[0]) for thread in found] == [
        ("done", "approve"),
        ("done", "decline"),
        ("interrupted", ""),
        ("done", "approve"),
        ("done", "approve"),
        ("interrupted", ""),
        ("error", ""),
    ]


def test_every_decision_was_recorded_and_every_loan_booked_once(
    office: BackOffice, threads: Mapping[str, SeededThread]
) -> None:
    done = [thread for thread in threads.values() if thread.reply]
    cases = [record["case"] for record in office.effects("decision_record")]
    assert {thread.thread for thread in done} <= set(cases)
    assert len(cases) == len(set(cases))
    bookings = [booking["reference"].partition(":")[0] for booking in office.effects("loan_booking")]
    assert {thread.thread for thread in done if thread.reply.startswith("approve")} <= set(bookings)
    assert len(bookings) == len(set(bookings))
    assert office.alerts() == []


def _outcome(office: BackOffice, folder: Path, incident: Incident) -> str:
    seeded = seed(str(folder / "prod.sqlite"), office, now=NOW, incidents=[incident], n_ordinary=0)
    return seeded[-1].reply
