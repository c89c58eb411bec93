"""Field log A: replay and time travel on the root graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.testing import build_thread, run_cli

_GRAPH = """
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph


def agent(state):
    return {"messages": [AIMessage("hello")]}


graph = StateGraph(MessagesState).add_node("agent", agent).set_entry_point("agent").compile()
"""


@pytest.mark.parametrize("spelling", ["{file}", "sqlite:///{file}", "{folder}/../{name}/prod.sqlite"])
def test_a6_a_replay_never_writes_into_the_store_that_it_reads(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "app.py").write_text(_GRAPH)
    namespace: dict[str, object] = {}
    exec(_GRAPH, namespace)
    file = tmp_path / "prod.sqlite"
    build_thread(namespace["graph"], file, "t", {"messages": [("human", "hi")]})
    before = file.read_bytes()

    debug = spelling.format(file=file, folder=tmp_path, name=tmp_path.name)
    stores = ("--store", file, "--debug-store", debug)
    replayed = run_cli("replay", "t@root", *stores, "--graph", "app.py:graph", cwd=tmp_path, environ={})

    assert replayed.code == 5
    assert "only read" in replayed.err
    assert file.read_bytes() == before
