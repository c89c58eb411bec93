"""Reports B: subgraphs and checkpoint namespaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from tests.catalog import config_of, go
from tests.support.application import ON_BOTH_STORES, Application, Apps, application

NEW: dict[str, Any] = {"amount": 0, "log": []}
ANSWERS = (Command(resume="one"), Command(resume="two"))
RESUMES = ("--resume", '"A"', "--resume", '"B"')
ONE_OR_TWO_LEVELS = pytest.mark.parametrize(
    ("store", "graph"), [("sqlite", "two_questions"), ("postgres", "two_levels")], indirect=["store"]
)
STRANGERS = Path(__file__).parents[1] / "strangers" / "graphs"


@ONE_OR_TWO_LEVELS
def test_b1_a_replay_before_a_finished_subgraph_runs_all_of_it_again(app: Apps, graph: str) -> None:
    nested = app(f"nested.py:{graph}")
    nested.run(NEW, *ANSWERS)
    fresh = nested("show", "t", "--json").json["values"]
    path = "sub|deeper" if graph == "two_levels" else "sub"

    asked = nested("replay", "t@before:sub", "--json").json["runs"][0]
    told = nested("replay", "t@before:sub", *RESUMES, "--json").json["runs"][0]

    assert [question["value"] for question in asked["interrupts"]] == ["first?"], "no recorded answer is used"
    inner = [f"{path}|{name}" for name in ("scale", "first", "second", "last")]
    assert [node for node in told["nodes"] if node in inner] == inner
    assert told["nodes"][-1] == "post"
    assert nested.debug("show", told["thread"], "--json").json["values"] == fresh


@ONE_OR_TWO_LEVELS
def test_b2_b3_a_replay_inside_a_subgraph_starts_at_the_very_row_and_goes_on_to_the_end(app: Apps, graph: str) -> None:
    nested = app(f"nested.py:{graph}")
    nested.run(NEW, *ANSWERS)
    ns = max(_namespaces(nested), key=len)
    path = "sub|deeper" if graph == "two_levels" else "sub"
    target = nested("resolve", "t@before:second", "--ns", ns).out.split()[0]

    asked = nested("replay", f"t@{target}", "--json").json
    told = nested("replay", f"t@{target}", "--resume", '"B"', "--json").json["runs"][0]

    assert asked["source"]["id"] == target
    assert [question["value"] for question in asked["runs"][0]["interrupts"]] == ["second?"]
    ran = [node for node in told["nodes"] if node.startswith(f"{path}|")]
    assert ran == [f"{path}|second", f"{path}|last"]
    assert (told["status"], told["nodes"][-1]) == ("done", "post")
    rows = nested.debug("history", told["thread"], "--all", "--json").json["items"]
    last = next(row for row in rows if row["wrote"] == ["last"])
    values = nested.debug("show", f"{told['thread']}@{last['id']}", "--ns", last["ns"], "--json").json["values"]
    assert values["inner"] == ["first: one", "second: B", "last"]


@ON_BOTH_STORES
def test_b2_b3_a_replay_inside_one_of_several_sends_runs_that_one_alone(app: Apps) -> None:
    fanned = app("nested.py:fanned")
    fanned.run(NEW)
    first, second = sorted(_namespaces(fanned), key=lambda ns: _number(fanned, ns))

    asked = fanned("replay", "t@before:note", "--ns", second, "--json").json["runs"][0]
    forked = fanned("fork", "t", "--resume", '"A"', "--resume", '"B"', "--json").json["runs"][0]

    assert [node for node in asked["nodes"] if node == "sub|note"] == ["sub|note"], "the other one had run"
    assert [question["value"] for question in asked["interrupts"]] == [1, 2]
    assert first != second
    values = fanned.debug("show", forked["thread"], "--json").json["values"]
    assert values["log"] == ["split", "note", "leaf 1: A", "note", "leaf 2: B"]


@pytest.mark.parametrize("pinned", [False, True], ids=["thread", "head id"])
def test_b4_a_resume_runs_the_asking_node_alone_whether_or_not_it_names_the_head(app: Apps, pinned: bool) -> None:
    nested = app("nested.py:two_questions")
    nested.run(NEW)
    copied = nested("copy", "t", "--as", "c", "--json").json["target"]

    place = f"debug::c@{copied['id']}" if pinned else "debug::c"
    resumed = nested("resume", place, "--value", '"one"', "--json").json

    assert resumed["nodes"] == ["sub", "sub|first", "sub|second"]
    assert [question["value"] for question in resumed["interrupts"]] == ["second?"]


@pytest.mark.parametrize("graph", ["gated", "gated_in_a_call"])
def test_b5_a_breakpoint_inside_a_subgraph_is_told_and_gone_past(app: Apps, graph: str) -> None:
    gated = app(f"nested.py:{graph}")
    gated.run(NEW)

    stopped = gated("replay", "t@before:sub", "--json").json["runs"][0]
    past = gated("replay", "t@before:sub", "--resume", "null", "--json").json["runs"][0]
    told = gated("replay", "t@before:sub", terminal=True).out

    assert (stopped["status"], stopped["waits_before"]) == ("interrupted", ["sub|gated"])
    assert "stopped  before sub|gated, at a breakpoint\n         go past it with --resume null\n" in told
    assert past["status"] == "done"
    assert [node for node in past["nodes"] if node.startswith("sub|")] == ["sub|scale", "sub|gated"]


def test_b5_the_heads_branch_stays_the_first_where_a_subgraph_has_newer_rows(app: Apps) -> None:
    gated = app("nested.py:gated")
    gated.run(NEW)

    lines = gated("history", "t", "--all", terminal=True).out.splitlines()[2:]

    assert [(line.split()[0], "sub:" in line) for line in lines] == [("○", True)] * 3 + [("●", False)] * 3


@ON_BOTH_STORES
def test_b6_each_visit_of_a_subgraph_shows_its_rows_and_a_replay_visits_it_again(app: Apps) -> None:
    kept = app("nested.py:kept")
    kept.run({"amount": 0, "log": []}, *ANSWERS)

    rows = kept("history", "t", "--all", "--json").json["items"]
    inner = [row["wrote"] for row in reversed(rows) if row["ns"] == "sub" and row["source"] == "loop"]
    told = kept("replay", "t@root", *RESUMES, "--json").json["runs"][0]

    assert inner == [["__start__"], ["step"], ["ask"]] * 2
    assert told["status"] == "done"
    assert [node for node in told["nodes"] if node == "sub|step"] == ["sub|step"] * 2


@ON_BOTH_STORES
def test_b7_the_rows_of_a_subgraph_are_shown_after_the_run_is_complete(app: Apps) -> None:
    nested = app("nested.py:two_questions")
    nested.run(NEW, *ANSWERS)
    (ns,) = _namespaces(nested)

    with nested.stock() as graph:
        assert graph.get_state(config_of("t"), subgraphs=True).tasks == ()
    shown = nested("show", "t", "--ns", "sub", "--json").json

    assert (shown["ns"], shown["next"]) == (ns, [])
    assert shown["values"]["inner"] == ["first: one", "second: two", "last"]
    (task,) = nested("show", "t@before:sub", "--json").json["tasks"]
    assert task["ns"] == ns, "the step tells which namespace is its own"


@ON_BOTH_STORES
def test_b8_the_conversation_of_a_subagent_is_read_from_its_rows(store: str, tmp_path: Path) -> None:
    deep = application(tmp_path, store, f"{STRANGERS / 'deep_agent.py'}:make")
    deep.run({"messages": [HumanMessage("where are my orders?")]})
    namespaces = _namespaces(deep)

    assert namespaces and all(ns.startswith("tools:") for ns in namespaces)
    for ns in namespaces:
        talk = deep("show", "t", "--ns", ns, "--messages", "--json").json["items"]
        assert [turn["message"]["role"] for turn in talk][:: len(talk) - 1] == ["human", "ai"]


def test_b9_a_namespace_that_was_given_and_never_stored_is_named_as_missing(app: Apps) -> None:
    line = app("flows.py:line")
    with line.stock() as graph:
        graph.invoke({"log": []}, config_of("t", checkpoint_ns="story"), durability="sync")
        assert graph.get_state(config_of("t", checkpoint_ns="story")).values == {}

    for words in (("history", "t"), ("show", "t"), ("replay", "t@root"), ("copy", "t")):
        missing = line(*words, "--ns", "story")
        assert missing.code == 3
        assert "thread t has no namespace story" in missing.err
    assert {row["ns"] for row in line("history", "t", "--all", "--json").json["items"]} == {""}


def test_b10_a_namespace_is_checked_before_the_graph_is_called(app: Apps) -> None:
    nested = app("nested.py:two_questions")
    nested.run(NEW)
    (ns,) = _namespaces(nested)

    missing = nested("history", "t", "--ns", "default")
    replayed = nested("replay", "t@root", "--ns", "default", "--graph", "no_such_file.py:graph")

    assert (missing.code, replayed.code) == (3, 3)
    assert missing.err.endswith(f"hint: it has: {ns}\n")
    assert "thread t has no namespace default" in replayed.err


def test_b12_a_diff_of_branches_leaves_out_what_both_have_twice(app: Apps) -> None:
    doubling = app("nested.py:doubling")
    with doubling.stock() as graph:
        go(graph, "t", {"items": []})
    assert doubling.state().values["items"] == ["pre", "pre", "in"]

    forked = doubling("fork", "t@before:sub", "--set", 'items=["mine"]', "--json").json
    same = doubling("replay", "t@before:sub", "--json").json["runs"][0]["thread"]
    changes = doubling("diff", "t", f"debug::{forked['runs'][0]['thread']}", "--json").json["state"]

    assert doubling("diff", "t", f"debug::{same}", "--json").json["equal"]
    assert changes == [{"path": f"items[{place}]", "left": "pre", "right": "mine"} for place in (0, 1)]


def _namespaces(app: Application) -> list[str]:
    """The namespaces of thread `t` but the root's, oldest first."""
    rows = app("history", "t", "--all", "--json").json["items"]
    return list(dict.fromkeys(row["ns"] for row in reversed(rows) if row["ns"]))


def _number(app: Application, ns: str) -> int:
    """Which Send a namespace of `fanned` belongs to."""
    return int(app("show", "t", "--ns", ns, "--json").json["values"]["number"])
