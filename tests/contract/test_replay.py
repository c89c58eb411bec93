"""Replays: what really runs again, what it is told, and that the source is as it was."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from agentctl.errors import NotFound, Refused
from agentctl.experiments.experiment import Target
from agentctl.experiments.replay import replay
from agentctl.experiments.runs.observed import Observed
from agentctl.records.runs import Plan
from agentctl.stores.reading.lineage import head_id
from tests.catalog import config_of
from tests.support.experiments import about_to_run, contents, experiment_on, policy

RAN: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> Iterator[None]:
    RAN.clear()
    yield


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def says(name: str) -> Any:
    def node(state: State) -> State:
        RAN[name] += 1
        return {"log": [name]}

    return node


def asks(name: str) -> Any:
    def node(state: State) -> State:
        RAN[name] += 1
        return {"log": [f"{name}:{interrupt('why?')}"]}

    return node


def line(saver: Any, *nodes: str, ask: str = "", **compiled: Any) -> Any:
    builder = StateGraph(State)
    for before, name in zip((START, *nodes), nodes, strict=False):
        builder.add_node(name, asks(name) if name == ask else says(name))
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver, **compiled)


@pytest.fixture
def prod(tmp_path: Path) -> Path:
    folder = tmp_path / "prod"
    folder.mkdir()
    return folder / "prod.sqlite"


@pytest.fixture
def debug(tmp_path: Path) -> Path:
    return tmp_path / "debug" / "debug.sqlite"


def run(prod: Path, build: Any, value: Any = None, **configurable: Any) -> Any:
    with SqliteSaver.from_conn_string(str(prod)) as saver:
        graph = build(saver)
        graph.invoke(value or {"log": ["in"]}, config_of("t", **configurable), durability="sync")
    return build(None)


def test_the_step_and_all_that_follows_run_again_and_nothing_before(prod: Path, debug: Path) -> None:
    graph = run(prod, lambda saver: line(saver, "a", "b", "c"))
    before = contents(prod)
    RAN.clear()
    with experiment_on(prod, graph, debug) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "b"), 3)
        assert report.group.runs[0].head == head_id(experiment.debug.writer, "t.replay-1")
    assert RAN == {"b": 3, "c": 3}
    assert [run.thread for run in report.group.runs] == ["t.replay-1", "t.replay-2", "t.replay-3"]
    assert [run.status for run in report.group.runs] == ["done"] * 3
    assert [run.nodes for run in report.group.runs] == [("b", "c")] * 3
    assert [copy.verified for copy in report.copies] == [True] * 3
    assert contents(prod) == before


def test_the_plan_is_told_before_anything_is_copied_or_run(prod: Path, debug: Path) -> None:
    graph = run(
        prod,
        lambda saver: line(saver, "a", "b", "c", ask="c", interrupt_before=["b"]),
        user_id="u-1",
        attempt=2,
    )
    RAN.clear()
    told: list[Plan] = []

    def on_plan(plan: Plan) -> None:
        assert not RAN
        assert not experiment.debug.writer.heads()
        told.append(plan)

    with experiment_on(prod, graph, debug, on_plan=on_plan, graph_name="app.py:graph") as experiment:
        target = about_to_run(experiment.source, "t", "b")
        report = replay(experiment, target)
    assert told == [report.plan]
    assert report.plan.nodes == ("b",)
    assert report.plan.source.target == f"prod::t@{target.id}"
    assert report.plan.configurable == {"user_id": "u-1", "attempt": 2}
    assert report.plan.interrupts == ("before b",)
    assert report.plan.graph == "app.py:graph"


def test_recorded_configuration_reaches_the_nodes_and_a_given_value_wins(prod: Path, debug: Path) -> None:
    seen: list[dict[str, Any]] = []

    def build(saver: Any) -> Any:
        def look(state: State, config: Any) -> State:
            seen.append({key: config["configurable"].get(key) for key in ("user_id", "tier")})
            return {"log": ["x"]}

        look.__annotations__["config"] = __import__("langchain_core.runnables", fromlist=["x"]).RunnableConfig
        return StateGraph(State).add_node("look", look).add_edge(START, "look").compile(checkpointer=saver)

    graph = run(prod, build, user_id="u-1", tier="gold")
    seen.clear()
    with experiment_on(prod, graph, debug, configurable={"tier": "none"}) as experiment:
        replay(experiment, about_to_run(experiment.source, "t", "look"))
    assert seen == [{"user_id": "u-1", "tier": "none"}]


def test_more_replays_take_the_next_free_names(prod: Path, debug: Path) -> None:
    graph = run(prod, lambda saver: line(saver, "a", "b"))
    with experiment_on(prod, graph, debug) as experiment:
        target = about_to_run(experiment.source, "t", "b")
        replay(experiment, target, 2)
        report = replay(experiment, target, 2)
    assert [run.thread for run in report.group.runs] == ["t.replay-3", "t.replay-4"]


def test_origin_operation_and_reason_are_in_the_metadata_of_every_row(prod: Path, debug: Path) -> None:
    graph = run(prod, lambda saver: line(saver, "a", "b"))
    with experiment_on(prod, graph, debug, reason="INC-31") as experiment:
        target = about_to_run(experiment.source, "t", "b")
        replay(experiment, target)
        rows = experiment.debug.writer.rows("t.replay-1")
    facts = {"agentctl_origin": f"prod::t@{target.id}", "agentctl_op": "replay", "agentctl_reason": "INC-31"}
    assert [{key: row.metadata.get(key) for key in facts} for row in rows] == [facts] * len(rows)
    assert len(rows) == 3


def test_a_question_is_asked_again_and_stops_the_run(prod: Path, debug: Path) -> None:
    from langgraph.types import Command

    def build(saver: Any) -> Any:
        return line(saver, "a", "b", "c", ask="b")

    graph = run(prod, build)
    with SqliteSaver.from_conn_string(str(prod)) as saver:
        build(saver).invoke(Command(resume="because"), config_of("t"), durability="sync")
    RAN.clear()
    with experiment_on(prod, graph, debug) as experiment:
        target = about_to_run(experiment.source, "t", "b")
        report = replay(experiment, target)
        assert report.plan.interrupts == ("b asks",)
    (stopped,) = report.group.runs
    assert (stopped.status, RAN) == ("interrupted", {"b": 1})
    assert [(one["node"], one["value"]) for one in stopped.interrupts] == [("b", "why?")]


@pytest.mark.parametrize("answers", [("so",), {"b": "so"}])
def test_resume_answers_the_question_in_every_run(prod: Path, debug: Path, answers: Any) -> None:
    graph = run(prod, lambda saver: line(saver, "a", "b", "c", ask="b"))
    RAN.clear()
    with experiment_on(prod, graph, debug, answers=answers) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "b"), 2)
    assert [run.status for run in report.group.runs] == ["done", "done"]
    assert RAN == {"b": 4, "c": 2}


def test_all_tasks_of_a_half_done_step_run_again_and_it_is_said(prod: Path, debug: Path) -> None:
    def build(saver: Any) -> Any:
        builder = StateGraph(State).add_node("a", says("a")).add_node("b", asks("b")).add_node("end", says("end"))
        return builder.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "end").compile(checkpointer=saver)

    graph = run(prod, build)
    RAN.clear()
    with experiment_on(prod, graph, debug, answers=("so",)) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "b"))
    assert report.warnings == ("finished in the source, and run again here: a",)
    assert report.plan.nodes == ("a", "b")
    assert (report.group.runs[0].status, RAN["a"], RAN["end"]) == ("done", 1, 1)


def test_pending_sends_all_start(prod: Path, debug: Path) -> None:
    def build(saver: Any) -> Any:
        builder = StateGraph(State).add_node("plan", says("plan")).add_node("w", says("w")).add_node("end", says("end"))
        builder.add_edge(START, "plan").add_edge("w", "end")
        builder.add_conditional_edges("plan", lambda s: [Send("w", s) for _ in range(3)], ["w"])
        return builder.compile(checkpointer=saver)

    graph = run(prod, build)
    RAN.clear()
    with experiment_on(prod, graph, debug) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "w"))
    assert report.plan.nodes == ("w", "w", "w")
    assert (report.group.runs[0].status, RAN) == ("done", {"w": 3, "end": 1})


def nested(saver: Any) -> Any:
    inner = line(None, "fetch", "parse", "match")
    builder = StateGraph(State).add_node("pre", says("pre")).add_node("sub", inner).add_node("post", says("post"))
    builder.add_edge(START, "pre").add_edge("pre", "sub").add_edge("sub", "post")
    return builder.compile(checkpointer=saver)


def test_a_replay_before_a_subgraph_runs_all_of_it(prod: Path, debug: Path) -> None:
    graph = run(prod, nested)
    RAN.clear()
    with experiment_on(prod, graph, debug) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "sub"))
    assert report.group.runs[0].nodes == ("sub", "sub|fetch", "sub|parse", "sub|match", "post")
    assert RAN == {"fetch": 1, "parse": 1, "match": 1, "post": 1}


def test_a_replay_inside_a_subgraph_starts_at_the_row_that_was_named(prod: Path, debug: Path) -> None:
    graph = run(prod, nested)
    RAN.clear()
    with experiment_on(prod, graph, debug) as experiment:
        (ns,) = [ns for ns in experiment.source.namespaces("t") if ns]
        report = replay(experiment, about_to_run(experiment.source, "t", "match", ns))
        assert report.plan.nodes == ("sub|match",)
    assert (report.group.runs[0].status, RAN) == ("done", {"match": 1, "post": 1})
    assert report.group.runs[0].nodes == ("sub", "sub|match", "post")


def test_a_graph_whose_node_was_renamed_is_refused_by_name(prod: Path, debug: Path) -> None:
    run(prod, lambda saver: line(saver, "a", "b"))
    with experiment_on(prod, line(None, "a", "renamed"), debug) as experiment:
        with pytest.raises(Refused, match="b is due, and the graph has a, renamed"):
            replay(experiment, about_to_run(experiment.source, "t", "b"))
        assert not experiment.debug.writer.heads()


def test_a_checkpoint_from_which_nothing_runs_is_refused_and_leaves_no_thread(prod: Path, debug: Path) -> None:
    graph = run(prod, lambda saver: line(saver, "a"))
    with experiment_on(prod, graph, debug) as experiment:
        target = Target("t", head_id(experiment.source, "t"), profile="prod")
        with pytest.raises(Refused, match="its next is empty") as refused:
            replay(experiment, target)
        assert not experiment.debug.writer.heads()
    assert refused.value.hint is not None
    assert "prod::t@" in refused.value.hint


def test_an_unknown_checkpoint_or_namespace_is_not_found(prod: Path, debug: Path) -> None:
    graph = run(prod, lambda saver: line(saver, "a"))
    with experiment_on(prod, graph, debug) as experiment:
        with pytest.raises(NotFound, match="no checkpoint"):
            replay(experiment, Target("t", "1f000000-0000-6000-8000-000000000000"))
        with pytest.raises(NotFound, match="no namespace 'default'"):
            replay(experiment, Target("t", head_id(experiment.source, "t"), ns="default"))


class EndsWith:
    text = "ends with x"

    def settle(self, observed: Observed) -> bool | None:
        if observed.status != "done":
            return None
        log = observed.values["log"]
        assert isinstance(log, list)
        return bool(log[-1] == "x")


def test_runs_are_tallied_by_the_check_and_undecided_ones_apart(prod: Path, debug: Path) -> None:
    import threading

    lock, outcomes = threading.Lock(), ["y", "x", "x", "raise"]

    def build(saver: Any) -> Any:
        def node(state: State) -> State:
            with lock:
                outcome = outcomes.pop(0)
            if outcome == "raise":
                raise ValueError("broken")
            return {"log": [outcome]}

        return StateGraph(State).add_node("n", node).add_edge(START, "n").compile(checkpointer=saver)

    outcomes.insert(0, "y")
    graph = run(prod, build)
    with experiment_on(prod, graph, debug, check=EndsWith()) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "n"), 4)
    assert (report.group.n, report.group.n_failed, report.group.n_undecided) == (3, 2, 1)
    assert report.group.interval == pytest.approx((0.2077, 0.9385), abs=1e-4)
    assert sorted(run.status for run in report.group.runs) == ["done", "done", "done", "error"]


def test_new_checkpoints_sort_after_copied_ones_whatever_the_clock_of_the_source(prod: Path, debug: Path) -> None:
    from langgraph.checkpoint.base import id as ids

    hour = 3600 * 10_000_000
    now = ids.uuid6().time
    ids._last_v6_timestamp = now + hour  # type: ignore[assignment]
    graph = run(prod, lambda saver: line(saver, "a", "b"))
    ids._last_v6_timestamp = None
    with experiment_on(prod, graph, debug) as experiment:
        target = about_to_run(experiment.source, "t", "b")
        report = replay(experiment, target)
        head = head_id(experiment.debug.writer, "t.replay-1")
    ids._last_v6_timestamp = None
    assert report.group.runs[0].head == head
    assert head > target.id


def test_a_direct_tool_call_without_an_answer_is_blocked_and_nothing_runs(prod: Path, debug: Path) -> None:
    from langchain_core.tools import tool

    real: list[str] = []

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        real.append("paid")
        return "paid"

    def build(saver: Any) -> Any:
        def node(state: State) -> State:
            return {"log": [pay.invoke({"amount": 3})]}

        builder = StateGraph(State).add_node("n", node).add_node("m", says("m"))
        return builder.add_edge(START, "n").add_edge("n", "m").compile(checkpointer=saver)

    graph = run(prod, build)
    real.clear()
    RAN.clear()
    with experiment_on(prod, graph, debug) as experiment:
        target = about_to_run(experiment.source, "t", "n")
        (blocked,) = replay(experiment, target).group.runs
        assert (blocked.status, blocked.tool_calls[0].served_by) == ("blocked", "blocked")
        assert (blocked.tool_calls[0].name, blocked.tool_calls[0].args) == ("pay", {"amount": 3})
        assert blocked.blocked_hint == "--stub pay='\"...\"'"
    with experiment_on(prod, graph, debug, policy=policy(stubs={"pay": "stubbed"})) as experiment:
        report = replay(experiment, target)
        assert (report.group.runs[0].status, report.side_effects.stubbed) == ("done", 1)
        assert [(t.name, t.effect, t.served_by) for t in report.plan.tools] == [("pay", "write", "stub")]
    assert real == []
    assert RAN == {"m": 1}
