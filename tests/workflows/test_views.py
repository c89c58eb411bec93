"""The views of the four workflows: each fits the threads that its workflow really makes, and tells them apart."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agentctl.config.load import load_config
from agentctl.config.origins import DEFAULT
from agentctl.config.views import read_view
from agentctl.experiments.comparing.views import compare, read_view_of
from agentctl.records.views import Reading, View
from agentctl.render.views import change_lines, value_text
from agentctl.stores.open import open_reader
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.state import read_values
from graphs.research_report.graph import build_graph as research
from graphs.travel_booking.door import say
from sandbox_tools.research import registry as recorded_web
from tests.support.incidents import REPOSITORY
from tests.support.loan import APPROVE, LoanWorld, applicant, apply, resume, staff
from tests.support.travel import TRIP, Agency, approve, fare, traveller

NAMES = ("support_refunds", "loan_underwriting", "travel_booking", "research_report")


def view_of(workflow: str) -> View:
    return read_view(REPOSITORY / "graphs" / workflow / "view.yaml", workflow, DEFAULT)


def readings(store: Path, thread: str, workflow: str, *, every: int = 1) -> list[Reading]:
    """Each `every`-th checkpoint of a thread in its workflow's words, the head first, read from stored rows alone."""
    reader = open_reader(str(store))
    try:
        ids = [row.id for row in reader.rows(thread)]
        assert read_tree(reader, thread, "").head == ids[0]
        return [read_view_of(view_of(workflow), read_values(reader, thread, "", id).values) for id in ids[::every]]
    finally:
        reader.close()


def fields(reading: Reading) -> dict[str, str]:
    return {each.name: value_text(each) for each in reading.fields if each.value not in (None, "")}


def items(reading: Reading, name: str) -> dict[str, dict[str, str]]:
    (found,) = (each.items for each in reading.lists if each.name == name)
    return {item.key: {each.name: value_text(each) for each in item.fields} for item in found}


def told(left: Reading, right: Reading) -> list[str]:
    return [line.plain.rstrip() for line in change_lines(list(compare(left, right)), 100, 14)]


def test_every_configured_view_is_read_and_names_a_workflow_that_has_one() -> None:
    config = load_config(REPOSITORY, {})
    for workflow in config.workflows.values():
        assert workflow.renderer == REPOSITORY / "graphs" / workflow.name / "view.yaml"
    assert [view_of(name).workflow for name in NAMES] == list(NAMES)


def test_a_loan_case_is_told_by_decision_score_and_facts(bank: LoanWorld, tmp_path: Path) -> None:
    store = tmp_path / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(store)) as saver:
        for thread, bureau in (("good", {}), ("bad", {"open_defaults": 2, "score": 410}), ("doubtful", {"score": 530})):
            apply(bank.graph(saver), bank.put_applicant(bureau=bureau), applicant(thread))
        resume(bank.graph(saver), staff("doubtful"), APPROVE)
    all_of_them = {name: readings(store, name, "loan_underwriting") for name in ("good", "bad", "doubtful")}
    assert {problem for each in all_of_them.values() for reading in each for problem in reading.problems} == set()
    good, bad, doubtful = (each[0] for each in all_of_them.values())
    assert fields(good).items() >= {"decision": "approve", "amount": "12,000.00 EUR", "bureau score": "680"}.items()
    assert items(good, "extracted")["monthly_income"] == {"value": "4200.00"}
    assert items(doubtful, "reviews")["uw-1"]["decision"] == "approve"
    assert told(good, bad)[:7] == [
        "decision      ~ approve -> decline",
        "indicated     ~ approve -> decline",
        "score         ~ 750 -> 480",
        "reasons       ~ MEETS_POLICY -> OPEN_DEFAULT, SCORE_LOW",
        "hard stops    ~ none -> OPEN_DEFAULT",
        "bureau score  ~ 680 -> 410",
        "open defaults ~ 0 -> 2",
    ]


def test_a_trip_is_told_by_itinerary_quote_payment_and_bookings(agency: Agency, tmp_path: Path) -> None:
    store = tmp_path / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(store)) as saver:
        graph = agency.graph(saver)
        say(graph, traveller("booked"), TRIP)
        approve(graph, traveller("booked"))
        agency.fares("aurora", fare("au-2", "250.00"))
        say(graph, traveller("waiting"), TRIP)
    booked, waiting = readings(store, "booked", "travel_booking"), readings(store, "waiting", "travel_booking", every=4)
    assert {problem for reading in (*booked, *waiting) for problem in reading.problems} == set()
    assert fields(booked[0]).items() >= {"quote": "1", "total": "500.00 EUR", "payment": "settled"}.items()
    assert set(items(booked[0], "itinerary")) == set(items(booked[0], "bookings")) == {"flight", "hotel"}
    assert [each["amount"] for each in items(booked[0], "charges").values()] == ["500.00 EUR"]
    assert [line for line in told(booked[0], waiting[0]) if "flight" in line or "total" in line] == [
        "total         ~ 500.00 EUR -> 550.00 EUR",
        "itinerary     ~ flight offer: au-1 -> au-2",
        "              ~ flight price: 200.00 EUR -> 250.00 EUR",
        "              ~ flight status: booked -> held",
        "lines         ~ flight total: 200.00 EUR -> 250.00 EUR",
        "bookings      - flight: booking fl_000004, offer au-1",
    ]


def ask(store: Path, thread: str, scope: list[str]) -> None:
    async def run() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(store)) as saver:
            graph: Any = research(recorded_web())
            graph.checkpointer = saver
            config: RunnableConfig = {"configurable": {"thread_id": thread, "user_id": "u-1", "tenant": "acme"}}
            asked: Mapping[str, object] = {"question": "How many charging points are there?", "scope": scope}
            await graph.ainvoke({**asked, "audience": "engineers"}, config, durability="sync")

    asyncio.run(run())


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("reports") / "prod.sqlite"
    ask(store, "both", ["the count", "the growth"])
    ask(store, "one", ["the count"])
    return store


def test_a_report_is_told_finding_by_finding_also_while_it_waits_for_its_reviewer(reports: Path) -> None:
    both, one = (readings(reports, name, "research_report", every=7) for name in ("both", "one"))
    assert {problem for reading in (*both, *one) for problem in reading.problems} == set()
    findings = items(both[0], "findings")
    assert set(findings) == {"f1", "f2"}
    assert all(each["value"] and each["sources"] for each in findings.values())
    assert set(items(one[0], "findings")) == {"f1"}
    lines = told(both[0], one[0])
    assert [line.partition(":")[0] for line in lines if line.startswith("findings")] == ["findings      - f2"]
    assert any(line.startswith("sources       - s-") for line in lines)


def test_notes_are_read_out_of_files_that_are_kept_as_deltas(reports: Path) -> None:
    notes = items(readings(reports, "both", "research_report", every=1000)[0], "notes")
    assert {name.rpartition("/")[0] for name in notes} == {"/notes/q1", "/notes/q2"}
    assert all(each["claims"] != "-" or each["unreadable"] != "-" for each in notes.values())
