"""`agentctl sandbox init`, on graphs that know nothing of agentctl."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.testing import CliResult, run_cli
from tests.strangers.projects import KEY, Project

GRAPH = """
from typing import Annotated, Literal

from langchain_core.tools import StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from pydantic import BaseModel, Field


class Line(BaseModel):
    sku: str
    n: Annotated[int, Field(ge=1)] = 1


@tool
def price(
    skus: list[str],
    currency: Literal["EUR", "USD"] = "EUR",
    day: int | None = None,
    note: Annotated[str, Field(description='Why "now".')] = "",
    state: Annotated[dict, InjectedState] = None,
) -> dict:
    '''Prices things.

    Several "lines" of text, so that the model knows when to ask for a price and when it had better not do so at all.
    '''


@tool("send-mail")
def send_mail(to: str, lines: list[Line], *, run: dict[str, int], config_name: float = 0.5) -> str:
    "Sends mail."


LOOSE = {"type": "object", "properties": {"class": {"type": "string", "minLength": 1}}, "required": ["class"]}
loose = StructuredTool.from_function(lambda **given: "", name="import", description="Imports.", args_schema=LOOSE)


def builder():
    made = StateGraph(MessagesState)
    made.add_node("tools", ToolNode([price, send_mail, loose]))
    return made.add_edge(START, "tools")


graph = builder()
bare = StateGraph(MessagesState).add_node("say", lambda state: {}).add_edge(START, "say")
"""


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copied_to(tmp_path_factory.mktemp("project"))


def started(project: Project, graph: str) -> dict[str, Any]:
    """Writes a starter registry from the thread of a graph, and the configuration that it asks for."""
    project.record(graph)
    where = ("--store", project.store(graph), "--graph", project.spec(graph), "--env", KEY, "--force", "--json")
    done = run_cli("sandbox", "init", "t", *where, cwd=project.folder)
    assert done.code == 0, done.out
    (project.folder / "agentctl.yaml").write_text(done.json["config"], "utf-8")
    return dict(done.json)


def lint(*files: Path) -> None:
    """Holds files against every rule of ruff that does not concern the project around them."""
    for words in (
        ("check", "--select", "ALL", "--ignore", "ANN401,ARG001,D203,D213,EM101,INP001,CPY001"),
        ("format", "--check"),
    ):
        given = [*words, "--no-cache", "--isolated", *map(str, files)]
        ruff = subprocess.run(
            [sys.executable, "-m", "ruff", *given], cwd=files[0].parent, capture_output=True, text=True, check=False
        )
        assert ruff.returncode == 0, ruff.stdout


@pytest.mark.parametrize("graph", ["keyed", "inside", "lazy", "lazynode", "nested", "workflow", "remote"])
def test_the_registry_passes_its_check_and_a_replay_runs_on_it_alone(strangers: Project, graph: str) -> None:
    document = started(strangers, graph)
    assert [(tool["name"], tool["effect"], tool["answers_with"]) for tool in document["tools"]] in (
        [("lookup_order", "write", "recorded"), ("issue_refund", "write", "recorded")],
        [("issue_refund", "write", "recorded"), ("lookup_order", "write", "recorded")],
    )
    checked = run_cli("sandbox", "check", graph, "--env", KEY, cwd=strangers.folder)
    assert (checked.code, len(checked.rows)) == (0, 2), checked.out + checked.err
    context = ("--context", '{"region": "EU"}') if graph == "inside" else ()
    where = ("--store", strangers.store(graph), "--graph", graph, "--env", KEY, *context, "--json")
    ran = run_cli("replay", "t@root", "--tools", "sandbox", *where, cwd=strangers.folder)
    assert (ran.code, ran.json["runs"][0]["reply"]) == (0, "refunded A1"), ran.out
    assert ran.json["side_effects"] == {"recorded": 0, "stubbed": 2, "live": 0, "blocked": 0, "escaped": 0}
    assert strangers.world() == []
    lint(strangers.folder / "sandbox_tools.py")


def test_tools_of_state_alone_are_left_out_and_what_hands_over_gets_no_stub(strangers: Project) -> None:
    deep = started(strangers, "deep")
    assert [tool["name"] for tool in deep["tools"]] == ["lookup_order", "issue_refund"]
    assert {"task", "write_file", "execute"} <= set(deep["left_out"])
    handoff = started(strangers, "handoff")
    answers = {tool["name"]: tool["answers_with"] for tool in handoff["tools"]}
    assert answers == {"lookup_order": "recorded", "transfer_to_refunds": "nothing", "issue_refund": "recorded"}
    source = (strangers.folder / "sandbox_tools.py").read_text("utf-8")
    assert "gave a Command that wrote status" in source
    assert 'effect="state"' in source
    assert run_cli("sandbox", "check", cwd=strangers.folder).rows[1][5] == "no_stub"


def project(folder: Path) -> Any:
    (folder / "shop.py").write_text(GRAPH, "utf-8")

    def run(*words: str, terminal: bool = False) -> CliResult:
        return run_cli("sandbox", *words, cwd=folder, terminal=terminal, width=80)

    return run


def test_any_schema_is_kept_exactly_and_the_file_is_clean(tmp_path: Path) -> None:
    run = project(tmp_path)
    done = run("init", "--graph", "shop.py:graph", "--name", "orders", terminal=True)
    assert done.code == 0, done.err
    assert "  orders:" in done.out
    assert "sandbox: sandbox_tools.py:registry" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    (tmp_path / "agentctl.yaml").write_text(done.out[done.out.index("workflows:") :], "utf-8")
    checked = run("check")
    assert [(row[1], row[5]) for row in checked.rows] == [
        ("price", "no_stub"), ("send-mail", "no_stub"), ("import", "no_stub"),
    ]  # fmt: skip
    lint(tmp_path / "sandbox_tools.py")


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(tmp_path: Path) -> None:
    run = project(tmp_path)
    mine = tmp_path / "sandbox_tools.py"
    mine.write_text("mine", "utf-8")
    done = run("init", "--graph", "shop.py:graph")
    assert (done.code, mine.read_text("utf-8")) == (5, "mine")
    assert "--force" in done.err
    assert run("init", "--graph", "shop.py:graph", "--force").code == 0
    assert "registry = ToolRegistry()" in mine.read_text("utf-8")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["sandbox_tools.py", "shop.py"]


def test_a_graph_of_langgraph_json_is_known_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "langgraph.json").write_text('{"dependencies": ["."], "graphs": {"orders": "./shop.py:graph"}}')
    done = project(tmp_path)("init", "--json")
    assert (done.code, done.json["workflow"], done.json["graph"]) == (0, "orders", "shop.py:graph")


def test_a_graph_without_tools_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    done = project(tmp_path)("init", "--graph", "shop.py:bare")
    assert done.code == 2
    assert "has no tools" in done.err
    assert not (tmp_path / "sandbox_tools.py").exists()


def test_a_missing_thread_is_named_and_nothing_is_written(strangers: Project, tmp_path: Path) -> None:
    strangers.record("lazy")
    where = ("--store", strangers.store("lazy"), "--graph", strangers.spec("lazy"), "--output", tmp_path / "x.py")
    done = run_cli("sandbox", "init", "gone", *where, cwd=strangers.folder)
    assert done.code == 3
    assert not (tmp_path / "x.py").exists()
