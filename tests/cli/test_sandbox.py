"""`agentctl sandbox check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import shop
from tests.support.cli import Cli

GRAPH = """
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode


@tool
def shred(paper: str) -> str:
    "Shreds."
    return "gone"


def build_graph(tools, *, model=None, memory=None):
    print("built")
    graph = StateGraph(MessagesState).add_node("tools", ToolNode([*tools.only(*tools.names), *MORE]))
    return graph.set_entry_point("tools").compile()


MORE = []
"""
TOOLS = """
import os
from agentctl.sandbox.registry import ToolRegistry


def of(effect, unanswered=False):
    registry = ToolRegistry()

    @registry.register(effect="read")
    def look(order: str) -> str:
        "Looks."
        raise AssertionError("called")

    @registry.register(effect=effect, answers=not unanswered)
    def pay(order: str, amount: int) -> str:
        "Pays."
        raise AssertionError("called")

    return registry


def production():
    return of("write")


def sandbox():
    return of("write")
"""
CONFIG = """
workflows:
  orders: {graph: "graph.py:build_graph", sandbox: "tools.py:sandbox", production: "tools.py:production"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Cli:
    (tmp_path / "agentctl.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "graph.py").write_text(GRAPH, "utf-8")
    (tmp_path / "tools.py").write_text(TOOLS, "utf-8")
    return Cli(tmp_path, tmp_path)


def rewrite(project: Cli, file: str, old: str, new: str) -> None:
    path = project.cwd / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_equal_registries_are_listed_and_the_exit_code_is_zero(project: Cli) -> None:
    done = project("sandbox", "check", terminal=True)
    assert done.code == 0
    assert [line.split() for line in done.out.splitlines()] == [
        ["workflow", "tool", "production", "sandbox", "parity"],
        ["orders", "look", "read", "read,", "stub", "same"],
        ["orders", "pay", "write", "write,", "stub", "same"],
        [],
        ["2", "tools", "in", "1", "workflow,", "0", "findings"],
    ]
    assert "built" in done.err


def test_a_pipe_gets_a_row_a_tool_and_a_program_all_of_it(project: Cli) -> None:
    rewrite(
        project, "tools.py", 'def sandbox():\n    return of("write")', 'def sandbox():\n    return of("write", True)'
    )
    done = project("sandbox", "check", "orders")
    assert done.code == 1
    assert done.rows == [
        ["orders", "look", "read", "read", "true", "", "", ""],
        [
            "orders", "pay", "write", "write", "false", "no_stub",
            "a write without a stub: a replay that reaches it is blocked",
            "answer it in the sandbox, and leave `answers=False` out",
        ],
    ]  # fmt: skip
    document = project("sandbox", "check", "--json").json
    assert (document["schema"], document["n_findings"], document["n_total"]) == ("agentctl.sandbox.check/1", 1, 1)
    (item,) = document["items"]
    assert [[each["code"] for each in tool["findings"]] for tool in item["tools"]] == [[], ["no_stub"]]


@pytest.mark.parametrize(
    ("file", "old", "new", "code"),
    [
        ("tools.py", 'def sandbox():\n    return of("write")', 'def sandbox():\n    return of("read")', "effect"),
        ("tools.py", 'def sandbox():\n    return of("write")', "def sandbox():\n    return ToolRegistry()", "missing"),
        ("graph.py", "MORE = []", "MORE = [shred]", "unregistered"),
    ],
)
def test_each_finding_says_what_to_do_and_makes_the_exit_code_one(
    project: Cli, file: str, old: str, new: str, code: str
) -> None:
    rewrite(project, file, old, new)
    done = project("sandbox", "check", terminal=True)
    assert done.code == 1
    assert code in done.out
    assert "\nfix: " in done.out


def test_a_registry_that_is_not_named_is_a_finding(project: Cli) -> None:
    rewrite(project, "agentctl.yaml", ', sandbox: "tools.py:sandbox"', "")
    done = project("sandbox", "check")
    assert done.code == 1
    assert done.rows == [
        ["orders", "", "", "", "", "no_registry", "agentctl.yaml names no sandbox registry",
         "sandbox: path.py:attr, under workflows.orders"],
    ]  # fmt: skip


def test_every_missing_variable_is_named_at_once_with_what_to_type(project: Cli) -> None:
    needing = 'def production():\n    os.environ["ORDERS_URL"], os.environ["ORDERS_KEY"]\n    return of("write")'
    rewrite(project, "tools.py", 'def production():\n    return of("write")', needing)
    failed = project("sandbox", "check")
    assert (failed.code, failed.out) == (6, "")
    assert "without the environment variables ORDERS_URL, ORDERS_KEY" in failed.err
    assert "hint: nothing is called: add --env ORDERS_URL=DUMMY --env ORDERS_KEY=DUMMY" in failed.err
    assert project("sandbox", "check", "--env", "ORDERS_URL=DUMMY", "--env", "ORDERS_KEY=DUMMY").code == 0


def test_code_that_raises_is_told_with_its_own_traceback(project: Cli) -> None:
    rewrite(project, "tools.py", 'def production():\n    return of("write")', "def production():\n    1 / 0")
    failed = project("sandbox", "check")
    assert failed.code == 6
    assert "ZeroDivisionError" in failed.err
    assert "line" in failed.err


def test_a_registry_that_reaches_for_the_network_is_refused_before_it_gets_there(project: Cli) -> None:
    reaching = 'def production():\n    import socket\n    socket.create_connection(("127.0.0.1", 9))'
    rewrite(project, "tools.py", 'def production():\n    return of("write")', reaching)
    failed = project("sandbox", "check", "--json")
    assert failed.code == 5
    assert "tried to look up 127.0.0.1 while it was built" in failed.json["error"]["message"]


@pytest.mark.parametrize(("words", "message"), [(("other",), "there is no workflow other"), ((), "lists no workflows")])
def test_a_workflow_that_there_is_not_is_an_error(project: Cli, words: tuple[str, ...], message: str) -> None:
    if not words:
        (project.cwd / "agentctl.yaml").write_text("{}", "utf-8")
    failed = project("sandbox", "check", *words)
    assert failed.code == 2
    assert message in failed.err


def test_production_does_not_reach_the_code_that_is_checked(project: Cli) -> None:
    said = 'def production():\n    assert "AGENTCTL_ENV" not in os.environ\n    return of("write")'
    rewrite(project, "tools.py", 'def production():\n    return of("write")', said)
    assert project("sandbox", "check", environ={"AGENTCTL_ENV": "production"}).code == 0
    assert shop.PAID == []
