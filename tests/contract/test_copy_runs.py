"""What runs, and what does not run again, when a copied thread is continued or executed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from agentctl.errors import Refused
from agentctl.records.rows import Stored
from agentctl.stores.base import CopyPlan, Reader
from agentctl.stores.copying.clock import ids_after
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy, for_replay, for_resume
from agentctl.stores.open import open_reader, open_writer
from tests.catalog import CATALOG, Saver, config_of, go, run_case
from tests.catalog.flows import Log, says
from tests.support.copies import Outcome, run, stock_saver

CASES = (
    "agent two turns",
    "asking and failing",
    "command",
    "delta",
    "fan out",
    "functional answered",
    "half done sends",
    "interrupt twice",
    "join",
    "replay fork",
    "subgraph answered",
    "subgraph persistent",
    "update fork",
)
PARKED = {
    "interrupt before": None,
    "interrupt inside": Command(resume="yes"),
    "interrupt twice": Command(resume="no"),
    "half done": None,
    "half done sends": None,
    "subgraph interrupted": Command(resume="ACME"),
    "subgraph nested": Command(resume="ACME"),
    "delta interrupted": Command(resume="right"),
    "functional": Command(resume=True),
    "agent asking": Command(resume={"decisions": [{"type": "approve"}]}),
    "pending sends": None,
}


class Bench:
    """A store with a stock saver, threads run on it, and copies made of them."""

    def __init__(self, source: str, target: str, stack: ExitStack) -> None:
        self.saver = stack.enter_context(stock_saver(source))
        self.target_saver = self.saver if source == target else stack.enter_context(stock_saver(target))
        self.reader: Reader = open_reader(source)
        self.writer = open_writer(target)
        stack.callback(self.reader.close)
        stack.callback(self.writer.close)

    def run_case(self, name: str) -> Any:
        return run_case(CATALOG[name], self.saver)

    def rebuilt(self, name: str) -> Any:
        return CATALOG[name].build(self.target_saver)

    def copy(self, *plans: CopyPlan) -> None:
        copy(self.reader, self.writer, plans)

    def head(self, thread: str, ns: str = "") -> str:
        return self.reader.rows(thread, ns)[0].id


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(str(tmp_path / "threads.sqlite"), str(tmp_path / "debug.sqlite"), stack)


@pytest.mark.parametrize("name", CASES)
def test_a_replay_copy_runs_like_the_whole_thread_addressed_at_that_checkpoint(bench: Bench, name: str) -> None:
    bench.run_case(name)
    thread, graph = CATALOG[name].thread, bench.rebuilt(name)
    for row in bench.reader.rows(thread):
        whole, point = f"whole {row.id}", f"point {row.id}"
        plan = for_replay(bench.reader, thread, "", row.id, point)
        bench.copy(for_copy(bench.reader, thread, "", row.id, "all", whole), plan)
        assert plan.run_from == row.id
        assert run(graph, point, None, plan.run_from) == run(graph, whole, None, row.id), row


@pytest.mark.parametrize("name", PARKED)
def test_a_parked_thread_resumes_from_its_copy_exactly_like_its_source(bench: Bench, name: str) -> None:
    source = bench.run_case(name)
    thread = CATALOG[name].thread
    plan = for_resume(bench.reader, thread, "", bench.head(thread), "copy")
    bench.copy(plan)
    assert plan.run_from is None
    assert run(bench.rebuilt(name), "copy", PARKED[name]) == run(source, thread, PARKED[name])


@pytest.mark.parametrize("name", ["delta interrupted", "half done sends", "subgraph nested"])
@pytest.mark.parametrize("direction", ["sqlite to postgres", "postgres to sqlite", "inside postgres"])
def test_a_parked_thread_resumes_in_the_other_kind_of_store(
    tmp_path: Path, fresh_postgres_url: str, name: str, direction: str
) -> None:
    urls = {"sqlite": str(tmp_path / "threads.sqlite"), "postgres": fresh_postgres_url}
    source, target = ("postgres", "postgres") if "inside" in direction else direction.split(" to ")
    thread = CATALOG[name].thread
    with ExitStack() as stack:
        bench = Bench(urls[source], urls[target], stack)
        graph = bench.run_case(name)
        bench.copy(for_resume(bench.reader, thread, "", bench.head(thread), "copy"))
        assert run(bench.rebuilt(name), "copy", PARKED[name]) == run(graph, thread, PARKED[name])


@pytest.mark.parametrize("name", ["half done", "half done sends"])
def test_resuming_a_half_done_step_does_not_run_the_finished_sibling_again(bench: Bench, name: str) -> None:
    bench.run_case(name)
    thread = CATALOG[name].thread
    bench.copy(for_resume(bench.reader, thread, "", bench.head(thread), "copy"))
    outcome = run(bench.rebuilt(name), "copy", None)
    assert outcome.nodes == ({"bureau": 1} if name == "half done" else {"read": 1})


def test_a_replay_of_a_half_done_step_runs_every_task_of_it(bench: Bench) -> None:
    bench.run_case("half done sends")
    thread = CATALOG["half done sends"].thread
    plan = for_replay(bench.reader, thread, "", bench.head(thread), "copy")
    bench.copy(plan)
    assert run(bench.rebuilt("half done sends"), "copy", None, plan.run_from).nodes == {"read": 4}


def test_a_replay_asks_again_what_was_answered(bench: Bench) -> None:
    bench.run_case("interrupt answered")
    thread, graph = CATALOG["interrupt answered"].thread, bench.rebuilt("interrupt answered")
    asked_at = next(row.id for row in bench.reader.rows(thread) if row.step == 1)
    plan = for_replay(bench.reader, thread, "", asked_at, "copy")
    bench.copy(plan)
    outcome = run(graph, "copy", None, plan.run_from)
    assert (outcome.nodes, outcome.questions) == ({"review": 1}, ("'send it?'",))


def test_a_replay_inside_a_subgraph_runs_only_from_the_row_that_was_named(bench: Bench) -> None:
    bench.run_case("subgraph")
    thread, graph = CATALOG["subgraph"].thread, bench.rebuilt("subgraph")
    (ns,) = [ns for ns in bench.reader.namespaces(thread) if ns]
    rows = {row.step: row for row in bench.reader.rows(thread, ns)}
    for step, inner in ((0, ["fetch", "match"]), (1, ["match"])):
        plan = for_replay(bench.reader, thread, ns, rows[step].id, f"copy {step}")
        bench.copy(plan)
        assert plan.run_from is None
        outcome = run(graph, f"copy {step}", None)
        assert outcome.nodes == {**{f"verify|{node}": 1 for node in inner}, "post": 1} | _wrappers(outcome, "verify")
        assert outcome.values == run(graph, f"copy {step}", None).values


def test_a_replay_two_levels_down_runs_only_from_the_row_that_was_named(bench: Bench) -> None:
    bench.run_case("subgraph nested answered")
    name = "subgraph nested answered"
    thread, graph = CATALOG[name].thread, bench.rebuilt(name)
    ns = max(bench.reader.namespaces(thread), key=lambda one: one.count("|"))
    asked_at = next(row.id for row in bench.reader.rows(thread, ns) if row.step == 1)
    bench.copy(for_replay(bench.reader, thread, ns, asked_at, "copy"))
    outcome = run(graph, "copy", None)
    inner = {path: n for path, n in outcome.nodes.items() if path.count("|") == 2 or "pre" in path or "post" in path}
    assert (inner, outcome.questions) == ({"verify|verify|match": 1}, ("'which employer?'",))


def test_a_replay_beside_a_finished_sibling_keeps_the_sibling(bench: Bench) -> None:
    """Two Sends to one asking subgraph beside a finished one: only the named one starts over."""
    bench.run_case("subgraph parallel")
    thread, graph = CATALOG["subgraph parallel"].thread, bench.rebuilt("subgraph parallel")
    ns = next(ns for ns in bench.reader.namespaces(thread) if ns.startswith("other:"))
    first = next(row.id for row in bench.reader.rows(thread, ns) if row.step == 0)
    bench.copy(for_replay(bench.reader, thread, ns, first, "copy"))
    outcome = run(graph, "copy", None)
    assert {path: n for path, n in outcome.nodes.items() if path.startswith("other|")} == {
        "other|fetch": 1,
        "other|match": 1,
    }
    assert "verify|fetch" not in outcome.nodes
    assert outcome.questions == ("'which employer?'", "'which employer?'")


def test_a_subgraph_that_keeps_its_state_is_replayed_from_where_it_stood(bench: Bench) -> None:
    bench.run_case("subgraph persistent")
    thread, graph = CATALOG["subgraph persistent"].thread, bench.rebuilt("subgraph persistent")
    inner = [row for row in bench.reader.rows(thread, "verify") if row.step == 0]
    bench.copy(for_replay(bench.reader, thread, "verify", inner[-1].id, "copy"))
    outcome = run(graph, "copy", None)
    assert (outcome.nodes["verify|fetch"], outcome.nodes["verify|match"], outcome.nodes["post"]) == (1, 1, 1)
    assert "pre" not in outcome.nodes


def test_a_replay_from_inside_refuses_where_a_subgraph_below_would_be_skipped(bench: Bench) -> None:
    graph = keeps_state_inside(bench.saver)
    for _ in range(2):
        go(graph, "t", {"log": ["input"]})
    ns = newest_task_namespace(bench.reader, "t")
    rows = {row.step: row.id for row in bench.reader.rows("t", ns)}
    with pytest.raises(Refused, match="keeps its state between calls") as refused:
        for_replay(bench.reader, "t", ns, rows[1], "copy")
    assert refused.value.hint is not None
    bench.copy(for_replay(bench.reader, "t", ns, rows[0], "copy"))
    outcome = run(keeps_state_inside(bench.target_saver), "copy", None)
    assert (outcome.nodes["verify|pre"], outcome.nodes["verify|keeps|count"]) == (1, 1)


def newest_task_namespace(reader: Reader, thread: str) -> str:
    tasks = [ns for ns in reader.namespaces(thread) if ":" in ns]
    return max(tasks, key=lambda ns: reader.rows(thread, ns)[0].id)


def keeps_state_inside(saver: Saver) -> Any:
    """A subgraph that keeps its state, inside one that does not."""
    innermost = StateGraph(Log)
    innermost.add_node("count", says("count"))
    innermost.add_edge(START, "count")
    middle = StateGraph(Log)
    middle.add_node("pre", says("pre"))
    middle.add_node("keeps", innermost.compile(checkpointer=True))
    middle.add_edge(START, "pre").add_edge("pre", "keeps")
    outer = StateGraph(Log)
    outer.add_node("verify", middle.compile())
    outer.add_edge(START, "verify")
    return outer.compile(checkpointer=saver)


def test_a_copied_id_from_a_clock_that_runs_ahead_does_not_stay_the_head(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the guard the copied checkpoint would be the head for good, and a resume would run everything twice."""
    from langgraph.checkpoint.base import id as ids

    monkeypatch.setattr(ids, "_last_v6_timestamp", _an_hour_ahead(bench))
    bench.run_case("interrupt inside")
    thread, graph = CATALOG["interrupt inside"].thread, bench.rebuilt("interrupt inside")
    copied = bench.head(thread)
    bench.copy(for_resume(bench.reader, thread, "", copied, "copy"))
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)
    ids_after(copied)
    outcome = run(graph, "copy", Command(resume="yes"))
    assert (outcome.nodes, outcome.next) == ({"review": 1, "send": 1}, {})
    assert graph.get_state(config_of("copy")).config["configurable"]["checkpoint_id"] > copied


