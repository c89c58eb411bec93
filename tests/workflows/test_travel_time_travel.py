"""Time travel on the travel incidents, by value: hand-offs, airlines side by side, approvals, and after a capture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.experiments.experiment import Target
from agentctl.experiments.replay import replay
from agentctl.experiments.runs.running import Limits
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.postgres.reading_role import reading_role
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader
from fixtures.incidents.travel.ordinary import ordinary_trips
from graphs.travel_booking.graph import build_graph
from graphs.travel_booking.model import make_model
from sandbox_tools.travel import FIRST_QUOTE, registry
from tests.support.asking import Ask, called
from tests.support.experiments import experiment_on
from tests.support.incidents import SeededStore, seeded_store
from tests.support.postgres import new_database

WRONG_DATES, LATE, HANDED_BACK, REFUSED = "trip-7F2C", "trip-2D8M", "trip-6K3R", "trip-4P6W"
CHANGED, WAITING = (each.case.thread for each in list(ordinary_trips(3))[1:])
QUOTED_ANEW = FIRST_QUOTE + 1
REASON = "a hotel closer to the airport please"
DECLINED = {"approved": False, "quote_version": 1, "reason": REASON, "then": "requote"}

pytestmark = pytest.mark.xdist_group("travel-incidents-time-travel")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededStore]:
    """Every incident; at the end nothing in production has moved, and nobody outside was called."""
    with seeded_store(tmp_path_factory.mktemp("travel"), workflow="travel_booking") as seeded:
        before, counters = fingerprint(seeded.url), seeded.backoffice.counters()
        yield seeded
        assert fingerprint(seeded.url) == before
        assert seeded.backoffice.counters() == counters


@pytest.fixture
def ask(store: SeededStore, tmp_path: Path) -> Ask:
    return Ask(store.folder, tmp_path, {"AGENTCTL_STORE": store.url})


def _approval(quote_version: int) -> dict[str, Any]:
    return {"approved": True, "quote_version": quote_version}


def _approved(quote_version: int) -> tuple[str, str]:
    return "--resume", json.dumps(_approval(quote_version))


def _untimed(value: Any) -> Any:
    """A state value without the time at which its quotes were made: a replay makes them now."""
    if isinstance(value, list):
        return [_untimed(each) for each in value]
    return {k: v for k, v in value.items() if k != "quoted_at"} if isinstance(value, dict) else value


def _served(run: Mapping[str, Any], name: str) -> list[str]:
    return [call["served_by"] for call in run["tool_calls"] if call["name"] == name]


def test_an_arrival_corrected_before_the_hand_off_is_quoted_anew_and_not_charged(ask: Ask) -> None:
    _arrives_a_day_later(ask, LATE)


def test_the_same_on_postgres(postgres_url: str, tmp_path: Path) -> None:
    with (
        new_database(postgres_url) as url,
        seeded_store(tmp_path / "travel", url, "travel_booking") as seeded,
        reading_role(url) as reading,
    ):
        assert reading is not None
        before, counters = fingerprint(url), seeded.backoffice.counters()
        _arrives_a_day_later(Ask(seeded.folder, tmp_path / "state", {"AGENTCTL_STORE": reading}), LATE)
        assert fingerprint(url) == before
        assert seeded.backoffice.counters() == counters


def _arrives_a_day_later(ask: Ask, thread: str) -> None:
    """The airline had the day of arrival wrong: corrected where it was answered, all that hangs on it is made anew."""
    rooms = {"city": "Krakow", "check_in": "2026-12-16", "check_out": "2026-12-17", "currency": "EUR", "offers": []}
    one = {"offer_id": "kazimierz", "hotel": "Kazimierz", "stars": 3, "area": "Centre", "total": "95.00"}
    run = ask.run(
        "fork",
        f"{thread}@call:search_flights:1:aurora",
        "--patch",
        'search_flights:1:aurora:offers[0].arrives_on="2026-12-16"',
        "--stub",
        f"search_hotels={json.dumps({**rooms, 'offers': [one]})}",
        *_approved(1),
    )
    assert run["status"] == "interrupted"
    assert run["nodes"].count("search_airline") == 1
    assert _served(run, "search_hotels") == ["stub"]
    assert not {"capture_payment", "confirm_flight", "publish_booking"} & set(called(run))
    before, after = ask.values(thread), ask.values(f"debug::{run['thread']}")
    assert (before["quote"]["quote_version"], after["quote"]["quote_version"]) == (1, QUOTED_ANEW)
    assert (before["hotel_hold"]["facts"]["check_in"], after["hotel_hold"]["facts"]["check_in"]) == (
        "2026-12-15",
        "2026-12-16",
    )
    assert (before["quote"]["total"], after["quote"]["total"]) == ("375.00", "280.00")
    # The approval of the quote that production knows fits no other: it is asked again.
    assert after["approval"] == {
        "status": "asked_again",
        "quote_version": 1,
        "problem": f"quote 1 is not the present one, which is {QUOTED_ANEW}",
    }
    (question,) = run["interrupts"]
    assert question["value"]["quote_version"] == QUOTED_ANEW
    assert after.get("payment") is None
    assert before["payment"]["captures"] != []


def test_after_the_capture_the_wrong_room_is_put_right_and_the_payment_kept(ask: Ask) -> None:
    nights = {"check_in": "2026-12-10", "check_out": "2026-12-13"}
    sets = [("--set", f'hotel_hold.facts.{name}="{day}"') for name, day in nights.items()]
    hold = ("--set", 'hotel_hold.hold_id="ro_000888"')
    run = ask.run("fork", f"{WRONG_DATES}@after:capture", *hold, *(word for each in sets for word in each))
    assert (run["status"], run["nodes"]) == ("done", ["ticketing", "publish"])
    assert called(run) == ["confirm_flight", "confirm_hotel", "publish_booking"]
    assert _served(run, "confirm_flight") == ["recorded"]
    assert _served(run, "confirm_hotel") == ["stub"]
    before, after = ask.values(WRONG_DATES), ask.values(f"debug::{run['thread']}")
    assert after["payment"] == before["payment"]
    assert (len(after["payment"]["captures"]), after["payment"]["status"]) == (1, "settled")
    assert after["bookings"]["flight"] == before["bookings"]["flight"]
    assert after["bookings"]["hotel"]["hold"]["facts"].items() >= nights.items()
    assert "2026-12-10 to 2026-12-13" in run["reply"]


def test_a_refused_room_is_confirmed_after_the_capture_and_nothing_is_paid_back(ask: Ask) -> None:
    confirmed = 'confirm_hotel={"booking_id": "ho_000777", "status": "confirmed"}'
    run = ask.run("fork", REFUSED, "--answer", confirmed)
    assert run["nodes"] == ["ticketing", "publish"]
    assert [call["served_by"] for call in run["tool_calls"]] == ["recorded", "answered", "stub"]
    before, after = ask.values(REFUSED), ask.values(f"debug::{run['thread']}")
    assert [refund["amount"] for refund in before["payment"]["refunds"]] == ["285.00"]
    assert after["payment"]["refunds"] == []
    assert after["payment"]["captures"] == before["payment"]["captures"]
    assert after["bookings"]["hotel"]["booking_id"] == "ho_000777"
    assert run["reply"].endswith("You paid 460.00 EUR in all.")


def test_a_node_that_routes_by_command_is_sent_another_way(ask: Ask) -> None:
    """After the approval the trip is closed in place of being paid for: both holds go back, nothing is charged."""
    run = ask.run("fork", f"{HANDED_BACK}@before:recheck", "--goto", "close")
    assert (run["status"], run["nodes"]) == ("done", ["close"])
    assert called(run) == ["release_hold", "release_hold"]
    assert run["reply"] == "Nothing was booked, and nothing is held any more."
    after = ask.values(f"debug::{run['thread']}")
    assert (after["flight_hold"], after["hotel_hold"], after.get("payment")) == (None, None, None)


def test_a_needless_hand_back_goes_to_the_hotel_agent_whose_room_is_approved_and_paid(ask: Ask) -> None:
    run = ask.run("fork", f"{HANDED_BACK}@before:flight_agent:3", "--goto", "hotel_agent", *_approved(QUOTED_ANEW))
    assert run["nodes"][:5] == ["hotel_agent", "search_hotels", "hotel_agent", "hold_room", "payments"]
    assert "search_flights" not in called(run)
    assert _served(run, "search_hotels") == ["recorded_again"]
    assert _served(run, "capture_payment") == ["stub"]
    before, after = ask.values(HANDED_BACK), ask.values(f"debug::{run['thread']}")
    assert (before["flight_hold"]["offer_id"], after["flight_hold"]["offer_id"]) == ("au-611", "au-610")
    assert (before["hotel_hold"]["offer_id"], after["hotel_hold"]["offer_id"]) == ("opera", "runway")
    assert before["quote"]["because"] == after["quote"]["because"] == REASON
    assert [capture["amount"] for capture in after["payment"]["captures"]] == ["510.00"]
    assert after["payment"]["captures"][0]["quote_version"] == QUOTED_ANEW


def test_a_trip_is_forked_before_its_approval_with_another_answer(ask: Ask) -> None:
    approved = ask.run("fork", WAITING, *_approved(1))
    assert (approved["status"], approved["nodes"][0]) == ("done", "approval")
    assert _served(approved, "capture_payment") == ["stub"]
    declined = ask.run("fork", WAITING, "--resume", '{"approved": false, "quote_version": 1, "reason": "too dear"}')
    assert (declined["status"], declined["nodes"]) == ("done", ["approval", "close"])
    assert "capture_payment" not in called(declined)
    free_text = ask.run("fork", WAITING, "--resume", '"yes please"')
    assert (free_text["status"], free_text["nodes"]) == ("interrupted", ["approval", "approval"])
    assert "valid dictionary" in ask.values(f"debug::{free_text['thread']}")["approval"]["problem"]


def test_a_trip_is_forked_after_its_approval(ask: Ask) -> None:
    """With another payment method in the approval the charge is another one, which no recording answers."""
    run = ask.run("fork", f"{REFUSED}@after:approval", "--set", 'approval.payment_method="pm_other"')
    assert run["nodes"][:3] == ["recheck", "capture", "ticketing"]
    (charge,) = [call for call in run["tool_calls"] if call["name"] == "capture_payment"]
    assert charge["args"]["payment_method"] == "pm_other"
    assert charge["served_by"] == "stub"


def test_one_of_three_airlines_is_corrected_and_the_others_are_not_asked_again(ask: Ask) -> None:
    patch = 'search_flights:1:aurora:offers[0].arrives_at="17:30"'
    run = ask.run("fork", f"{LATE}@call:search_flights:1:aurora", "--patch", patch, *_approved(1))
    assert run["nodes"][:2] == ["search_airline", "flight_agent"]
    assert run["nodes"].count("search_airline") == 1
    assert [call["args"]["airline"] for call in run["tool_calls"] if call["name"] == "search_flights"] == ["aurora"]
    before, after = ask.values(LATE), ask.values(f"debug::{run['thread']}")
    searched = {each["id"]: each for each in after["messages"] if each["id"].startswith("search_flights:")}
    assert list(searched) == [each["id"] for each in before["messages"] if each["id"].startswith("search_flights:")]
    assert len(searched) == 6
    changed = [each["id"] for each in before["messages"] if searched.get(each["id"], each) != each]
    assert changed == ["search_flights:1:aurora:answered"]
    assert (before["flight_hold"]["facts"]["arrives_at"], after["flight_hold"]["facts"]["arrives_at"]) == (
        "22:40",
        "17:30",
    )


def test_two_itineraries_differ_in_the_words_of_travel(ask: Ask) -> None:
    forked = ask.run("fork", f"{HANDED_BACK}@before:flight_agent:3", "--goto", "hotel_agent", *_approved(QUOTED_ANEW))
    difference = ask("diff", HANDED_BACK, f"debug::{forked['thread']}")
    told = {
        (entry["name"], field["name"]): (field["left_text"], field["right_text"])
        for entry in difference["view"]
        for field in entry["fields"]
        if entry["key"] in (None, "hotel")
    }
    assert told["total", "total"] == ("550.00 EUR", "510.00 EUR")
    assert told["approved quote", "approved quote"] == ("2", str(QUOTED_ANEW))
    assert told["itinerary", "supplier"] == ("Opera", "Runway")
    assert told["itinerary", "area"] == ("Centre", "Airport")
    assert told["itinerary", "price"] == ("300.00 EUR", "310.00 EUR")
    assert [(entry["key"], entry["side"]) for entry in difference["view"] if entry["name"] == "charges"] == [
        ("ca_000029", "left"),
        (ask.values(f"debug::{forked['thread']}")["payment"]["captures"][0]["payment_id"], "right"),
    ]


def test_a_trip_is_looked_at_copied_and_exported_as_it_was(ask: Ask, tmp_path: Path) -> None:
    rows = list(reversed(ask("history", CHANGED)["items"]))
    assert [row["source"] for row in rows].count("input") == 2
    assert [row["wrote"] for row in rows].count(["search_airline"] * 3) == 2
    assert [row["next"] for row in rows if row["interrupts"]] == [["approval"], ["approval"]]
    entries = ask("show", CHANGED, "--messages", "--all")["items"]
    charges = [call for each in entries for call in each["message"]["tool_calls"] if call["name"] == "capture_payment"]
    assert [call["args"]["quote_version"] for call in charges] == [1, 2]
    second = ask("show", CHANGED, "--call", "capture:2")
    assert (second["occurrence"], second["args"]["amount"]) == (2, charges[1]["args"]["amount"])
    view = {field["name"]: field["text"] for field in ask("show", CHANGED)["view"]["fields"]}
    assert (view["quote"], view["payment"], view["booked"]) == ("2", "settled", "published")
    copied = ask("copy", CHANGED)
    assert (copied["verified"], copied["n_checkpoints"]) == (True, len(rows))
    assert ask.values(copied["target"]["target"]) == ask.values(CHANGED)
    check = ("--check", "reply not contains is booked")
    exported = ask("export", CHANGED, "--dataset", "trips", "--format", "jsonl", *check)
    examples = [json.loads(line) for line in Path(exported["files"][0]).read_text("utf-8").splitlines()]
    assert [example["inputs"]["input"]["messages"][0]["data"]["content"] for example in examples] == [
        entry["message"]["text"] for entry in entries if entry["message"]["role"] == "human"
    ]
    assert [example["outputs"]["state"]["quote"]["quote_version"] for example in examples] == [1, 2]


@pytest.mark.parametrize(
    ("thread", "answers", "n_checkpoints"),
    [
        pytest.param(CHANGED, [_approval(2)], 16, id="a change after payment"),
        pytest.param(HANDED_BACK, [DECLINED, _approval(2)], 23, id="a hand-back"),
    ],
)
def test_a_replay_from_every_checkpoint_takes_the_recorded_route_and_moves_no_money(
    store: SeededStore, tmp_path: Path, thread: str, answers: list[Mapping[str, Any]], n_checkpoints: int
) -> None:
    """The fixture counts at the back office when all is done; here every call was answered from the recording."""
    tools, debug = registry(), str(tmp_path / "debug.sqlite")
    graph, policy = build_graph(tools, model=make_model(env={})), Policy(registry=tools, effects=Effects({}, (tools,)))
    recorded = _channels(store.url, thread)
    with experiment_on(store.url, graph, debug, policy=policy, limits=Limits()) as opened:
        experiment = replace(opened, recording=record_thread(opened.source, thread))
        ids = sorted(read_tree(opened.source, thread, "").ids)
        planned = {id: nodes for id, nodes in StepReader(opened.source, thread, "").next(ids).items() if nodes}
        last_turn = max(id for id, nodes in planned.items() if nodes == ("__start__",))
        starts = [id for id in planned if id >= last_turn]
        route = [node for id in starts for node in planned[id] if node != "__start__"]
        for id in starts:
            to_come = sum("approval" in planned[later] for later in starts if later >= id)
            answered = replace(experiment, answers=tuple(answers[len(answers) - to_come :]))
            (run,) = replay(answered, Target(thread, id, "", store=store.url, profile="prod")).group.runs
            assert (run.status, run.error) == ("done", None), id
            assert list(run.nodes) == route[-len(run.nodes) :], id
            assert {call.served_by for call in run.tool_calls} <= {"recorded", "recorded_again"}, id
            after = _channels(debug, run.thread)
            for channel in ("payment", "bookings", "quote", "quote_history", "handoffs"):
                assert _untimed(after[channel]) == _untimed(recorded[channel]), (id, channel)
    assert len(starts) == n_checkpoints
    assert recorded["bookings"]["status"] == "published"


def _channels(url: str, thread: str) -> Mapping[str, Any]:
    with SqliteSaver.from_conn_string(url) as saver:
        kept = saver.get_tuple({"configurable": {"thread_id": thread}})
    assert kept is not None
    return kept.checkpoint["channel_values"]
