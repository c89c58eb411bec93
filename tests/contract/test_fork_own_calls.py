"""Forks that change what a node's own call was answered: that task alone runs again, all else stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentctl.errors import Ambiguous, NotFound, Refused, UsageError
from agentctl.records.runs import ForkReport, RunReport
from tests.catalog import CATALOG
from tests.catalog.owncalls import WORLD, lender, underwriting
from tests.support.experiments import policy
from tests.support.forking import ON_BOTH, Source, sources

CASES = {
    "done": "own calls",
    "failed": "own calls failing",
    "asks": "own calls asking",
    "answered": "own calls answered",
}
"""Thread names and what was done with them."""


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
    for thread, name in CASES.items():
        source.run(CATALOG[name].build, thread, CATALOG[name].run)


@pytest.fixture(autouse=True)
def _nothing_ran_yet(source: Source) -> Iterator[None]:
    WORLD.clear()
    yield
    assert not WORLD, f"ran for real: {WORLD}"


GRAPH = underwriting(None, lender())
ASKING = underwriting(None, lender(), asks=True)


def only(report: ForkReport) -> RunReport:
    (run,) = report.group.runs
    return run


def values(source: Source, run: RunReport, graph: Any = GRAPH) -> dict[str, Any]:
    return source.state(graph, run.thread).values


def served(run: RunReport) -> list[tuple[str, str, str]]:
    return [(call.name, call.id, call.served_by) for call in run.tool_calls]


def how(report: ForkReport) -> dict[str, str]:
    return {entry.id: entry.how for entry in report.answered}


@ON_BOTH
def test_one_parallel_branch_runs_again_and_its_siblings_result_survives(source: Source) -> None:
    report = source.fork(GRAPH, "done@call:pull_bureau", patch=["pull_bureau:score=720"])
    run = only(report)
    state = values(source, run)
    assert (run.status, run.error, run.nodes) == ("done", None, ("bureau", "score"))
    assert served(run) == [("pull_bureau", "bureau_pull:1", "answered"), ("check_sanctions", "sanctions:1", "recorded")]
    assert state["bureau"] == {"score": 720, "file": "f-1", "hits": 0}
    assert state["income"] == {"monthly": 900, "employer": "ACME", "matches": True}
    assert state["decision"] == "approve 600 ACME"
    assert state["audit"] == ["plan", "merge", "bureau"]
    assert (report.as_node, report.next) == ("bureau", ("bureau",))
    assert how(report) == {"bureau_pull:1": "substituted", "sanctions:1": "recorded"} | {
        id: "kept" for id in how(report) if id not in ("bureau_pull:1", "sanctions:1")
    }
    changed = next(entry for entry in report.answered if entry.how == "substituted")
    assert (changed.name, changed.fields) == ("pull_bureau", (("score", 512, 720),))


def test_the_pair_that_the_new_run_leaves_holds_the_new_result_once(source: Source) -> None:
    run = only(source.fork(GRAPH, "done@call:bureau_pull:1", answer=['pull_bureau={"score": 1, "file": "f-1"}']))
    calls = values(source, run)["calls"]
    results = [message.text for message in calls if getattr(message, "tool_call_id", None) == "bureau_pull:1"]
    assert results == ['{"score":1,"file":"f-1"}']
    assert len({message.id for message in calls}) == len(calls) == 14


def test_another_call_of_the_same_task_is_changed_and_the_first_is_answered_as_recorded(source: Source) -> None:
    run = only(source.fork(GRAPH, "done@call:sanctions:1", patch=["check_sanctions:hits=2"]))
    assert [how for *_, how in served(run)] == ["recorded", "answered"]
    assert values(source, run)["bureau"] == {"score": 512, "file": "f-1", "hits": 2}


def test_a_call_that_comes_out_with_other_arguments_is_known_by_its_id(source: Source) -> None:
    """The second call's `file` is taken from the first one's result."""
    given = ['pull_bureau={"score": 700, "file": "f-2"}', 'check_sanctions={"hits": 1}']
    run = only(source.fork(GRAPH, "done@call:pull_bureau", answer=given))
    assert run.tool_calls[1].args == {"person": "p-1", "file": "f-2"}
    assert [how for *_, how in served(run)] == ["answered", "answered"]
    assert values(source, run)["bureau"] == {"score": 700, "file": "f-2", "hits": 1}


@ON_BOTH
@pytest.mark.parametrize("at", ["call:read_document:2", "call:read_document:pay-2"])
def test_one_of_several_sends_is_changed_by_its_number_or_its_id(source: Source, at: str) -> None:
    report = source.fork(GRAPH, f"done@{at}", patch=["read_document:amount=5000"])
    run = only(report)
    state = values(source, run)
    assert run.nodes[:2] == ("read", "merge")
    assert run.nodes.count("read") == 1
    assert served(run)[0] == ("read_document", "read_document:pay-2", "answered")
    assert {how for *_, how in served(run)[1:]} == {"recorded"}
    assert [document["amount"] for document in state["read"]] == [100, 5000, 300]
    assert state["decision"] == "decline 5400 ACME"
    assert (report.as_node, report.next) == ("read", ("read",))


def test_two_sends_are_changed_at_once_by_their_ids(source: Source) -> None:
    given = ["read_document:pay-1:amount=1", "read_document:bank-1:amount=3"]
    report = source.fork(GRAPH, "done@call:read_document:1", patch=given)
    assert report.next == ("read", "read")
    assert [document["amount"] for document in values(source, only(report))["read"]] == [1, 200, 3]


def test_a_name_that_stands_for_several_sends_is_refused_with_each_of_them(source: Source) -> None:
    with pytest.raises(Ambiguous, match="names 3 calls"):
        source.fork(GRAPH, "done@call:read_document", patch=["read_document:amount=1"])
    with pytest.raises(Ambiguous, match="read_document names 3 calls at") as refused:
        source.fork(GRAPH, "done@before:read", patch=["read_document:amount=1"])
    assert [one["call_id"] for one in refused.value.candidates] == [
        f"read_document:{d}" for d in ("pay-1", "pay-2", "bank-1")
    ]


@ON_BOTH
def test_a_call_inside_a_subgraph_runs_again_and_the_branch_beside_it_stays(source: Source) -> None:
    at, patch = "done@call:fetch_statements", ["fetch_statements:credits=[100, 90, 80]"]
    report = source.fork(
        GRAPH, at, patch=patch, policy=policy(stubs={"match_payroll": {"matches": False, "employer": "?"}})
    )
    run = only(report)
    state = values(source, run)
    assert run.nodes == ("income", "income|fetch", "income|match", "score")
    assert served(run) == [("fetch_statements", "statements:1", "answered"), ("match_payroll", "payroll:1", "stub")]
    assert (report.as_node, report.next) == ("fetch", ("fetch",))
    assert state["income"] == {"monthly": 100, "matches": False, "employer": "?"}
    assert state["bureau"] == {"score": 512, "file": "f-1", "hits": 0}


def test_a_later_call_with_arguments_that_nothing_answers_is_blocked(source: Source) -> None:
    run = only(source.fork(GRAPH, "done@call:fetch_statements", patch=["fetch_statements:credits=[100]"]))
    assert (run.status, run.tool_calls[1].args, run.tool_calls[1].served_by) == ("blocked", {"monthly": 100}, "blocked")


@ON_BOTH
def test_a_later_node_of_a_subgraph_runs_again_and_the_earlier_one_does_not(source: Source) -> None:
    report = source.fork(GRAPH, "done@call:match_payroll", patch=["match_payroll:matches=false"])
    run = only(report)
    state = values(source, run)
    assert run.nodes == ("income", "income|match", "score")
    assert served(run) == [("match_payroll", "payroll:1", "answered")]
    assert state["income"] == {"monthly": 900, "employer": "ACME", "matches": False}
    assert state["bureau"] == {"score": 512, "file": "f-1", "hits": 0}
    assert state["audit"] == ["plan", "merge", "bureau"]


@ON_BOTH
def test_in_a_step_where_one_branch_raised_the_other_ones_call_is_changed(source: Source) -> None:
    """The bank answers by now: a stub stands for it."""
    stubs = {"fetch_statements": {"months": 1, "credits": [700]}, "match_payroll": {"employer": "B", "matches": True}}
    report = source.fork(GRAPH, "failed@call:pull_bureau", patch=["pull_bureau:score=650"], policy=policy(stubs=stubs))
    run = only(report)
    assert sorted(report.next) == ["bureau", "income"]
    assert (run.status, values(source, run)["decision"]) == ("done", "approve 600 B")


def test_a_call_that_never_came_back_is_answered_in_its_step_and_the_other_branch_stays(source: Source) -> None:
    stubs = policy(stubs={"match_payroll": {"employer": "D", "matches": True}})
    report = source.fork(GRAPH, "failed@error", answer=['fetch_statements={"credits": [800]}'], policy=stubs)
    run = only(report)
    state = values(source, run)
    assert (report.next, run.nodes) == (("income",), ("income", "income|fetch", "income|match", "score"))
    assert served(run)[0] == ("fetch_statements", "statements:1", "answered")
    assert (state["income"]["monthly"], state["bureau"]["score"]) == (800, 512)


def test_a_finished_branch_beside_a_question_runs_again_and_the_question_waits(source: Source) -> None:
    report = source.fork(ASKING, "asks@call:pull_bureau", patch=["pull_bureau:score=650"])
    run = only(report)
    state = source.state(ASKING, run.thread)
    assert (run.status, run.interrupts[0]["value"]) == ("interrupted", "which employer?")
    assert [name for name, *_ in served(run)] == ["pull_bureau", "check_sanctions"]
    assert state.next == ("income",)
    assert [task.name for task in state.tasks if task.result] == ["bureau"]


@ON_BOTH
def test_the_question_can_be_answered_in_the_same_fork(source: Source) -> None:
    stubs = policy(stubs={"match_payroll": {"employer": "C", "matches": True}})
    report = source.fork(ASKING, "asks@call:pull_bureau", patch=["pull_bureau:score=650"], resume=['"X"'], policy=stubs)
    run = only(report)
    assert (run.status, values(source, run, ASKING)["decision"]) == ("done", "approve 600 X")


def test_a_question_that_was_answered_after_the_call_is_asked_again(source: Source) -> None:
    at = "answered@call:fetch_statements"
    waiting = only(source.fork(ASKING, at, patch=["fetch_statements:months=1"]))
    answered = only(source.fork(ASKING, at, patch=["fetch_statements:months=1"], resume=['"Globex"']))
    assert (waiting.status, waiting.interrupts[0]["value"]) == ("interrupted", "which employer?")
    assert (answered.status, values(source, answered, ASKING)["decision"]) == ("done", "decline 600 Globex")


@ON_BOTH
def test_several_runs_give_the_same_and_say_where_they_come_from(source: Source) -> None:
    report = source.fork(GRAPH, "done@call:pull_bureau", 3, patch=["pull_bureau:score=720"], reason="INC-7")
    decisions = {values(source, run)["decision"] for run in report.group.runs}
    metadata = source.state(GRAPH, report.group.runs[0].thread).metadata
    assert decisions == {"approve 600 ACME"}
    assert (metadata["agentctl_op"], metadata["agentctl_as_node"], metadata["agentctl_reason"]) == (
        "patch",
        "bureau",
        "INC-7",
    )


def test_a_fork_at_rest_cannot_hold_the_result_and_says_what_can(source: Source) -> None:
    with pytest.raises(Refused, match="given while bureau runs") as refused:
        source.fork(GRAPH, "done@call:pull_bureau", run=False, patch=["pull_bureau:score=720"])
    assert "--update FILE --as-node bureau" in (refused.value.hint or "")


def test_a_result_that_was_worked_into_the_state_already_is_refused_with_its_own_checkpoint(source: Source) -> None:
    with pytest.raises(Refused, match="worked its result into the state") as refused:
        source.fork(GRAPH, "done@before:score", patch=["pull_bureau:score=720"])
    (candidate,) = refused.value.candidates
    assert candidate["call_id"] == "bureau_pull:1"
    assert str(candidate["id"]) in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"answer": ["nope=1"]}, NotFound, "no call nope"),
        ({"patch": ["pull_bureau:nope=1"]}, UsageError, "has no nope"),
        ({"answer": ["pull_bureau=1", "bureau_pull:1=2"]}, UsageError, "more than one result"),
        ({"patch": ["pull_bureau:score=1"], "goto": "score"}, Refused, "leaves the target's own step behind"),
        (
            {"patch": ["pull_bureau:score=1"], "assign": ['bureau={"score": 1}'], "as_node": "bureau"},
            UsageError,
            "stands for",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_write(
    source: Source, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    with source.experiment(GRAPH, "done") as experiment:
        before = [head.thread for head in experiment.debug.writer.heads()]
    with pytest.raises(error, match=says):
        source.fork(GRAPH, "done@call:pull_bureau", **given)
    with source.experiment(GRAPH, "done") as experiment:
        assert [head.thread for head in experiment.debug.writer.heads()] == before


def test_state_is_set_beside_a_changed_result(source: Source) -> None:
    run = only(source.fork(GRAPH, "done@call:pull_bureau", patch=["pull_bureau:score=720"], assign=["read=[]"]))
    state = values(source, run)
    assert (state["decision"], state["income"]["matches"]) == ("approve 0 ACME", True)


@ON_BOTH
def test_a_replay_of_the_step_asks_all_of_it_again_from_the_recording(source: Source) -> None:
    report = source.replay(GRAPH, "done@call:pull_bureau", 2)
    assert [run.status for run in report.group.runs] == ["done", "done"]
    assert (report.side_effects.recorded, report.side_effects.blocked) == (8, 0)
    assert values(source, report.group.runs[0])["decision"] == "decline 600 ACME"
