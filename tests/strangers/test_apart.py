"""Unprepared graphs in the process that experiments run in by default: built there, answered there, held there."""

from __future__ import annotations

import pytest

from tests.strangers.projects import Project
from tests.strangers.test_projects import DELIVERED

APART = ("--isolation", "best")
RAN_REALLY = ("--tools", "sandbox", "--effect", "lookup_order=state", "--effect", "issue_refund=state")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copied_to(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("graph", ["keyed", "inside", "workflow"])
def test_a_graph_is_built_and_replayed_apart(project: Project, graph: str) -> None:
    project.record(graph)
    done = project("replay", "t@root", *APART, graph=graph)
    assert done.code == 0, done.out
    assert done.json["isolation"] != "in-process gate"
    assert done.json["runs"][0]["reply"] == "refunded A1"
    assert done.json["side_effects"] == {"recorded": 2, "stubbed": 0, "live": 0, "blocked": 0, "escaped": 0}
    assert project.world() == []


@pytest.mark.parametrize("graph", ["nested", "handoff"])
def test_a_fork_with_another_answer_ends_apart_as_it_does_here(project: Project, graph: str) -> None:
    project.record(graph)
    done = project("fork", "t", "--answer", DELIVERED, *APART, graph=graph)
    assert done.code == 0, done.out
    assert done.json["isolation"] != "in-process gate"
    assert done.json["runs"][0]["reply"] == "No refund is due."
    assert project.world() == []


def test_a_server_that_a_tool_starts_is_held_with_the_process_that_starts_it(project: Project) -> None:
    project.record("remote")
    here = project("replay", "t@root", *RAN_REALLY, graph="remote")
    assert (here.code, project.world()) == (0, ["looked A1 up", "refunded A1"]), here.out
    project.record("remote")
    apart = project("replay", "t@root", *RAN_REALLY, *APART, graph="remote")
    (run,) = apart.json["runs"]
    assert "PermissionError" in f"{run['reply']} {run['error']}", apart.out
    assert project.world() == []
