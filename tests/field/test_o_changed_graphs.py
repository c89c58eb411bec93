"""Field log O: the graph changed after the rows were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agentctl.experiments.replay import replay
from agentctl.testing import build_thread
from tests.support.experiments import about_to_run, experiment_on


class Before(TypedDict, total=False):
    question: str
    tone: str
    answer: str


class After(TypedDict, total=False):
    question: str
    answer: str


def _graph(state: Any) -> Any:
    graph = StateGraph(state)
    graph.add_node("reply", lambda state: {"answer": "yes"})
    graph.add_edge(START, "reply")
    return graph.compile()


def test_o3_a_replay_says_which_values_the_graph_has_no_channel_for(tmp_path: Path) -> None:
    prod = tmp_path / "prod.sqlite"
    build_thread(_graph(Before), prod, "t", {"question": "?", "tone": "kind"})

    for state, expected in ((After, "no channel for: tone"), (Before, "")):
        with experiment_on(prod, _graph(state), tmp_path / "debug.sqlite") as experiment:
            plan = replay(experiment, about_to_run(experiment.source, "t", "reply")).plan
        assert "; ".join(plan.warnings).endswith(expected)
        assert bool(plan.warnings) == bool(expected)
