"""Steps at which a node waits for others are not run from an Agent Server's states, which do not tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.testing import run_cli
from agentctl.testing.commands import CliResult
from tests.support.server_stub import StubServer, server_stub, state, task

APP = """
import operator
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]

def node(name):
    return lambda state: {"log": [name]}

def built(defer):
    graph = StateGraph(State)
    for name in ("quick", "one", "two"):
        graph.add_node(name, node(name))
    graph.add_node("end", node("end"), defer=defer)
    graph.add_edge(START, "quick").add_edge(START, "one").add_edge("one", "two")
    if defer:
        graph.add_edge("quick", "end").add_edge("two", "end")
    else:
        graph.add_edge(["quick", "two"], "end")
    return graph.compile()

joined, deferred = built(False), built(True)
"""


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with server_stub() as running:
        yield running


@pytest.fixture
def thread(stub: StubServer) -> str:
    """A thread on which quick and one have run, and two is due."""
    id = stub.thread("waits")
    started = {"log": ["go"]}
    steps = [({"__start__": started}, {}), ({"quick": {"log": ["quick"]}, "one": {"log": ["one"]}}, started)]
    steps.append(({"two": None}, {"log": ["go", "one", "quick"]}))
    made = [
        state(id, place, values=values, next=list(tasks), tasks=[task(place, *one) for one in tasks.items()])
        for place, (tasks, values) in enumerate(steps)
    ]
    stub.states[id, ""] = made[::-1]
    return id


@pytest.mark.parametrize("graph", ["joined", "deferred"])
def test_a_step_is_not_run_where_a_node_may_wait_for_another(
    stub: StubServer, thread: str, tmp_path: Path, graph: str
) -> None:
    refused = _run(stub, tmp_path, "replay", f"{thread}@before:two", "--graph", f"app.py:{graph}")

    assert refused.code == 5 and "does not state whether end waits for others after quick" in refused.err, refused.err
    assert refused.err.rstrip().endswith(f" {thread}@before:quick")


@pytest.mark.parametrize("graph", ["joined", "deferred"])
def test_the_step_before_it_is_run_to_the_end(stub: StubServer, thread: str, tmp_path: Path, graph: str) -> None:
    replayed = _run(stub, tmp_path, "replay", f"{thread}@before:quick", "--graph", f"app.py:{graph}", "--json")

    assert replayed.code == 0, replayed.out
    assert sorted(replayed.json["runs"][0]["nodes"]) == ["end", "one", "quick", "two"]


@pytest.mark.parametrize("graph", ["joined", "deferred"])
def test_a_copy_of_such_a_step_is_not_run_either(stub: StubServer, thread: str, tmp_path: Path, graph: str) -> None:
    copied = _run(stub, tmp_path, "copy", thread, "--as", "copy")
    words = ("--graph", f"app.py:{graph}", "--debug-store", tmp_path / "debug" / "debug.sqlite")

    refused = run_cli("replay", "debug::copy@before:two", *words, cwd=tmp_path)

    assert copied.code == 0, copied.err
    assert refused.code == 5 and "whether end waits" in refused.err, refused.err


def _run(stub: StubServer, folder: Path, *words: str) -> CliResult:
    (folder / "app.py").write_text(APP, "utf-8")
    places = ("--store", stub.url, "--debug-store", folder / "debug" / "debug.sqlite")
    return run_cli(*words, *places, cwd=folder)
