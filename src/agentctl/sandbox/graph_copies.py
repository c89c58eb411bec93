"""Copies of a compiled graph with something replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

    Graph = Pregel[Any, Any, Any, Any]


def copied(graph: Graph, **changes: object) -> Graph:
    """Returns a copy of a graph that loads the same types as the graph itself.

    With LANGGRAPH_STRICT_MSGPACK a compiled graph allows the types of its own state, and `Pregel.copy` leaves that list
    behind: the copy would be given an application's models as bare dicts.

    Source: `Pregel.copy` and `_serde_allowlist` (langgraph 1.2.24, pregel/main.py, graph/state.py).

    Args:
        graph: A compiled graph.
        changes: What to replace: `checkpointer`, `store`, `cache`, `nodes`.
    """
    copy = graph.copy(update=changes)
    copy._serde_allowlist = graph._serde_allowlist
    return copy
