"""Reports O: the graph changed after the rows were written."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agentctl.experiments.replay import replay
from agentctl.testing import CliResult, build_thread, run_cli
from tests.support.damage import Rows
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


_MODULE = """
from typing import Annotated
from operator import add
from langgraph.graph import START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict


class Order(BaseModel):
    id: str
{field}

class State(TypedDict, total=False):
    {channel}: Annotated[list[str], add]
    order: Order


def build(**compiled):
    graph = StateGraph(State)
    graph.add_node("collect", lambda state: {{"{channel}": ["collected"], "order": Order(id="A1"{value})}})
    graph.add_node("{node}", lambda state: {{"{channel}": ["decided"]}})
    graph.add_edge(START, "collect").add_edge("collect", "{node}")
    return graph.compile(**compiled)


graph = build()
"""
_WRITTEN = {"field": "    city: str", "channel": "log", "node": "decide", "value": ', city="Bonn"'}


@pytest.fixture(params=["sqlite", "postgres"])
def waiting(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    """A store with a thread `t` that waits for `decide`."""
    rows: Rows = request.getfixturevalue(request.param)
    if not rows.ids("t"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, "changing_application", None)
            module = _application(tmp_path)
            graph = module.build(checkpointer=rows.saver, interrupt_before=["decide"])
            graph.invoke({"log": ["asked"]}, {"configurable": {"thread_id": "t"}}, durability="sync")
    return rows


def _application(folder: Path) -> Any:
    """Loads the application as it was when the rows were written."""
    file = folder / "changing_application.py"
    file.write_text(_MODULE.format(**_WRITTEN), "utf-8")
    spec = spec_from_file_location("changing_application", file)
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules["changing_application"] = module
    spec.loader.exec_module(module)
    return module


def _cli(rows: Rows, folder: Path, *words: str, **changed: str) -> CliResult:
    """Runs a command on the thread with the application as it is after a change."""
    (folder / "changing_application.py").write_text(_MODULE.format(**{**_WRITTEN, **changed}), "utf-8")
    places = ("--store", rows.url, "--debug-store", str(folder / "debug" / "debug.sqlite"))
    return run_cli(*words, *places, cwd=folder)


GRAPH = ("--graph", "changing_application.py:graph")


def test_o1_a_node_that_was_renamed_is_told_and_nothing_is_replayed_without_it(waiting: Rows, tmp_path: Path) -> None:
    as_it_was = _cli(waiting, tmp_path, "doctor", "t", *GRAPH)
    looked = _cli(waiting, tmp_path, "doctor", "t", *GRAPH, node="judge")
    listed = _cli(waiting, tmp_path, "history", "t", "--json", node="judge")
    replayed = _cli(waiting, tmp_path, "replay", "t", *GRAPH, node="judge")

    assert as_it_was.code == 0, as_it_was.out
    assert (looked.code, "node_gone" in [row[1] for row in looked.rows]) == (1, True)
    assert listed.json["items"][0]["next"] == ["decide"]
    assert replayed.code == 5
    assert "decide" in replayed.err and "judge" in replayed.err


def test_o2_a_thread_that_another_graph_wrote_is_told_by_its_channels(waiting: Rows, tmp_path: Path) -> None:
    looked = _cli(waiting, tmp_path, "doctor", "t", *GRAPH, channel="notes", node="other")

    assert looked.code == 1
    assert {"node_gone", "channel_gone"} <= {row[1] for row in looked.rows}
    shown = _cli(waiting, tmp_path, "show", "t", "--json").json
    assert shown["values"]["log"] == ["asked", "collected"]


@pytest.mark.parametrize(
    ("changed", "code"), [({"node": "judge"}, "node_gone"), ({"channel": "notes"}, "channel_gone")], ids=str
)
def test_o3_doctor_compares_the_rows_with_a_graph_that_was_deployed_since(
    waiting: Rows, tmp_path: Path, changed: dict[str, str], code: str
) -> None:
    looked = _cli(waiting, tmp_path, "doctor", "t", *GRAPH, **changed)
    assert (looked.code, code in [row[1] for row in looked.rows]) == (1, True)


def test_o4_a_channel_that_one_side_alone_has_is_a_difference(waiting: Rows, tmp_path: Path) -> None:
    compared = _cli(waiting, tmp_path, "diff", "t@root", "t", "--json")

    assert compared.code == 0, compared.err
    assert "order" in {one["path"].partition(".")[0] for one in compared.json["state"]}, compared.json["state"]


def test_o5_fields_are_shown_that_the_model_of_today_rejects(waiting: Rows, tmp_path: Path) -> None:
    changed = {"field": "    town: str", "value": ', town="Bonn"'}
    shown = _cli(waiting, tmp_path, "show", "t", "--json", **changed)
    replayed = _cli(waiting, tmp_path, "replay", "t", *GRAPH, **changed)

    order = shown.json["values"]["order"]
    assert (order["id"], order["city"]) == ("A1", "Bonn")
    assert order["$type"].endswith("Order")
    assert replayed.code == 5
    assert "Order" in replayed.err


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("", "city is dropped"),
        ("    city: int", "Order refuses what is stored: city"),
        ("    city: bytes", "city is bytes"),
    ],
    ids=["gone", "another type", "converted"],
)
def test_o5_a_replay_stops_where_a_model_would_lose_or_convert_a_stored_field(
    waiting: Rows, tmp_path: Path, field: str, reason: str
) -> None:
    replayed = _cli(waiting, tmp_path, "replay", "t", *GRAPH, field=field, value="")
    forked = _cli(waiting, tmp_path, "fork", "t", "--set", 'log=["mine"]', *GRAPH, field=field, value="")

    assert (replayed.code, forked.code) == (5, 5)
    assert reason in replayed.err and reason in forked.err
    assert "channel order" in replayed.err
    assert not (tmp_path / "debug" / "debug.sqlite").exists(), "nothing was copied"
