"""What a fork needs to know of a compiled graph: its nodes, channels and routes, and how to route it somewhere.

Private names and layouts of LangGraph that forks rely on are here; `tests/contract/test_graph_parts.py` fails when a
version changes them.

Source: langgraph 1.2.24, graph/state.py (`attach_node`, `_CHANNEL_BRANCH_TO`, StateNodeSpec.ends), pregel/main.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentctl.errors import Refused, UsageError
from agentctl.experiments.forking.forms import Forms
from agentctl.sandbox.graph_copies import copied
from agentctl.stores.reading.layout import BRANCH, END, START, is_state_channel

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

    Graph = Pregel[Any, Any, Any, Any]


def inner_graph(graph: Graph, path: str) -> Graph | None:
    """Returns the graph at a path of node names (`a|b`), or None where the graph does not declare one.

    A subgraph that a tool runs (a subagent) is not declared.
    """
    if not path:
        return graph
    return next((found for _, found in graph.get_subgraphs(namespace=path, recurse=True)), None)  # type: ignore[return-value]


def nodes_of(graph: Graph) -> tuple[str, ...]:
    """Returns the names of the graph's nodes."""
    return tuple(name for name in graph.nodes if name != START)


def entry_nodes(graph: Graph) -> tuple[str, ...]:
    """Returns the nodes that input always starts, sorted; those that a condition chooses are not known beforehand.

    Source: StateGraph.edges (langgraph 1.2.24, graph/state.py).
    """
    builder = getattr(graph, "builder", None)
    return tuple(sorted(end for start, end in getattr(builder, "edges", ()) if start == START and end != END))


def channels_of(graph: Graph) -> tuple[str, ...]:
    """Returns the names of the graph's state channels, managed values such as remaining steps left out."""
    from langgraph.channels.base import BaseChannel

    return tuple(
        name for name, channel in graph.channels.items() if is_state_channel(name) and isinstance(channel, BaseChannel)
    )


def is_functional(graph: Graph) -> bool:
    """Returns whether the graph is an entrypoint of the functional API, which has no routes."""
    return not any(channel.startswith(BRANCH) for channel in graph.channels)


def command_ends(graph: Graph, node: str) -> tuple[str, ...]:
    """Returns where a node declares that it may go by returning a Command; none where it has plain edges or none."""
    spec = getattr(getattr(graph, "builder", None), "nodes", {}).get(node)
    return tuple(getattr(spec, "ends", None) or ())


def handler_of(graph: Graph, node: str) -> str | None:
    """Returns the node that handles a node's errors, None where it has none.

    Source: PregelNode.error_handler_node (langgraph 1.2.24, pregel/_read.py).
    """
    found = graph.nodes.get(node)
    return found.error_handler_node if found is not None else None


def reduces(graph: Graph, channel: str) -> bool:
    """Returns whether a channel merges what is written to it, so that replacing needs an Overwrite."""
    from langgraph.channels import BinaryOperatorAggregate
    from langgraph.channels.delta import DeltaChannel

    return isinstance(graph.channels.get(channel), BinaryOperatorAggregate | DeltaChannel)


def check_names(graph: Graph, forms: Forms) -> None:
    """Refuses nodes and channels that the graph does not have.

    Raises:
        UsageError: there is one.
        Refused: the graph is functional and has no routes and no channels.
    """
    if is_functional(graph) and (forms.goto, forms.update, forms.as_node, forms.assigns) != (None, None, None, ()):
        raise Refused(
            "the graph is an entrypoint of the functional API: it has no nodes to update as or to go to, and no state"
            " but the value that it saves for its next call",
            hint="change what one of its tasks returned: --answer TASK=JSON; or what it is given: --input FILE",
        )
    nodes, channels = nodes_of(graph), channels_of(graph)
    for node in (forms.as_node, None if forms.goto in (END, None) else forms.goto):
        if node is not None and node not in nodes:
            raise UsageError(f"the graph has no node {node}", hint=f"it has: {', '.join(nodes)}")
    for channel in (*(one.channel for one in forms.assigns), *(forms.update or {})):
        if channel not in channels:
            raise UsageError(f"the graph has no channel {channel}", hint=f"it has: {', '.join(channels)}")


def going_to(graph: Graph, values: Mapping[str, object], goto: str | None) -> Graph:
    """Returns a copy of the graph whose input node writes the given values and leads to one node, and does no more.

    An update as that node starts a branch with these values and `next = goto`: routes that were due at the checkpoint
    are not taken over, because an update steps all routing channels on.
    """
    from langgraph.pregel import NodeBuilder
    from langgraph.pregel._write import ChannelWriteEntry

    entries = [ChannelWriteEntry(channel, value) for channel, value in values.items()]
    if goto is not None and goto != END:
        entries.append(ChannelWriteEntry(f"{BRANCH}{goto}", None))
    node = NodeBuilder().subscribe_only(START).write_to(*entries).build()
    return copied(graph, nodes={**graph.nodes, START: node})


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Who calls tools in a graph.

    Attributes:
        nodes: Names of the nodes that answer a model's calls (ToolNodes), at any depth.
        direct: Names of the tools that none of them has, so that only code can call them.
    """

    nodes: frozenset[str] = frozenset()
    direct: frozenset[str] = frozenset()


def tool_use(graph: Graph, known: Iterable[str] = ()) -> ToolUse:
    """Returns who calls tools in a graph.

    Args:
        graph: The graph.
        known: Names of tools that it may be given while it runs, such as those of a registry.
    """
    from agentctl.sandbox.walk import walk

    found = walk(graph)
    answered = {name for one in found.tool_nodes for name in one.node.tools_by_name}
    names = {one.tool.name for one in found.tools}.union(known)
    return ToolUse(
        nodes=frozenset(one.path.rpartition("|")[2] for one in found.tool_nodes), direct=frozenset(names - answered)
    )
