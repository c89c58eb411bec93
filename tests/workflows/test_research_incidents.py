"""The research incidents: each really happened, and in a world put right the report would have come out right."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import pytest

from fixtures import web as recorded_web
from fixtures.backoffice import BackOffice, running
from fixtures.incidents.common import SeededThread
from fixtures.incidents.research.files import Incident, load_incidents
from fixtures.incidents.research.ordinary import ordinary_cases
from fixtures.incidents.research.seeding import TENANT, seed
from fixtures.web import Web
from tests.support.incidents import NOW

INCIDENTS = {incident.name: incident for incident in load_incidents()}
# Another analyst's question that meets the same cause, and what came of it.
OTHERS = {
    "stale-page": ("How many public charging points are there?", "public charging points by official count", "35,365"),
    "added-certainty": ("Where do lorries charge first?", "first charging park for lorries at Sundvik", "will open"),
    "blocked-domain": ("What do drivers pay at a charger?", "median price of normal charging", "published: Open: 1"),
}
pytestmark = pytest.mark.xdist_group("research-incidents")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackOffice]:
    with running(tmp_path_factory.mktemp("office") / "ledger.sqlite") as backoffice:
        yield backoffice


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with recorded_web.running([TENANT]) as running_web:
        yield running_web


@pytest.fixture(scope="module")
def threads(office: BackOffice, web: Web, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SeededThread]:
    store = tmp_path_factory.mktemp("seeded") / "prod.sqlite"
    return {thread.thread: thread for thread in seed(str(store), office, web, now=NOW)}


@pytest.fixture(scope="module")
def elsewhere(office: BackOffice, web: Web, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SeededThread]:
    """Every incident in a world put right, as THREAD.2, and another question in the world as it was, as THREAD.3."""
    store = tmp_path_factory.mktemp("elsewhere") / "prod.sqlite"
    cases = [
        *map(_put_right, INCIDENTS.values()),
        *(_of_somebody(INCIDENTS[name], *OTHERS[name][:2]) for name in OTHERS),
    ]
    return {thread.thread: thread for thread in seed(str(store), office, web, now=NOW, incidents=cases, n_ordinary=0)}


def _put_right(incident: Incident) -> Incident:
    case = dataclasses.replace(incident.case, thread=f"{incident.thread}.2", user_id=f"{incident.user_id}-right")
    return dataclasses.replace(incident, case=case, preferences={}, settings={}, seed=None, faults=())


def _of_somebody(incident: Incident, question: str, aspect: str) -> Incident:
    brief = {"question": question, "scope": [aspect], "audience": "general readers"}
    case = dataclasses.replace(
        incident.case, thread=f"{incident.thread}.3", user_id=f"{incident.user_id}-other", brief=brief
    )
    return dataclasses.replace(incident, case=case)


def test_there_are_four_incidents_with_the_verdicts_they_were_written_for() -> None:
    assert {name: incident.experiment.expected["verdict"] for name, incident in INCIDENTS.items()} == {
        "stale-page": "tool_data",
        "added-certainty": "model_or_prompt",
        "flaky-search": "nondeterminism",
        "blocked-domain": "state",
    }


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_the_report_really_came_out_wrong_and_was_published(threads: Mapping[str, SeededThread], name: str) -> None:
    incident = INCIDENTS[name]
    found = threads[incident.thread]
    assert (found.status, found.incident) == ("done", name)
    assert found.reply.startswith("published: ")
    assert incident.wrong_outcome in found.reply
    assert incident.right_outcome not in found.reply


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_with_the_world_put_right_the_report_comes_out_right(elsewhere: Mapping[str, SeededThread], name: str) -> None:
    incident = INCIDENTS[name]
    found = elsewhere[f"{incident.thread}.2"]
    assert incident.right_outcome in found.reply
    assert incident.wrong_outcome not in found.reply


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_another_question_meets_the_same_mistake(elsewhere: Mapping[str, SeededThread], name: str) -> None:
    """So nothing knows an incident by its literals."""
    found = elsewhere[f"{INCIDENTS[name].thread}.3"]
    assert found.reply.startswith("published: ")
    assert OTHERS[name][2] in found.reply


def test_ordinary_reports_end_in_every_way_that_a_report_can(threads: Mapping[str, SeededThread]) -> None:
    found = [(each.kind, threads[each.case.thread]) for each in ordinary_cases(5)]
    assert [(kind, thread.status, thread.reply.partition(":")[0]) for kind, thread in found] == [
        ("published", "done", "published"),
        ("waiting", "interrupted", ""),
        ("revised", "done", "published"),
        ("partial", "done", "partial"),
        ("failed", "error", ""),
    ]


def test_every_report_that_was_let_out_was_published_once(
    office: BackOffice, threads: Mapping[str, SeededThread]
) -> None:
    references = [each["reference"].partition(":")[0] for each in office.effects("publication")]
    let_out = {thread.thread for thread in threads.values() if thread.reply.startswith("published: ")}
    assert let_out <= set(references)
    assert len(references) == len(set(references))
    assert not {each.case.thread for each in ordinary_cases(5) if each.kind in ("waiting", "partial", "failed")} & set(
        references
    )
    assert office.alerts() == []


def test_the_web_was_asked_over_mcp_for_one_tenant_alone(web: Web, threads: Mapping[str, SeededThread]) -> None:
    counters = web.counters()
    assert set(counters["by_tenant"]) == {TENANT}
    assert set(counters["by_tool"]) == {"web_search", "fetch_page"}
    assert counters["n_refused"] == 0
    assert web.submitted() == []
