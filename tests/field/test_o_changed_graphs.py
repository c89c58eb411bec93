"""Reports O: the graph changed after the rows were written."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agentctl.errors import Refused, UsageError
from agentctl.experiments.diagnose import diagnose
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import parse_forms
from agentctl.experiments.replay import replay
from agentctl.testing import CliResult, build_thread, run_cli
from tests.support.damage import Rows
from tests.support.experiments import about_to_run, experiment_on


class Before(TypedDict, total=False):
    question: str
    tone: str
    topics: list[str]
    answer: str


class After(TypedDict, total=False):
    question: str
    answer: str


def _graph(state: Any, **compiled: Any) -> Any:
    graph = StateGraph(state)
    graph.add_node("reply", lambda state: {"answer": "yes"})
    graph.add_edge(START, "reply")
    return graph.compile(**compiled)


class Renamed(TypedDict, total=False):
    question: str
    tones: str
    answer: str


@pytest.fixture
def prod(tmp_path: Path) -> Path:
    """A store with a thread `t` whose state has a tone."""
    build_thread(_graph(Before), tmp_path / "prod.sqlite", "t", {"question": "?", "tone": "kind"})
    return tmp_path / "prod.sqlite"


def _diagnosed(experiment: Experiment, target: Target, n: int) -> Any:
    return diagnose(experiment, target, parse_forms(assign=['question="!"']), n=n).replays


def _forked(experiment: Experiment, target: Target, n: int) -> Any:
    return fork(experiment, target, parse_forms(assign=['question="!"']), n)


WAYS = pytest.mark.parametrize("run", [replay, _forked, _diagnosed])


@WAYS
def test_o3_nothing_runs_without_a_value_that_the_graph_has_no_channel_for(run: Any, prod: Path) -> None:
    for state, alike in ((After, ""), (Renamed, " (it has tones)")):
        with experiment_on(prod, _graph(state), prod.parent / "debug.sqlite") as experiment:
            with pytest.raises(Refused) as refused:
                run(experiment, about_to_run(experiment.source, "t", "reply"), 1)
            assert list(experiment.debug.writer.heads()) == []
        assert refused.value.message.endswith(f"which its nodes would not see: tone{alike}")
        assert refused.value.hint is not None and refused.value.hint.endswith("without these values: --drop tone")


@WAYS
def test_o3_a_run_goes_on_without_the_values_that_it_is_told_to_drop(run: Any, prod: Path) -> None:
    with experiment_on(prod, _graph(After), prod.parent / "debug.sqlite", drop=("tone",)) as experiment:
        done = run(experiment, about_to_run(experiment.source, "t", "reply"), 1)

    assert done.plan.warnings == ("dropped, as the graph has no channel for them: tone",)
    assert [one.status for one in done.group.runs] == ["done"]


@WAYS
def test_o3_a_thread_under_its_own_graph_runs_without_a_word(run: Any, prod: Path) -> None:
    with experiment_on(prod, _graph(Before), prod.parent / "debug.sqlite") as experiment:
        done = run(experiment, about_to_run(experiment.source, "t", "reply"), 1)

    assert done.plan.warnings == ()


@WAYS
@pytest.mark.parametrize(
    ("state", "drop", "problem", "hint"),
    [
        (Before, ("tone",), "the graph has that channel", "leave --drop out: nothing has to be"),
        (After, ("tone", "tune"), "holds no value of that channel", "--drop takes one of: tone"),
    ],
)
def test_o3_only_a_value_that_is_held_and_has_no_channel_can_be_dropped(
    run: Any, prod: Path, state: Any, drop: tuple[str, ...], problem: str, hint: str
) -> None:
    with experiment_on(prod, _graph(state), prod.parent / "debug.sqlite", drop=drop) as experiment:
        with pytest.raises(UsageError, match=f"--drop {drop[-1]}: .*{problem}") as refused:
            run(experiment, about_to_run(experiment.source, "t", "reply"), 1)
        assert list(experiment.debug.writer.heads()) == []
    assert refused.value.hint == hint


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_o3_a_thread_that_went_on_without_the_channel_needs_no_drop_where_its_value_is_gone_too(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    rows: Rows = request.getfixturevalue(kind)
    for state in (Before, After):
        given = {"question": "?", "tone": "kind", "topics": ["money"]}
        graph = _graph(state, checkpointer=rows.saver)
        graph.invoke(given, {"configurable": {"thread_id": "went-on"}}, durability="sync")

    with experiment_on(rows.url, _graph(After), tmp_path / "debug.sqlite") as experiment:
        latest = about_to_run(experiment.source, "went-on", "reply", visit=1)
        if kind == "postgres":
            with pytest.raises(Refused, match=r"would not see: topics$"):
                replay(experiment, latest)
            experiment = replace(experiment, drop=("topics",))
        assert replay(experiment, latest).group.runs[0].status == "done"


def _around(inner: Any) -> Any:
    """Returns a graph with the graph of a state inside, which stops before its only node."""
    below = StateGraph(inner)
    below.add_node("reply", lambda state: {"answer": "yes"})
    below.add_edge(START, "reply")
    around = StateGraph(Outer)
    around.add_node("team", below.compile(interrupt_before=["reply"]))
    around.add_edge(START, "team")
    return around.compile()


class Outer(TypedDict, total=False):
    question: str
    tone: str


def test_o3_the_state_of_a_subgraph_counts_where_the_runs_begin_with_it_and_not_where_it_is_made_anew(
    tmp_path: Path,
) -> None:
    prod = tmp_path / "prod.sqlite"
    build_thread(_around(Before), prod, "t", {"question": "?", "tone": "kind"})

    with experiment_on(prod, _around(After), tmp_path / "debug.sqlite") as experiment:
        root = about_to_run(experiment.source, "t", "team")
        ns = next(ns for ns in experiment.source.namespaces("t") if ns)
        with pytest.raises(Refused, match="tone"):
            replay(experiment, about_to_run(experiment.source, "t", "reply", ns=ns))
        assert replay(experiment, root).plan.warnings == ()


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


def test_o3_replay_fork_and_diagnose_take_drop_and_say_it_in_the_plan(waiting: Rows, tmp_path: Path) -> None:
    def run(command: str, *words: str) -> CliResult:
        return _cli(waiting, tmp_path, command, "t", *GRAPH, *words, channel="logs")

    refused = run("replay")
    assert refused.code == 5
    assert "log (it has logs)" in refused.err
    assert "--drop log" in refused.err
    assert not (tmp_path / "debug" / "debug.sqlite").exists()
    for command, words in (("replay", ()), ("fork", ()), ("diagnose", ("-n", "1"))):
        dropped = run(command, *words, "--drop", "log")
        assert dropped.code in (0, 1), dropped.err
        assert "dropped, as the graph has no channel for them: log" in dropped.err
    assert run("fork", "--drop", "log", "--drop", "order").code == 2


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
