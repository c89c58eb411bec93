"""The memory store of a run is a copy of the source's, and what the run writes to it is shown."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from agentctl.sandbox.loading import load_graph
from agentctl.testing import CliResult, run_cli
from tests.catalog import config_of

GRAPH = """
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph


def remember(state):
    memory = get_store()
    if memory is None:
        return {}
    prefs = memory.get(("users", "u-1"), "prefs")
    seen = prefs.value["seats"]
    seen.append("aisle")  # in place, without a put
    memory.put(("users", "u-1"), "visits", {"n": len(seen)})
    memory.put(("users", "u-1"), "name", {"is": "Ada"})
    memory.delete(("users", "u-1"), "old")
    return {"messages": [("ai", f"{len(seen)} seats")]}


graph = StateGraph(MessagesState).add_node("remember", remember).add_edge(START, "remember")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(GRAPH, "utf-8")
    path = str(tmp_path / "prod.sqlite")
    with SqliteStore.from_conn_string(path) as memory:
        memory.setup()
        memory.put(("users", "u-1"), "prefs", {"seats": ["window"]})
        memory.put(("users", "u-1"), "name", {"is": "Ada"})
        memory.put(("users", "u-1"), "old", {"gone": False})
    with SqliteSaver.from_conn_string(path) as saver, load_graph("app.py:graph", cwd=tmp_path) as loaded:
        loaded.with_saver(saver).invoke({"messages": [("user", "hi")]}, config_of("t"), durability="sync")
    return tmp_path


def replay(project: Path, *words: str, terminal: bool = False) -> CliResult:
    where = ("--store", "prod.sqlite", "--graph", "app.py:graph")
    return run_cli("replay", "t@root", *where, *words, cwd=project, terminal=terminal, width=80)


def items(project: Path) -> list[tuple[str, ...]]:
    with sqlite3.connect(project / "prod.sqlite") as database:
        return database.execute("SELECT prefix, key, value FROM store ORDER BY key").fetchall()


def test_each_run_has_a_copy_of_its_own_and_the_source_stays(project: Path) -> None:
    before = items(project)
    done = replay(project, "-n", "3", "--json")
    assert done.code == 0, done.out
    assert [run["reply"] for run in done.json["runs"]] == ["2 seats"] * 3
    assert items(project) == before
    at = {"namespace": ["users", "u-1"]}
    assert [run["memory"] for run in done.json["runs"]] == [
        [
            {**at, "key": "old", "old": {"gone": False}, "new": None},
            {**at, "key": "prefs", "old": {"seats": ["window"]}, "new": {"seats": ["window", "aisle"]}},
            {**at, "key": "visits", "old": None, "new": {"n": 2}},
        ]
    ] * 3


def test_what_runs_wrote_is_said_once_for_those_that_end_alike(project: Path) -> None:
    done = replay(project, "-n", "2", terminal=True)
    words = "deletes users/u-1/old; puts users/u-1/prefs; puts users/u-1/visits"
    (line,) = [line for line in done.out.splitlines() if "users/u-1" in line]
    assert line.split(maxsplit=1) == ["memory", words]
