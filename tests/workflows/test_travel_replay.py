"""Time travel on trips, by value: replays from every checkpoint, and forks before, at and after the payment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.experiments.experiment import Target
from agentctl.experiments.replay import replay
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader
from agentctl.testing import run_cli
from fixtures.backoffice.travel import change_hold
from graphs.travel_booking.door import say
from graphs.travel_booking.graph import build_graph
from graphs.travel_booking.model import make_model
from sandbox_tools.travel import FIRST_QUOTE, registry
from tests.support.experiments import experiment_on
from tests.support.travel import TRIP, Agency, agency_world, approve, fare, resume, room, traveller

REPOSITORY = Path(__file__).parents[2]
WORKFLOW = "travel_booking"
BOOKED, LOST, NEEDLESS = "trip-5G7Q", "trip-8K2D", "trip-3M9T"
NEXT, NEXT_BACK = "2026-12-11", "2026-12-14"
APPROVAL = {"approved": True, "quote_version": 1}

pytestmark = pytest.mark.xdist_group("travel-time-travel")


@dataclass(frozen=True)
class Project:
    """A folder with a configuration over the workflow, and a production store; commands leave production alone."""

    folder: Path

    def __call__(self, state: Path, *words: str, code: int = 0) -> Any:
        environ = {**os.environ, "XDG_STATE_HOME": str(state)}
        done = run_cli(*words, "--json", cwd=self.folder, environ=environ)
        assert done.code == code, done.out
        return done.json


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Three trips that were run for real; at the end production and the world outside are as they were."""
    folder = tmp_path_factory.mktemp("trips")
    store = folder / "prod.sqlite"
    with agency_world(folder) as agency:
        with SqliteSaver.from_conn_string(str(store)) as saver:
            _book_after_a_hand_back(agency, saver)
            _lose_the_hotel(agency, saver)
            _hand_back_needlessly(agency, saver)
        parts = {"graph": "graphs/travel_booking/graph.py:build_graph", "sandbox": "sandbox_tools/travel.py:registry"}
        view = str(REPOSITORY / "graphs/travel_booking/view.yaml")
        flow = {**{name: str(REPOSITORY / path) for name, path in parts.items()}, "renderer": view}
        profile = {"store": str(store), "access": "read", "default": True}
        configuration = {"profiles": {"prod": profile}, "workflows": {WORKFLOW: flow}}
        (folder / "agentctl.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
        before, counters = fingerprint(str(store)), agency.backoffice.counters()
        yield Project(folder)
        assert fingerprint(str(store)) == before
        assert agency.backoffice.counters() == counters


def _config(thread: str, **more: Any) -> RunnableConfig:
    return {**traveller(thread, **more), "metadata": {"graph_id": WORKFLOW}}


def _book_after_a_hand_back(agency: Agency, saver: Any) -> None:
    agency.rooms()
    agency.fares("aurora", fare("au-2", "220.00", arrives_on=NEXT), out=NEXT, back=NEXT_BACK)
    agency.rooms(room("lodge"), check_in=NEXT, check_out=NEXT_BACK)
    graph = agency.graph(saver)
    say(graph, _config(BOOKED), f"{TRIP} flexible by 1")
    approve(graph, _config(BOOKED))
    agency.rooms(room("grand"), room("terminal", "310.00", area="Airport"))


def _lose_the_hotel(agency: Agency, saver: Any) -> None:
    agency.rooms(room("grand"))
    graph = agency.graph(saver)
    say(graph, _config(LOST), TRIP)
    hold = graph.get_state(_config(LOST)).values["hotel_hold"]["hold_id"]

    class Losing:
        def __init__(self, tools: Any) -> None:
            self._tools = tools

        def __getitem__(self, name: str) -> Any:
            if name == "confirm_hotel":
                change_hold(agency.backoffice, hold, status="lost")
            return self._tools[name]

    approve(agency.graph(saver, tools=Losing(agency.tools())), _config(LOST))  # type: ignore[arg-type]


def _hand_back_needlessly(agency: Agency, saver: Any) -> None:
    agency.fares("aurora", fare("au-1"), fare("au-3", "250.00"))
    agency.rooms(room("grand"), room("terminal", "310.00", area="Airport"))
    graph, config = agency.graph(saver), _config(NEEDLESS, hotels_prompt="v1")
    say(graph, config, TRIP)
    answer = {"approved": False, "quote_version": 1, "reason": "closer to the airport", "then": "requote"}
    resume(graph, config, answer)


def _called(run: Mapping[str, Any]) -> list[str]:
    return [call["name"] for call in run["tool_calls"]]


def _steps(project: Project, state: Path, thread: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = project(state, "history", thread)["items"]
    return rows


def _before(project: Project, state: Path, thread: str, node: str, visit: int = 0) -> str:
    """The checkpoint of a thread from which a node runs."""
    rows = [row for row in reversed(_steps(project, state, thread)) if node in row["next"]]
    return f"{thread}@{rows[visit]['id']}"


def test_a_replay_from_any_checkpoint_takes_the_recorded_route_and_calls_nothing_outside(
    project: Project, tmp_path: Path
) -> None:
    tools = registry()
    policy = Policy(registry=tools, effects=Effects({}, (tools,)))
    graph = build_graph(tools, model=make_model(env={}))
    store, debug = project.folder / "prod.sqlite", tmp_path / "debug.sqlite"
    with experiment_on(store, graph, debug, policy=policy, answers=(APPROVAL,)) as opened:
        experiment = replace(opened, recording=record_thread(opened.source, BOOKED))
        ids = sorted(read_tree(opened.source, BOOKED, "").ids)
        planned = {id: nodes for id, nodes in StepReader(opened.source, BOOKED, "").next(ids).items() if nodes}
        route = [node for nodes in planned.values() for node in nodes if node != "__start__"]
        for id in planned:
            (run,) = replay(experiment, Target(BOOKED, id, "", store=str(store), profile="prod")).group.runs
            assert run.status == "done", id
            assert list(run.nodes) == route[-len(run.nodes) :], id
            assert {call.served_by for call in run.tool_calls} <= {"recorded", "recorded_again"}, id
            with SqliteSaver.from_conn_string(str(debug)) as saver:
                kept = saver.get_tuple({"configurable": {"thread_id": run.thread}})
            assert kept is not None
            state = kept.checkpoint["channel_values"]
            assert (state["quote"]["quote_version"], state["bookings"]["status"]) == (1, "published"), id
    assert len(planned) >= 20


def test_a_corrected_arrival_makes_a_new_quote_that_is_asked_about_and_charges_nothing(
    project: Project, tmp_path: Path
) -> None:
    rooms = {
        "city": "Oslo",
        "check_in": "2026-12-12",
        "check_out": NEXT_BACK,
        "currency": "EUR",
        "offers": [room("late", "180.00")],
    }
    forked = project(
        tmp_path,
        "fork",
        _before(project, tmp_path, BOOKED, "hotel_agent", visit=2),
        "--set",
        'flight_hold.facts.arrives_on="2026-12-12"',
        "--stub",
        f"search_hotels={json.dumps(rooms)}",
    )
    (run,) = forked["runs"]
    assert run["status"] == "interrupted"
    assert run["nodes"][-2:] == ["payments", "approval"]
    assert "capture_payment" not in _called(run)
    values = project(tmp_path, "show", f"debug::{run['thread']}", "--full")["values"]
    assert values["quote"]["quote_version"] == FIRST_QUOTE + 1
    assert values["quote"]["total"] == "400.00"
    assert values["hotel_hold"]["facts"]["check_in"] == "2026-12-12"
    assert values.get("payment") is None
    difference = project(tmp_path, "diff", BOOKED, f"debug::{run['thread']}")
    told = {item["name"]: (item["fields"][0]["left"], item["fields"][0]["right"]) for item in difference["view"]}
    assert told["quote"] == (1, FIRST_QUOTE + 1)


def test_an_approval_of_productions_quote_does_not_fit_the_forks(project: Project, tmp_path: Path) -> None:
    place = _before(project, tmp_path, BOOKED, "payments")
    forked = project(
        tmp_path, "fork", place, "--patch", 'check_hold:1:ro_000004:total="320.00"', "--resume", json.dumps(APPROVAL)
    )
    (run,) = forked["runs"]
    assert run["status"] == "interrupted"
    values = project(tmp_path, "show", f"debug::{run['thread']}", "--full")["values"]
    assert values["approval"]["problem"] == f"quote 1 is not the present one, which is {FIRST_QUOTE + 1}"
    assert "capture_payment" not in _called(run)


def test_after_the_capture_a_lost_booking_is_put_right_without_a_second_charge(
    project: Project, tmp_path: Path
) -> None:
    confirmed = 'confirm_hotel={"booking_id": "ho_777777", "status": "confirmed"}'
    forked = project(tmp_path, "fork", f"{LOST}@call:confirm_hotel", "--answer", confirmed)
    (run,) = forked["runs"]
    assert (run["status"], run["nodes"]) == ("done", ["ticketing", "publish"])
    assert _called(run) == ["confirm_flight", "confirm_hotel", "publish_booking"]
    before = project(tmp_path, "show", LOST, "--full")["values"]
    after = project(tmp_path, "show", f"debug::{run['thread']}", "--full")["values"]
    assert before["bookings"]["hotel"] is None
    assert len(before["payment"]["refunds"]) == 1
    assert after["bookings"]["hotel"]["booking_id"] == "ho_777777"
    assert after["payment"]["refunds"] == []
    assert after["payment"]["captures"] == before["payment"]["captures"]


def test_a_needless_hand_back_is_sent_on_to_the_rooms_and_keeps_the_fare(project: Project, tmp_path: Path) -> None:
    place = _before(project, tmp_path, NEEDLESS, "flight_agent", visit=2)
    forked = project(tmp_path, "fork", place, "--goto", "hotel_agent")
    (run,) = forked["runs"]
    assert run["status"] == "interrupted"
    assert run["nodes"] == ["hotel_agent", "search_hotels", "hotel_agent", "hold_room", "payments", "approval"]
    values = project(tmp_path, "show", f"debug::{run['thread']}", "--full")["values"]
    recorded = project(tmp_path, "show", NEEDLESS, "--full")["values"]
    assert (recorded["quote"]["total"], values["quote"]["total"]) == ("550.00", "510.00")
    assert values["flight_hold"]["offer_id"] == "au-1"
    assert values["hotel_hold"]["offer_id"] == "terminal"


def test_one_of_the_airlines_searched_side_by_side_is_corrected_and_the_others_stay(
    project: Project, tmp_path: Path
) -> None:
    answer = {
        "airline": "cirrus",
        "origin": "Lisbon",
        "destination": "Oslo",
        "depart_on": "2026-12-10",
        "return_on": "2026-12-13",
        "currency": "EUR",
        "offers": [fare("ci-9", "120.00")],
    }
    forked = project(tmp_path, "fork", f"{LOST}@call:search_flights:1:cirrus", "--answer", _answer("cirrus", answer))
    (run,) = forked["runs"]
    assert run["nodes"][:3] == ["search_airline", "flight_agent", "hold_fare"]
    assert run["nodes"].count("search_airline") == 1
    values = project(tmp_path, "show", f"debug::{run['thread']}", "--full")["values"]
    assert values["flight_hold"]["offer_id"] == "ci-9"


def _answer(airline: str, answer: object) -> str:
    return f"search_flights:1:{airline}={json.dumps(answer)}"
