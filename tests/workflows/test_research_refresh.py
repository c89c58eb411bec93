"""A refresh: a new thread seeded with the old outline and sources; it shows what changed, is gone or contradicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graphs.research_report.changes import changes_since, refresh_input
from graphs.research_report.report import Finding, Report
from tests.support.research import (
    APPROVE,
    BERTHS,
    COUNT_URL,
    PRICE,
    PRICE_URL,
    REGISTER_URL,
    ResearchWorld,
    analyst,
    brief,
    called,
    norhaven,
    offered,
    page,
    research,
    research_world,
    resume,
    reviewer,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResearchWorld]:
    with research_world(tmp_path_factory.mktemp("research")) as running:
        yield running


@pytest.fixture(scope="module")
def publication(world: ResearchWorld) -> dict[str, Any]:
    """The first version of a report on berths and price, as the receiver has it."""
    world.web.hold(*norhaven())
    graph = world.graph(InMemorySaver())
    research(graph, analyst("first"))
    resume(graph, reviewer("first"), APPROVE)
    [made] = world.published("first")
    return made


def refreshed(world: ResearchWorld, publication: dict[str, Any], thread: str) -> tuple[Any, Report, dict[str, Any]]:
    graph = world.graph(InMemorySaver())
    state = research(graph, analyst(thread), refresh_input(publication))
    return graph, offered(graph, analyst(thread)), state


def test_nothing_changed(world: ResearchWorld, publication: dict[str, Any]) -> None:
    world.web.hold(*norhaven())
    _, report, state = refreshed(world, publication, "same")
    assert report.changes == []
    assert report.outline == [f"q1: {BERTHS}", f"q2: {PRICE}"]
    assert report.findings == Report.model_validate(publication["report"]).findings
    assert "previous" in state["messages"][0].text


def test_each_old_source_is_fetched_again_and_newer_material_searched(
    world: ResearchWorld, publication: dict[str, Any]
) -> None:
    world.web.hold(*norhaven())
    _, _, state = refreshed(world, publication, "again")
    tasks = [call["args"]["description"] for call in called(state["messages"], "task")]
    assert f"Known sources: {REGISTER_URL}, {COUNT_URL}" in tasks[0]
    assert f"Known sources: {PRICE_URL}" in tasks[1]
    fetched = [subject for _, tool, subject in world.web.asked if tool == "fetch_page"]
    assert sorted(set(fetched)) == sorted([COUNT_URL, REGISTER_URL, PRICE_URL])
    assert world.web.n_asked("web_search") >= 2


def test_a_source_that_says_something_else_now_is_a_change(world: ResearchWorld, publication: dict[str, Any]) -> None:
    now = "Ships paid a price of 0.38 euros a kilowatt hour in 2027."
    world.web.hold(*norhaven()[:2], page(PRICE_URL, now, published_on="2027-01-10"))
    _, report, _ = refreshed(world, publication, "changed")
    assert [(change.finding, change.kind, change.detail) for change in report.changes] == [("f2", "changed", now)]
    assert "0.38 euros" in report.findings[1].statement


def test_a_source_that_is_not_there_any_more_is_gone(world: ResearchWorld, publication: dict[str, Any]) -> None:
    world.web.hold(*norhaven()[:2])
    _, report, _ = refreshed(world, publication, "gone")
    assert [(change.finding, change.kind) for change in report.changes] == [("f2", "gone")]
    assert any(question.startswith("q2:") for question in report.open_questions)


def test_a_new_source_that_says_otherwise_is_a_contradiction(world: ResearchWorld, publication: dict[str, Any]) -> None:
    other = "Inspectors found 95 berths with shore power in 2026."
    world.web.hold(*norhaven(), page("https://inspectors.example/", other, published_on="2026-09-01"))
    _, report, _ = refreshed(world, publication, "contradicted")
    assert [(change.finding, change.kind, change.detail) for change in report.changes] == [
        ("f1", "contradicted", other)
    ]
    assert "conflict" in report.findings[0].flags


def test_a_refresh_is_published_as_the_next_version(world: ResearchWorld, publication: dict[str, Any]) -> None:
    world.web.hold(*norhaven()[:2])
    graph, _, _ = refreshed(world, publication, "next")
    resume(graph, reviewer("next"), APPROVE)
    [made] = world.published("next")
    assert (made["artifact"], made["version"]) == (publication["artifact"], publication["version"] + 1)
    first = next(each for each in world.backoffice.effects("publication") if each["version"] == 1)
    assert first["report"] == publication["report"], "the first version stays as it was"


def test_a_finding_that_other_sources_still_bear_out_is_not_gone() -> None:
    old = Report.model_validate(
        {
            "title": "t",
            "summary": "s",
            "outline": [],
            "findings": [
                {"id": "f1", "sub_question": "q1", "statement": "In 2026 the port had 120 berths.", "sources": ["s-1"],
                 "confidence": "medium", "flags": []}
            ],
            "sources": [
                {"id": "s-1", "url": "https://a.example/", "title": "", "accessed_on": "2026-01-01", "quotes": ["x"]}
            ],
            "open_questions": [],
        }
    )  # fmt: skip
    now = Finding(
        id="f1", sub_question="q1", statement="In 2026 the port had 120 berths.", sources=["s-2"], confidence="medium"
    )
    assert changes_since(old, [now], []) == []
    assert [change.kind for change in changes_since(old, [], [])] == ["gone"]


def test_the_input_of_a_refresh_names_question_and_previous_version(publication: dict[str, Any]) -> None:
    given = refresh_input(publication, audience="the board")
    assert given["question"] == brief()["question"]
    assert (given["previous"]["version"], given["audience"]) == (publication["version"], "the board")
    assert set(given["previous"]) == {"artifact", "version", "report"}
