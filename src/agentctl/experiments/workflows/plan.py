"""What `run` and `resume` are about to do, told before they do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from agentctl.experiments.plan import answer_sources, graph_tools
from agentctl.experiments.workflows.runs import PRODUCTION, Workflow
from agentctl.records.copies import Place
from agentctl.records.runs import Plan, PlannedTool
from agentctl.sandbox.calls import Call

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

REAL: Final = "the real tool"


def plan_workflow(
    workflow: Workflow,
    place: Place,
    nodes: tuple[str, ...],
    configurable: Mapping[str, object],
    *,
    masked: bool = False,
) -> Plan:
    """Returns the plan of a run.

    Args:
        workflow: The workflow.
        place: The thread, with its head where it has one.
        nodes: The nodes that start first; what follows is up to the graph.
        configurable: Configuration in force, the recorded one included.
        masked: Whether the thread is a masked copy, or was made from one.
    """
    from agentctl.sandbox.walk import walk

    found = walk(workflow.graph)
    tools = graph_tools(workflow.graph)
    return Plan(
        source=place,
        nodes=nodes,
        tools=tuple(_planned(workflow, name, tool) for name, tool in tools.items()),
        interrupts=tuple(_breakpoints(workflow)),
        configurable=configurable,
        model=", ".join(found.models) or "none found",
        masked=masked,
        graph=workflow.name,
        isolation="none: tools are real" if workflow.tools == PRODUCTION else "in-process gate",
    )


def _planned(workflow: Workflow, name: str, tool: BaseTool) -> PlannedTool:
    call = Call(name, {}, None, tool=tool)
    effect = workflow.policy.effect(call) or "write"
    if workflow.tools == PRODUCTION:
        return PlannedTool(name, effect, REAL)
    return PlannedTool(name, effect, ", else ".join(answer_sources((), workflow.policy, call)))


def _breakpoints(workflow: Workflow) -> Iterator[str]:
    graph = workflow.graph
    for word, nodes in (("before", graph.interrupt_before_nodes), ("after", graph.interrupt_after_nodes)):
        yield from (f"{word} {node}" for node in (["every node"] if nodes == "*" else nodes))
