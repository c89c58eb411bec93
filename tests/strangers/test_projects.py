"""Commands on an application that knows nothing of agentctl: every effect would be a line in a file, and none is."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from agentctl.sandbox.recorder import record_thread
from agentctl.sandbox.recordings import Recording
from agentctl.stores.open import open_reader
from agentctl.testing import run_cli
from tests.strangers.projects import SPECS, Project

DELIVERED = 'lookup_order={"order_id": "A1", "status": "delivered"}'
COMMON = [name for name in SPECS if name != "lazynode"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copied_to(tmp_path_factory.mktemp("project"))


def served(document: dict[str, Any]) -> set[str]:
    return {call["served_by"] for run in document["runs"] for call in run["tool_calls"]}


@pytest.mark.parametrize("graph", [name for name in COMMON if name != "handoff"])
def test_a_replay_is_answered_by_the_recording_alone(project: Project, graph: str) -> None:
    project.record(graph)
    assert "refunded A1" in project.really[graph]
    done = project("replay", "t@root", graph=graph)
    document = done.json
    assert done.code == 0, done.out
    n = 1 if graph == "deep" else 2
    assert document["side_effects"] == {"recorded": n, "stubbed": 0, "live": 0, "blocked": 0, "escaped": 0}
    assert document["runs"][0]["reply"].endswith("refunded A1")
    assert project.world() == []


@pytest.mark.parametrize("graph", [name for name in COMMON if name != "workflow"])
def test_a_fork_with_another_answer_comes_to_another_end(project: Project, graph: str) -> None:
    project.record(graph)
    form = ("--answer", DELIVERED) if graph in ("handoff", "deep") else ("--patch", 'lookup_order:status="delivered"')
    done = project("fork", "t", *form, graph=graph)
    assert done.code == 0, done.out
    assert done.json["runs"][0]["reply"].endswith("No refund is due.")
    assert served(done.json) <= {"answered", "state"}
    assert project.world() == []


def test_a_command_comes_back_whole_also_where_a_node_builds_its_tool_node(project: Project) -> None:
    project.record("lazynode")
    done = project("replay", "t@root", graph="lazynode")
    assert (done.code, done.json["side_effects"]["recorded"]) == (0, 2), done.out
    nodes = done.json["runs"][0]["nodes"]
    assert sorted(nodes) == ["act", "act", "agent", "agent", "agent", "note"]
    shown = run_cli("show", f"debug::{done.json['runs'][0]['thread']}", "--json", cwd=project.folder)
    assert (shown.json["values"]["status"], shown.json["values"]["noted"]) == ("lost", "it was lost"), shown.out[-800:]


@pytest.mark.parametrize("graph", ["handoff"])
def test_a_diagnosis_finds_the_answer_that_was_the_cause(project: Project, graph: str) -> None:
    project.record(graph)
    wanted = ("--check", "reply contains refunded", "--answer", DELIVERED, "-n", "5", "--trust-rest")
    done = project("diagnose", "t", *wanted, graph=graph)
    assert done.code == 0, done.out
    assert done.json["verdict"] == "tool_data"
    assert done.json["side_effects"]["escaped"] == done.json["side_effects"]["blocked"] == 0
    assert project.world() == []


def test_a_hand_over_is_recorded_on_postgres_too(project: Project, fresh_postgres_url: str) -> None:
    project.record_on_postgres("handoff", fresh_postgres_url)
    with closing(open_reader(fresh_postgres_url)) as reader:
        recording = record_thread(reader, "t")
    (entry,) = [entry for entry in recording.entries if entry.kind == "handoff"]
    assert (entry.name, entry.goto, entry.text) == ("transfer_to_refunds", ("refunds",), "handed over")
    assert Recording.from_json(recording.to_json()) == recording
    where = ("--graph", project.spec("handoff"), "--store", fresh_postgres_url, "--json")
    done = run_cli("replay", "t@root", *where, cwd=project.folder)
    assert (done.code, done.json["runs"][0]["reply"]) == (0, "refunded A1")
    assert done.json["side_effects"]["recorded"] == 3
    assert project.world() == []


def test_a_call_inside_synchronous_middleware_is_blocked_like_any_other(project: Project) -> None:
    project.record("keyed")
    done = project("replay", "t@root", "--tools", "sandbox", graph="keyed")
    (run,) = done.json["runs"]
    assert (done.code, run["status"], run["tool_calls"][0]["name"]) == (5, "blocked", "lookup_order")
    assert project.world() == []


def test_tools_that_tasks_call_are_answered_otherwise_by_stubs(project: Project) -> None:
    project.record("workflow")
    stub = ("--tools", "sandbox", "--stub", 'lookup_order={"status": "delivered"}')
    done = project("replay", "t@root", *stub, graph="workflow")
    assert (done.code, done.json["runs"][0]["reply"]) == (0, "No refund is due.")
    assert project.world() == []


def test_a_recorded_handoff_is_not_given_to_a_run_that_was_told_something_else(project: Project) -> None:
    project.record("handoff")
    other = ("--answer", 'lookup_order="it is lost in the mail"')
    done = project("fork", "t", *other, graph="handoff")
    assert done.code == 5
    blocked = done.json["runs"][0]["tool_calls"][-1]
    assert (blocked["name"], blocked["served_by"]) == ("transfer_to_refunds", "blocked")
    ran = project("fork", "t", *other, "--effect", "transfer_to_refunds=state", graph="handoff")
    assert (ran.code, ran.json["runs"][0]["reply"]) == (0, "refunded A1")
    assert served(ran.json) == {"state", "recorded"}
    assert project.world() == []
