"""A graph of two nodes in a file of its own, and a thread of it in a SQLite store."""

from __future__ import annotations

import runpy
from pathlib import Path

CODE = """
from typing import Any, TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    note: Any
    other: str

graph = (
    StateGraph(State)
    .add_node("first", lambda state: {"note": "said"})
    .add_node("second", lambda state: {"other": "done"})
    .add_edge(START, "first")
    .add_edge("first", "second")
    .compile()
)
"""


def graph_file(folder: Path) -> str:
    """Writes the graph; returns what `--graph` takes."""
    (folder / "small_app.py").write_text(CODE)
    return "small_app.py:graph"


def small_thread(folder: Path) -> Path:
    """Returns the file of a store with the thread `t`, which ran to its end."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    graph_file(folder)
    with SqliteSaver.from_conn_string(str(folder / "small.sqlite")) as saver:
        graph = runpy.run_path(str(folder / "small_app.py"))["graph"].builder.compile(checkpointer=saver)
        graph.invoke({"note": "asked"}, {"configurable": {"thread_id": "t"}}, durability="sync")
    return folder / "small.sqlite"
