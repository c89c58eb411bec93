"""Threads made by running a graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


def build_thread(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    database: Path,
    thread: str,
    *inputs: object,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Runs a graph on a SQLite checkpoint file, once an input, in one thread.

    Args:
        graph: A compiled graph; its checkpointer is replaced.
        database: The SQLite file, created where it is missing.
        thread: Thread id.
        inputs: State updates, `Command`s, or None to go on.
        metadata: Kept with every checkpoint.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    from agentctl.sandbox.graph_copies import copied

    with SqliteSaver.from_conn_string(str(database)) as saver:
        bound = copied(graph, checkpointer=saver)
        config: Any = {"configurable": {"thread_id": thread}, "metadata": dict(metadata or {})}
        for value in inputs:
            bound.invoke(value, config, durability="sync")
