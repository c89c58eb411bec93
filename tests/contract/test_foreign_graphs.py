"""A graph that does not fit the rows any more: a replay or a fork stops before anything is copied or run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from agentctl.errors import Refused
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import parse_forms
from agentctl.experiments.replay import replay
from agentctl.testing import build_thread
from tests.support.experiments import about_to_run, experiment_on


class State(TypedDict, total=False):
    log: str


def _line(*names: str) -> Any:
    graph = StateGraph(State)
    above = START
    for name in names:
        graph.add_node(name, lambda state: {"log": "ran"})
        graph.add_edge(above, name)
        above = name
    return graph.compile()


def _join(*sides: str) -> Any:
    graph = StateGraph(State)
    for side in sides:
        graph.add_node(side, lambda state: None)
        graph.add_edge(START, side)
    graph.add_node("end", lambda state: {"log": "joined"})
    graph.add_edge(list(sides), "end")
    return graph.compile()


@pytest.mark.parametrize("assign", [None, (), ('log="x"',)], ids=["replay", "fork", "fork with state"])
def test_a_node_that_is_due_and_gone_is_named_with_the_nodes_that_there_are(
    assign: tuple[str, ...] | None, tmp_path: Path
) -> None:
    build_thread(_line("a", "review"), tmp_path / "prod.sqlite", "t", {"log": ""}, metadata={"graph_id": "reviews"})
    with experiment_on(tmp_path / "prod.sqlite", _line("a", "reviews"), tmp_path / "debug.sqlite") as experiment:
        target = about_to_run(experiment.source, "t", "review")
        with pytest.raises(Refused, match="review is due, and the graph has a, reviews") as refused:
            if assign is None:
                replay(experiment, target)
            else:
                fork(experiment, target, parse_forms(assign=assign))
        assert not experiment.debug.writer.heads()
    assert "written by graph_id reviews" in refused.value.message
    assert refused.value.hint is not None and "--goto reviews" in refused.value.hint


def test_a_fork_that_goes_to_a_node_that_there_is_runs(tmp_path: Path) -> None:
    build_thread(_line("a", "review"), tmp_path / "prod.sqlite", "t", {"log": ""})
    with experiment_on(tmp_path / "prod.sqlite", _line("a", "reviews"), tmp_path / "debug.sqlite") as experiment:
        target = about_to_run(experiment.source, "t", "review")
        (run,) = fork(experiment, target, parse_forms(goto="reviews")).group.runs
    assert (run.status, run.nodes) == ("done", ("reviews",))


def test_a_join_with_other_sides_does_not_lead_to_its_node_any_more(tmp_path: Path) -> None:
    build_thread(_join("a", "b"), tmp_path / "prod.sqlite", "t", {"log": ""})
    with experiment_on(tmp_path / "prod.sqlite", _join("a", "b", "c"), tmp_path / "debug.sqlite") as experiment:
        target = about_to_run(experiment.source, "t", "end")
        with pytest.raises(Refused, match=r"end is due by join:a\+b:end, which the graph does not have"):
            replay(experiment, target)
        assert not experiment.debug.writer.heads()
    with experiment_on(tmp_path / "prod.sqlite", _join("a", "b"), tmp_path / "debug.sqlite") as experiment:
        (run,) = replay(experiment, target).group.runs
    assert run.status == "done"


def test_another_graph_on_the_thread_is_refused_by_its_nodes(tmp_path: Path) -> None:
    build_thread(_line("a", "b"), tmp_path / "prod.sqlite", "t", {"log": ""})
    with experiment_on(tmp_path / "prod.sqlite", _line("x", "y"), tmp_path / "debug.sqlite") as experiment:
        with pytest.raises(Refused, match="b is due, and the graph has x, y"):
            replay(experiment, about_to_run(experiment.source, "t", "b"))
        assert not experiment.debug.writer.heads()
