"""The core without the extra `workflows`: what needs it says so, and all else works."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.sandbox.extras import missing_of
from tests.support.incidents import REPOSITORY, WORKFLOWS
from tests.support.processes import Finished
from tests.support.without import run_without

EXTRA = ("httpx", "langchain", "langchain_openai", "starlette", "uvicorn", "deepagents", "mcp")
HINT = "hint: pip install 'langgraph-agentctl[workflows]'"

pytestmark = pytest.mark.real_process


def test_the_packages_of_these_tests_are_here_when_they_are_not_taken_away() -> None:
    assert missing_of("workflows") == ()


@pytest.mark.parametrize("absent", [EXTRA, ("httpx",)], ids=["all", "httpx"])
def test_a_check_names_the_package_it_lacks_and_the_extra(absent: tuple[str, ...]) -> None:
    done = run_without(absent, "sandbox", "check", "support_refunds", cwd=REPOSITORY)
    assert (done.code, done.out) == (6, "")
    assert names_what_is_missing(done, absent)


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_run_names_the_package_it_lacks_and_the_extra_and_writes_nothing(workflow: str, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text("{}", "utf-8")
    files = ("--debug-store", str(tmp_path / "debug.sqlite"), "--input", str(tmp_path / "input.json"))
    done = run_without(EXTRA, "run", workflow, "--thread", "try-1", *files, cwd=REPOSITORY)
    assert (done.code, done.out) == (6, "")
    assert names_what_is_missing(done, EXTRA)
    assert [path.name for path in tmp_path.iterdir()] == ["input.json"]


def names_what_is_missing(done: Finished, absent: tuple[str, ...]) -> bool:
    error, hint = done.err.splitlines()[-2:]
    named = any(f" needs {name} (ModuleNotFoundError" in error for name in absent)
    return error.startswith("error: ") and named and hint == HINT


def test_the_tour_names_all_that_it_lacks_and_lays_nothing_out(tmp_path: Path) -> None:
    done = run_without(("starlette", "httpx"), "tour", cwd=tmp_path)
    assert (done.code, done.out) == (4, "")
    assert done.err.splitlines() == ["error: the tour needs the extra workflows: httpx, starlette not installed", HINT]
    assert list(tmp_path.iterdir()) == []


def test_a_package_of_ones_own_is_not_taken_for_one_of_the_extra(tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text("import my_tools\n", "utf-8")
    (tmp_path / "input.json").write_text("{}", "utf-8")
    words = ("run", "graph.py:graph", "--thread", "try-1", "--debug-store", "debug.sqlite", "--input", "input.json")
    done = run_without(EXTRA, *words, cwd=tmp_path)
    assert done.code == 6
    assert "graph.py:graph needs my_tools" in done.err
    assert "pip install" not in done.err


def test_a_package_that_is_needed_for_something_else_takes_no_part(tmp_path: Path) -> None:
    done = run_without(("httpx", "deepagents"), "config", "show", cwd=REPOSITORY)
    assert done.code == 0
    assert "support_refunds" in done.out
