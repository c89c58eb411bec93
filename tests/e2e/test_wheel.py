"""The wheel in a fresh virtual environment: what a user of the package gets."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from langgraph.graph import MessagesState, StateGraph

from agentctl import __version__
from agentctl.testing import build_thread
from tests.support.processes import Shell
from tests.support.wheel import build_wheel, install_wheel

EXTRA = ("starlette", "uvicorn")

pytestmark = pytest.mark.real_process


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def without_extra(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_wheel(wheel, tmp_path_factory.mktemp("plain") / "venv", without=EXTRA)


def test_the_wheel_holds_the_package_and_the_example_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"agentctl", "langgraph_agentctl"}
    assert "agentctl/_example/graphs/support_refunds/policy/2026-10.yaml" in names
    assert "agentctl/_example/agentctl.yaml" in names
    assert "agentctl/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".sqlite"))]


def test_the_command_is_there_and_comes_from_the_wheel(without_extra: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path, (str(without_extra),))
    assert shell.type("agentctl --version").ok().out == f"agentctl {__version__}\n"
    assert "diagnose" in shell.type("agentctl --help").ok().out
    python = Shell(tmp_path, (str(without_extra.parent / "python"), "-c", "import agentctl; print(agentctl.__file__)"))
    assert python.type("agentctl").ok().out.startswith(str(without_extra.parents[1]))


def test_looking_works_without_the_extra(without_extra: Path, tmp_path: Path) -> None:
    graph = StateGraph(MessagesState).add_node("greet", lambda _: {"messages": [("ai", "hello")]})
    build_thread(graph.set_entry_point("greet").compile(), tmp_path / "app.sqlite", "t-1", {"messages": []})
    listed = Shell(tmp_path, (str(without_extra),)).type("agentctl history t-1 --store app.sqlite").ok()
    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert [row[6] for row in rows] == ["greet", "__start__", ""]


def test_the_tour_without_the_extra_says_what_to_install_and_lays_nothing_out(
    without_extra: Path, tmp_path: Path
) -> None:
    done = Shell(tmp_path, (str(without_extra),)).type("agentctl tour")
    assert done.code == 4
    assert done.err.splitlines() == [
        "error: the tour needs the extra workflows: starlette, uvicorn not installed",
        "hint: pip install 'langgraph-agentctl[workflows]'",
    ]
    assert list(tmp_path.iterdir()) == []
