"""Replay: a checkpoint's step and all that follows it, executed again N times on copies, every tool answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agentctl.errors import Refused
from agentctl.experiments.experiment import (
    Experiment,
    Target,
    provenance,
    recorded_configurable,
    run_jobs,
)
from agentctl.experiments.fitting import check_channels, check_nodes, check_values
from agentctl.experiments.forking.enclosing import enclosing_calls
from agentctl.experiments.forking.point import Point, read_point
from agentctl.experiments.plan import graph_tools, make_plan
from agentctl.experiments.runs.debug_threads import make_copies
from agentctl.experiments.runs.graph_parts import entry_nodes, inner_graph, is_functional, nodes_of
from agentctl.experiments.runs.reports import all_side_effects, report_run, tally
from agentctl.experiments.runs.running import RunJob, node_path
from agentctl.records.copies import command
from agentctl.records.runs import ReplayReport
from agentctl.records.threads import UNKNOWN
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.calls import Call, CallKey
from agentctl.sandbox.replies import Substitute
from agentctl.stores.copying.selection import for_replay
from agentctl.stores.reading.layout import START


def replay(experiment: Experiment, target: Target, n: int = 1) -> ReplayReport:
    """Replays a checkpoint `n` times.

    The copies are debug threads `THREAD.replay-K`, made in one transaction; the source is only read. A checkpoint in a
    namespace is run from that very row, or refused.

    Raises:
        NotFound: There is no such checkpoint.
        Refused: Nothing runs from it, the graph does not fit it, or the rows cannot be run from there.
    """
    point = read_point(experiment.source, target)
    if not point.tasks:
        raise Refused(f"nothing runs from {target.id}: its next is empty", hint=_where_something_runs(point))
    check_nodes(experiment, point, point.next)
    nodes = planned_nodes(experiment, target.ns, point.next)
    base = for_replay(experiment.source, target.thread, target.ns, target.id, target.thread)
    bare = [*check_channels(experiment, point, base), *check_values(experiment, point, base)]
    facts = provenance(target, "replay", experiment.reason, case=experiment.case, masked=experiment.masked)
    policy = policy_at(experiment, target)
    plan = make_plan(experiment, point, nodes=nodes, policy=policy, warnings=[*bare, *_runs_again(point)])
    if experiment.on_plan is not None:
        experiment.on_plan(plan)
    names, copies = make_copies(experiment, experiment.source, base, target.thread, "replay", n, facts)
    jobs = [
        RunJob(
            thread=name,
            start=base.run_from,
            expected=nodes,
            configurable={**recorded_configurable(point.row.metadata), **experiment.configurable},
            metadata=facts,
            answers=experiment.answers,
        )
        for name in names
    ]
    ended = run_jobs(experiment, jobs, policy=policy, after=target.id)
    runs = [report_run(run, experiment.check) for run in ended]
    return ReplayReport(
        source=target.place,
        plan=plan,
        copies=copies,
        group=tally(runs),
        side_effects=all_side_effects(runs),
        case=experiment.case,
        warnings=plan.warnings,
    )


def planned_nodes(experiment: Experiment, ns: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """Returns the nodes that really start where `nodes` are next, with the path of their namespace.

    Where input is about to be read that is not a node of the application: its entry nodes stand in its place. Where
    nothing is left in a namespace, the node around it takes its end and goes on.
    """
    above = node_path(ns)
    if above and not nodes:
        return (above,)
    graph = inner_graph(experiment.graph, above)
    if START in nodes and graph is not None:
        entries = nodes_of(graph) if is_functional(graph) else entry_nodes(graph)
        nodes = [*(node for node in nodes if node != START), *entries]
    return tuple(f"{above}|{name}" if above else name for name in nodes if name not in (START, UNKNOWN))


def policy_at(
    experiment: Experiment, target: Target, substituted: Mapping[CallKey, Substitute] | None = None
) -> Policy:
    """Returns the policy for runs from a target: a call in which it lies is never answered, or it would be skipped."""
    policy = replace(experiment.policy, substituted={**experiment.policy.substituted, **(substituted or {})})
    if not target.ns:
        return policy
    tools = graph_tools(experiment.graph)

    def is_state(name: str) -> bool:
        return policy.effect(Call(name, {}, None, tool=tools.get(name))) == "state"

    inside = enclosing_calls(experiment.source, target, is_state)
    return replace(policy, enclosing=policy.enclosing | inside)


def _runs_again(point: Point) -> Iterator[str]:
    """Yields what to know about tasks that had already finished in the source."""
    done = [task.name for task in point.tasks if task.finished]
    if done and point.unfinished:
        yield f"finished in the source, and run again here: {', '.join(done)}"


def _where_something_runs(point: Point) -> str:
    if point.row.parent:
        return "its parent may: " + command("replay", replace(point.target, id=point.row.parent).place.target)
    return "what runs next from where: " + command("history", replace(point.target.place, id=None).target)
