"""What waits at joins and deferred nodes, where rows were made from states that do not tell it.

A node behind `add_edge([a, b], c)` runs when a and b have. That one of them has, an Agent Server does not state, nor
that a deferred node was asked for. A run from there would never come to that node, without an error, so it is refused.

Source: langgraph 1.2.24, graph/state.py (`attach_edge`, `attach_node`), channels/named_barrier_value.py,
channels/last_value.py (`LastValueAfterFinish`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentctl.errors import Refused
from agentctl.records.copies import command
from agentctl.records.rows import StoredCheckpoint, Version
from agentctl.stores.base import StoreInfo
from agentctl.stores.copying.lacks import is_made
from agentctl.stores.reading.layout import BRANCH, JOIN, triggered_node

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

Seen = Mapping[str, Mapping[str, Version]]


def check_waits(info: StoreInfo, checkpoint: StoredCheckpoint, graph: Pregel[Any, Any, Any, Any]) -> None:
    """Refuses to run from a made row at which a node of the graph may wait for others.

    Args:
        info: The store it is in, for the hint.
        checkpoint: The row, with its routing channels.
        graph: The graph of its namespace.

    Raises:
        Refused: There is such a node; the message names it.
    """
    if not is_made(checkpoint.row):
        return
    for node, ran in _waiting(graph, checkpoint):
        row = checkpoint.row
        raise Refused(
            f"checkpoint {row.id} came from an Agent Server, which does not state whether {node} waits for others after"
            f" {', '.join(ran)}: a run from it could miss {node}",
            hint=command("replay", f"{info.target(row.thread)}@before:{ran[0]}"),
        )


def _waiting(graph: Pregel[Any, Any, Any, Any], checkpoint: StoredCheckpoint) -> Iterator[tuple[str, list[str]]]:
    """Yields nodes that may wait, each with those that have run for it."""
    seen = checkpoint.versions_seen
    for channel, kept in graph.channels.items():
        node = triggered_node(channel)
        if node is None or BRANCH + node in checkpoint.values:
            continue
        if channel.startswith(JOIN):
            names: Collection[str] = getattr(kept, "names", ())
            ran = _ran_since(node, names, seen)
            if ran and len(ran) < len(names):
                yield node, ran
        elif type(kept).__name__ == "LastValueAfterFinish" and (ran := _ran_since(node, _before(graph, node), seen)):
            yield node, ran


def _ran_since(node: str, names: Collection[str], seen: Seen) -> list[str]:
    """Returns which nodes have run since another one did."""
    last = _last(seen, node)
    return [name for name in sorted(names) if name in seen and (last == "" or _last(seen, name) >= last)]


def _last(seen: Seen, node: str) -> str:
    """Returns the version that a node's triggers had when it ran last, as text that sorts; '' where it has not."""
    return max((str(version) for version in seen.get(node, {}).values()), default="")


def _before(graph: Pregel[Any, Any, Any, Any], node: str) -> list[str]:
    """Returns the nodes that an edge or a branch may lead from to a node."""
    builder: Any = getattr(graph, "builder", None)
    if builder is None:
        return []
    edges = [start for start, end in builder.edges if end == node]
    branches = [
        start
        for start, specs in builder.branches.items()
        if any(spec.ends is None or node in spec.ends.values() for spec in specs.values())
    ]
    return [*edges, *branches]