def test_an_edited_write_reaches_the_next_node_and_nothing_else_runs_again(bench: Bench) -> None:
    bench.run_case("join")
    thread, graph = CATALOG["join"].thread, bench.rebuilt("join")
    parallel = next(row for row in bench.reader.rows(thread) if row.step == 1)
    plan = for_resume(bench.reader, thread, "", parallel.id, "copy")
    write = next(
        write
        for write in bench.reader.writes(thread, "", [parallel.id])
        if write.channel == "log" and (write.task_path or "").endswith("left")
    )
    edited = bench.saver.serde.dumps_typed(["edited"])
    key = (write.ns, write.checkpoint_id, write.task_id, write.idx)
    bench.copy(replace(plan, edits={key: Stored(*edited)}))
    outcome = run(graph, "copy", None)
    assert outcome.nodes == {"end": 1}
    assert outcome.values == "{'log': ['input', 'start', 'edited', 'right', 'end']}"


def _wrappers(outcome: Outcome, *nodes: str) -> dict[str, int]:
    """Returns the nodes that only hold a subgraph: they start with it."""
    return {node: outcome.nodes[node] for node in nodes if node in outcome.nodes}


def _an_hour_ahead(bench: Bench) -> int:
    from langgraph.checkpoint.base.id import uuid6

    return uuid6().time + 3600 * 10_000_000
