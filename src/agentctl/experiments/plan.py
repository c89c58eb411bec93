"""What a replay or a fork is about to do, told before anything is copied or run."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentctl.experiments.experiment import Experiment, recorded_configurable
from agentctl.experiments.forking.point import Point
from agentctl.records.runs import Plan, PlannedTool
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.calls import Call
from agentctl.stores.reading.layout import INTERRUPT
from agentctl.stores.reading.steps import StepReader

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.pregel import Pregel

    from agentctl.sandbox.walk import Found


def make_plan(
    experiment: Experiment,
    point: Point,
    *,
    nodes: tuple[str, ...],
    policy: Policy,
    warnings: Iterable[str] = (),
) -> Plan:
    """Returns the plan of runs that start at a point.

    Args:
        experiment: The experiment.
        point: Where the runs start.
        nodes: The nodes that start first, with their path; what follows is up to the graph.
        policy: Where answers come from.
        warnings: What to say about these runs beforehand.
    """
    from agentctl.sandbox.walk import walk

    found = walk(experiment.graph)
    recorded = recorded_configurable(point.row.metadata)
    return Plan(
        source=point.target.place,
        nodes=nodes,
        tools=tuple(_planned_tools(experiment, found, policy)),
        interrupts=tuple(dict.fromkeys((*_breakpoints(experiment), *_questions(experiment, point)))),
        configurable={**recorded, **experiment.configurable},
        model=_models(experiment, found),
        masked=experiment.masked,
        graph=experiment.graph_name,
        isolation=experiment.isolation,
        warnings=(
            *_incomplete(found),
            *_unknown_tools(experiment, found, policy),
            *warnings,
        ),
    )


def graph_tools(graph: Pregel[Any, Any, Any, Any]) -> Mapping[str, BaseTool]:
    """Returns the tools that a graph can reach, by name."""
    from agentctl.sandbox.walk import walk

    return _tools_in(walk(graph))


def _tools_in(found: Found) -> dict[str, BaseTool]:
    tools: dict[str, BaseTool] = {}
    for node in found.tool_nodes:
        tools.update(node.node.tools_by_name)
    for entry in found.tools:
        tools.setdefault(entry.tool.name, entry.tool)
    return tools


def _planned_tools(experiment: Experiment, found: Found, policy: Policy) -> Iterator[PlannedTool]:
    for name, tool in _known_tools(experiment, found).items():
        call = Call(name, {}, None, tool=tool)
        effect = policy.effect(call) or "write"
        yield PlannedTool(name, effect, ", else ".join(answer_sources(experiment.recording.names, policy, call)))


def _known_tools(experiment: Experiment, found: Found) -> Mapping[str, BaseTool | None]:
    """Returns the tools that can be called: those of the graph, then those that only the recording knows, as None."""
    tools: dict[str, BaseTool | None] = {**_tools_in(found)}
    for name in sorted(experiment.recording.names):
        tools.setdefault(name, None)
    return tools


def answer_sources(recorded: Collection[str], policy: Policy, call: Call) -> Iterator[str]:
    """Yields where a tool's answers come from, in the order asked, up to the one that always answers.

    Args:
        recorded: Names of the tools that the recording has results of.
        policy: Where answers may come from.
        call: A call of the tool.
    """
    effect = policy.effect(call) or "write"
    if policy.substitutes(call.name):
        yield "answered"
    runs_anew = policy.goes_another_way and effect == "state" and call.tool is not None
    if policy.mode == "recorded" and call.name in recorded and not runs_anew:
        yield "recorded"
    if call.name in policy.stubs:
        yield "stub"
    elif policy.registry is not None and policy.registry.answers(call.name):
        yield "state" if effect == "state" else "stub"
    elif effect == "state" and call.tool is not None:
        yield "state"
    elif policy.live_tool(call) is not None:
        yield "live"
    else:
        yield "blocked"


def _models(experiment: Experiment, found: Found) -> str:
    if experiment.models is None:
        return ", ".join(found.models) or "none found"
    answers = "1 answer" if experiment.models.n_answers == 1 else f"{experiment.models.n_answers} answers"
    return f"none, {answers} recorded in {experiment.models.thread} (keys of providers that are not set: unused)"


def _breakpoints(experiment: Experiment) -> Iterator[str]:
    for word, nodes in (
        ("before", experiment.graph.interrupt_before_nodes),
        ("after", experiment.graph.interrupt_after_nodes),
    ):
        for node in ["every node"] if nodes == "*" else nodes:
            yield f"{word} {node}"


def _questions(experiment: Experiment, point: Point) -> Iterator[str]:
    """Yields the nodes that asked something in the source thread at the target or after it."""
    target = point.target
    asked = experiment.source.writes(target.thread, target.ns, channels=[INTERRUPT], value_bytes=0)
    ids = sorted({write.checkpoint_id for write in asked if write.checkpoint_id >= target.id})
    if not ids:
        return
    for tasks in StepReader(experiment.source, target.thread, target.ns).tasks(ids).values():
        for task in tasks:
            if task.interrupts:
                yield f"{task.name} asks"


def _incomplete(found: Found) -> Iterator[str]:
    if not found.complete:
        yield "the graph is too large to be searched to its end: tools may be missing from this plan, not from the gate"


def _unknown_tools(experiment: Experiment, found: Found, policy: Policy) -> Iterator[str]:
    """Yields the names given with `--stub` or `--effect` that are no tool's: nothing may ever ask for them."""
    known = _known_tools(experiment, found)
    for flag, names in (("--stub", policy.stubs), ("--effect", policy.effects.said)):
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name, list(known), n=1)
                meant = f"; did you mean {near[0]}?" if near else ""
                yield f"{flag} {name}: no tool of the graph or the recording is called that{meant}"
