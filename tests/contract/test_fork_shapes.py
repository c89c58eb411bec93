"""Forks in the shapes of workflows: Command hand-offs, questions, finished effects, parallel owners, subgraphs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.errors import Ambiguous, Refused, UsageError
from agentctl.records.runs import ForkReport, RunReport
from tests.catalog import CATALOG, handoffs, owncalls
from tests.support.experiments import policy
from tests.support.forking import ON_BOTH, Source, sources

THREADS = {
    "planned": "hand-offs asking",
    "booked": "hand-offs done",
    "loan": "own calls",
    "failed": "own calls failing",
    "asks": "own calls asking",
    "answered": "own calls answered",
}
TRIP = handoffs.trip(None, handoffs.travel())
LOAN = owncalls.underwriting(None, owncalls.lender())
ASKING = owncalls.underwriting(None, owncalls.lender(), asks=True)


@pytest.fixture(scope="module")
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Source]]:
    """Stores with the threads, made once; forks of them are made beside each other."""
    with sources(_fill, tmp_path_factory.mktemp("forks"), lambda: str(request.getfixturevalue("postgres_url"))) as made:
        yield made


@pytest.fixture
def source(request: pytest.FixtureRequest, stores: Callable[[str], Source]) -> Source:
    return stores(getattr(request, "param", "sqlite"))


def _fill(source: Source) -> None:
    for thread, name in THREADS.items():
        source.run(CATALOG[name].build, thread, CATALOG[name].run)


@pytest.fixture(autouse=True)
def _nothing_runs_for_real(source: Source) -> Iterator[None]:
    for world in (handoffs.WORLD, owncalls.WORLD):
        world.clear()
    yield
    assert not handoffs.WORLD
    assert not owncalls.WORLD


def only(report: ForkReport) -> RunReport:
    (run,) = report.group.runs
    return run


def values(source: Source, graph: Any, report: ForkReport) -> dict[str, Any]:
    return dict(source.state(graph, only(report).thread).values)


def served(report: ForkReport) -> list[tuple[str, str]]:
    return [(call.name, call.served_by) for call in only(report).tool_calls]


def question(report: ForkReport) -> Any:
    run = only(report)
    assert run.status == "interrupted", run.error
    return run.interrupts[0]["value"]


# Nodes that route by Command
@ON_BOTH
def test_a_corrected_search_in_a_hand_off_leads_to_a_fresh_question_and_takes_no_money(source: Source) -> None:
    report = source.fork(TRIP, "booked@call:search_hotels:1", patch=["search_hotels:rooms=2"])
    assert (report.as_node, report.next) == ("hotel_agent", ("hotel_agent",))
    assert only(report).nodes == ("hotel_agent", "payments", "approval")
    assert question(report) == {"version": 1, "total": 180}
    assert served(report) == [("search_hotels", "answered")]
    state = values(source, TRIP, report)
    assert state["handoffs"] == ["flight 10", "hotel 10"]
    assert (state["flight"]["flight"], "payment" in state) == ("F10", False)


@ON_BOTH
def test_goto_at_a_node_that_routes_by_command_goes_where_it_did_not(source: Source) -> None:
    report = source.fork(TRIP, "booked@before:hotel_agent:1", goto="payments", assign=['hotel={"price": 50}'])
    assert report.next == ("payments",)
    assert only(report).nodes == ("payments", "approval")
    assert question(report) == {"version": 1, "total": 150}
    assert values(source, TRIP, report)["handoffs"] == ["flight 10"]


def test_goto_after_a_hand_off_follows_nothing_of_its_route(source: Source) -> None:
    report = source.fork(TRIP, "booked@after:hotel_agent:1", goto="hotel_agent", assign=["arrival=11"])
    assert report.next == ("hotel_agent",)
    assert served(report) == [("search_hotels", "recorded")]
    assert values(source, TRIP, report)["handoffs"] == ["flight 10", "hotel 10", "hotel 11"]


def test_an_update_as_a_node_that_routes_by_command_says_where_it_goes(source: Source, tmp_path: Path) -> None:
    file = tmp_path / "hotel.json"
    file.write_text(json.dumps({"hotel": {"price": 20}, "handoffs": ["by hand"]}))
    at = "booked@before:hotel_agent:1"
    with pytest.raises(Refused, match="by Command") as refused:
        source.fork(TRIP, at, update=str(file), as_node="hotel_agent")
    assert refused.value.hint == "say where: --goto flight_agent | payments"
    report = source.fork(TRIP, at, update=str(file), as_node="hotel_agent", goto="payments")
    assert (report.as_node, report.next, question(report)) == (
        "hotel_agent",
        ("payments",),
        {"version": 1, "total": 120},
    )
    assert values(source, TRIP, report)["handoffs"] == ["flight 10", "by hand"]


@ON_BOTH
def test_state_is_set_where_a_hand_off_is_about_to_run(source: Source) -> None:
    report = source.fork(TRIP, "booked@before:flight_agent:1", assign=["arrival=11", 'handoffs=["moved"]'])
    assert question(report) == {"version": 1, "total": 180}
    assert values(source, TRIP, report)["handoffs"] == ["moved", "flight 11", "hotel 11"]


# Before and after a question, and after a finished effect
@ON_BOTH
def test_a_fork_before_the_question_asks_again_although_it_was_answered(source: Source) -> None:
    at = "booked@before:approval"
    assert question(source.fork(TRIP, at)) == {"version": 1, "total": 180}
    refused = source.fork(TRIP, at, resume=['{"approved": false}'])
    assert (only(refused).status, only(refused).nodes, served(refused)) == ("done", ("approval",), [])
    again = source.fork(TRIP, at, resume=['{"approved": true}'])
    assert served(again) == [("capture_payment", "recorded"), ("confirm", "recorded")]
    assert values(source, TRIP, again)["payment"] == "p-1-180"


def test_what_the_question_shows_can_be_set_before_it_is_asked_again(source: Source) -> None:
    for at in ("planned@head", "booked@before:approval"):
        report = source.fork(TRIP, at, assign=["quote.total=99"])
        assert question(report) == {"version": 1, "total": 99}


def test_an_amount_that_was_never_captured_is_blocked(source: Source) -> None:
    report = source.fork(TRIP, "planned@head", assign=["quote.total=99"], resume=['{"approved": true}'])
    (blocked,) = only(report).tool_calls
    assert (only(report).status, blocked.name, blocked.args) == (
        "blocked",
        "capture_payment",
        {"amount": 99, "quote_version": 1},
    )


@ON_BOTH
def test_a_waiting_question_is_answered_on_the_fork(source: Source) -> None:
    stubs = policy(stubs={"capture_payment": {"payment": "stubbed"}, "confirm": {"ticket": "t"}})
    report = source.fork(TRIP, "planned@head", 2, resume=['{"approved": true}'], policy=stubs)
    assert [run.status for run in report.group.runs] == ["done", "done"]
    assert source.state(TRIP, report.group.runs[1].thread).values["payment"] == "stubbed"


def test_a_fork_after_the_question_does_not_ask_again(source: Source) -> None:
    report = source.fork(TRIP, "booked@before:capture", patch=['capture_payment:payment="p-9"'])
    assert only(report).nodes == ("capture", "ticketing")
    assert served(report) == [("capture_payment", "answered"), ("confirm", "recorded")]
    assert values(source, TRIP, report)["payment"] == "p-9"


@ON_BOTH
def test_a_fork_after_a_finished_effect_keeps_it_and_runs_what_follows(source: Source) -> None:
    report = source.fork(TRIP, "booked@call:confirm", patch=['confirm:ticket="again"'])
    assert (only(report).nodes, served(report)) == (("ticketing",), [("confirm", "answered")])
    state = values(source, TRIP, report)
    assert (state["payment"], state["booking"]) == ("p-1-180", "again")


# Channels that parallel branches or several Sends write, and a subgraph's own question
@ON_BOTH
def test_set_after_a_parallel_step_replaces_what_its_branches_wrote(source: Source) -> None:
    given = ["bureau.score=720", 'audit=["re-scored"]', "read[1].amount=1"]
    report = source.fork(LOAN, "loan@before:score", assign=given)
    state = values(source, LOAN, report)
    assert only(report).nodes == ("score",)
    assert (state["decision"], state["audit"]) == ("approve 401 ACME", ["re-scored"])


@ON_BOTH
def test_set_before_a_parallel_step_of_what_its_branches_add_to(source: Source) -> None:
    report = source.fork(LOAN, "loan@before:bureau", assign=['audit=["fresh"]', "read=[]"])
    state = values(source, LOAN, report)
    assert (report.next, state["audit"], state["decision"]) == (
        ("bureau", "income"),
        ["fresh", "bureau"],
        "decline 0 ACME",
    )
    assert {how for _, how in served(report)} == {"recorded"}


def test_set_before_sends_gather_and_after(source: Source) -> None:
    before = source.fork(LOAN, "loan@before:read", assign=['read=[{"amount": 7}]'])
    after = source.fork(LOAN, "loan@after:read", assign=['read=[{"amount": 7}]'])
    assert values(source, LOAN, before)["decision"] == "decline 607 ACME"
    assert values(source, LOAN, after)["decision"] == "decline 7 ACME"


def test_the_conversation_of_several_owners_is_set_as_a_whole(source: Source) -> None:
    report = source.fork(LOAN, "loan@before:score", assign=["calls=[]"])
    assert values(source, LOAN, report)["calls"] == []


@ON_BOTH
def test_an_update_as_one_owner_keeps_the_other_ones_result(source: Source, tmp_path: Path) -> None:
    file = tmp_path / "bureau.json"
    file.write_text(json.dumps({"bureau": {"score": 800, "hits": 0}, "audit": ["by hand"]}))
    report = source.fork(LOAN, "loan@before:bureau", update=str(file), as_node="bureau")
    state = values(source, LOAN, report)
    assert (report.next, only(report).nodes, only(report).tool_calls) == (("score",), ("score",), ())
    assert (state["decision"], state["audit"]) == ("approve 600 ACME", ["plan", "merge", "by hand"])


def test_goto_past_a_half_done_step_leaves_its_pending_results_behind(source: Source) -> None:
    given = ['bureau={"score": 700, "hits": 0}', 'income={"matches": true, "employer": "B"}']
    report = source.fork(LOAN, "failed@head", goto="score", assign=given)
    state = values(source, LOAN, report)
    assert (only(report).nodes, state["decision"], state["audit"]) == (("score",), "approve 600 B", ["plan", "merge"])


def inner(source: Source, thread: str, node: str) -> str:
    """The checkpoint of the subgraph about to run a node, as a target."""
    from contextlib import closing

    from agentctl.stores.open import open_reader
    from tests.support.experiments import about_to_run

    with closing(open_reader(source.prod)) as reader:
        (ns,) = [ns for ns in reader.namespaces(thread) if ns]
        return f"{thread}@{about_to_run(reader, thread, node, ns).id}"


@ON_BOTH
def test_a_subgraphs_own_question_is_answered_from_inside_it(source: Source) -> None:
    stubs = policy(stubs={"match_payroll": {"employer": "?", "matches": True}})
    at = inner(source, "asks", "match")
    report = source.fork(ASKING, at, resume=['"Initech"'], policy=stubs)
    state = values(source, ASKING, report)
    assert (only(report).status, state["income"]["employer"]) == ("done", "Initech")
    assert state["bureau"] == {"score": 512, "file": "f-1", "hits": 0}
    assert state["audit"] == ["plan", "merge", "bureau"]
    assert served(report) == [("match_payroll", "stub")]


def test_state_inside_a_subgraph_is_set_before_and_after_its_question(source: Source) -> None:
    stubs = policy(stubs={"match_payroll": {"employer": "?", "matches": False}})
    waiting = source.fork(ASKING, inner(source, "asks", "match"), assign=["income.monthly=50"])
    given = {"assign": ["income.monthly=50"], "resume": ['"Globex"'], "policy": stubs}
    answered = source.fork(ASKING, inner(source, "answered", "match"), **given)
    assert question(waiting) == "which employer?"
    assert values(source, ASKING, answered)["income"] == {"monthly": 50, "employer": "Globex", "matches": False}
    assert only(answered).tool_calls[0].args == {"monthly": 50}


@ON_BOTH
def test_an_update_as_a_node_inside_a_subgraph_stands_for_its_result(source: Source, tmp_path: Path) -> None:
    file = tmp_path / "match.json"
    file.write_text(json.dumps({"income": {"monthly": 1, "employer": "H", "matches": True}}))
    report = source.fork(LOAN, inner(source, "loan", "match"), update=str(file), as_node="match")
    state = values(source, LOAN, report)
    assert (only(report).nodes, state["decision"], only(report).tool_calls) == (
        ("income", "score"),
        "decline 600 H",
        (),
    )
    assert report.next == ()


def test_several_tasks_of_one_node_are_not_updated_as_one(source: Source, tmp_path: Path) -> None:
    file = tmp_path / "read.json"
    file.write_text('{"read": []}')
    with pytest.raises(Ambiguous, match="3 tasks of read"):
        source.fork(LOAN, "loan@before:read", update=str(file), as_node="read")


@pytest.mark.parametrize("given", [{"goto": "nowhere"}, {"assign": ["nothing=1"]}])
def test_names_that_the_graph_does_not_have_are_refused_before_any_write(source: Source, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"no (node|channel)"):
        source.fork(TRIP, "booked@before:hotel_agent:1", **given)


@ON_BOTH
def test_goto_inside_a_subgraph_leaves_its_own_route_and_the_graph_around_it_goes_on(source: Source) -> None:
    at = inner(source, "loan", "fetch")
    report = source.fork(LOAN, at, goto="match", assign=['income={"monthly": 900}'])
    state = values(source, LOAN, report)
    assert report.next == ("match",)
    assert only(report).nodes == ("income", "income|match", "score")
    assert served(report) == [("match_payroll", "recorded")]
    assert (state["decision"], state["bureau"]["score"]) == ("decline 600 ACME", 512)


def test_goto_back_inside_a_subgraph_past_its_question(source: Source) -> None:
    reads = policy(effects={"fetch_statements": "read"})
    report = source.fork(ASKING, inner(source, "asks", "match"), goto="fetch", policy=reads)
    assert (report.next, question(report)) == (("fetch",), "which employer?")
    assert served(report) == [("fetch_statements", "recorded_again")]
