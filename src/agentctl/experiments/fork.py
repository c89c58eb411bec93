"""Fork: a checkpoint with something changed, made once, copied N times and run, every tool answered."""

from __future__ import annotations

from collections.abc import Sequence
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
from agentctl.experiments.forking.forms import Forms
from agentctl.experiments.forking.made import Made
from agentctl.experiments.forking.making import make_fork
from agentctl.experiments.forking.making_update import as_nodes_with_next
from agentctl.experiments.forking.point import Point, read_point
from agentctl.experiments.forking.retold import retold_places
from agentctl.experiments.plan import make_plan
from agentctl.experiments.replay import planned_nodes, policy_at
from agentctl.experiments.runs.debug_threads import make_copies
from agentctl.experiments.runs.graph_parts import is_functional
from agentctl.experiments.runs.reports import all_side_effects, report_run, tally
from agentctl.experiments.runs.running import Ended, RunJob
from agentctl.records.rows import MemoryItem
from agentctl.records.runs import ForkReport
from agentctl.stores.base import CopyPlan, RowPick


def fork(experiment: Experiment, target: Target, forms: Forms, n: int = 1, *, run: bool = True) -> ForkReport:
    """Forks a checkpoint with all forms applied at once, and runs it `n` times.

    The copies are debug threads `THREAD.fork-K`, made in one transaction after the fork was checked; the source is only
    read. Where it came from, what was done and why are in the metadata of the forked checkpoint and of all later ones.

    Args:
        experiment: The experiment.
        target: The checkpoint.
        forms: What to change; nothing is a rerun.
        n: How many runs.
        run: False leaves one fork ready and runs nothing.

    Raises:
        UsageError: A form names a node, channel or field that is not there.
        NotFound: The checkpoint or a call does not exist.
        Ambiguous: A form names several calls.
        Refused: The fork would not mean what it says, nothing would run, or `run` is False for a result that only a
            run can give.
    """
    _refuse_other_memory(experiment, forms)
    experiment = _with_memory(experiment, forms)
    point = read_point(experiment.source, target)
    bare = _check_target(experiment, point, forms)
    with make_fork(experiment, point, forms) as made:
        dropped = _check_made(experiment, point, forms, made)
        if run:
            _refuse_nothing_next(experiment, target, forms, made)
        else:
            _refuse_at_rest(made)
        policy = replace(
            policy_at(experiment, target, made.substituted),
            in_step=made.in_step,
            other_state=forms.changes_state,
            retold=retold_places(point, made),
        )
        nodes = planned_nodes(experiment, target.ns, made.next)
        plan = make_plan(experiment, point, nodes=nodes, policy=policy, warnings=[*dropped, *bare, *made.warnings])
        if experiment.on_plan is not None:
            experiment.on_plan(plan)
        facts = provenance(
            target,
            forms.op,
            experiment.reason,
            as_node=made.as_node,
            case=experiment.case,
            masked=experiment.masked,
        )
        n_threads = n if run else 1
        names, copies = make_copies(experiment, made.reader, made.plan, target.thread, "fork", n_threads, facts)
    ended: Sequence[Ended] = ()
    if run:
        jobs = [_job(experiment, point, forms, made, name, facts) for name in names]
        ended = run_jobs(experiment, jobs, policy=policy, after=target.id, kept=made.kept)
        ended = [_as_evidence(one, made) for one in ended]
    runs = [report_run(one, experiment.check, forced_end=False) for one in ended]
    return ForkReport(
        source=target.place,
        target=experiment.debug.place(names[0], made.id),
        plan=plan,
        copies=tuple(replace(one, source=target.place) for one in copies),
        as_node=made.as_node,
        next=made.next,
        answered=made.answered,
        group=tally(runs),
        side_effects=all_side_effects(runs),
        case=experiment.case,
        warnings=plan.warnings,
    )


def _check_target(experiment: Experiment, point: Point, forms: Forms) -> list[str]:
    """Refuses a graph that does not fit the target, but for what the forms replace: next nodes, whole channels."""
    if not _leads_elsewhere(forms):
        check_nodes(experiment, point, [task.name for task in point.unfinished])
    target = point.target
    row = CopyPlan(target.thread, target.thread, (RowPick(target.ns, target.id, writes="null_task"),))
    return check_values(experiment, point, row, replaced=_replaced(forms))


def _check_made(experiment: Experiment, point: Point, forms: Forms, made: Made) -> list[str]:
    """Refuses a graph that does not fit what else a fork begins with: what runs in it, results and namespaces kept.

    Returns what to know of the values that it goes on without.
    """
    if not _leads_elsewhere(forms):
        check_nodes(experiment, point, made.next)
    dropped = check_channels(experiment, point, made.plan, reader=made.reader)
    if made.plan is not None:
        others = tuple(pick for pick in made.plan.picks if _is_unchecked(pick, experiment, point, made))
        plan = replace(made.plan, picks=others)
        check_values(experiment, point, plan, reader=made.reader, replaced=_replaced(forms))
    return dropped


def _is_unchecked(pick: RowPick, experiment: Experiment, point: Point, made: Made) -> bool:
    is_target = (pick.ns, pick.id) == (point.target.ns, point.target.id)
    return not is_target or pick.writes != "null_task" or made.reader is not experiment.source


def _replaced(forms: Forms) -> frozenset[str]:
    return frozenset(form.channel for form in forms.assigns if len(form.path) == 1)


def _leads_elsewhere(forms: Forms) -> bool:
    """Whether what is due at the target does not run."""
    return forms.goto is not None or forms.as_node is not None or forms.new_input is not None


def _job(experiment: Experiment, point: Point, forms: Forms, made: Made, name: str, facts: dict[str, str]) -> RunJob:
    return RunJob(
        thread=name,
        start=made.plan.run_from if made.plan else None,
        payload=made.payload,
        expected=planned_nodes(experiment, point.target.ns, made.next),
        configurable={**recorded_configurable(point.row.metadata), **experiment.configurable},
        metadata=facts,
        answers=forms.resume or experiment.answers,
    )


def _refuse_other_memory(experiment: Experiment, forms: Forms) -> None:
    """Refuses a changed memory with recorded model answers: no state tells which nodes read it.

    Raises:
        Refused: Both are given.
    """
    if experiment.models is not None and forms.memory:
        raise Refused(
            "--memory changes what nodes may put into their prompts, and --model recorded has the answers to those that"
            " were asked",
            hint="leave --model recorded out, or name a model: --model PROVIDER:NAME",
        )


def _with_memory(experiment: Experiment, forms: Forms) -> Experiment:
    """Returns the experiment with the memory items that the forms give in place of those with the same key."""
    if not forms.memory:
        return experiment
    items = experiment.source.memory() if experiment.memory is None else experiment.memory
    merged = {(item.namespace, item.key): item for item in items}
    for form in forms.memory:
        merged[form.namespace, form.key] = MemoryItem(form.namespace, form.key, form.value)
    return replace(experiment, memory=tuple(merged.values()))


def _as_evidence(ended: Ended, made: Made) -> Ended:
    """Returns how a run ended: one that never asked for a changed result says nothing about it."""
    asked = {call.name for call in ended.tool_calls if call.served_by == "answered"}
    never = [name for name in dict.fromkeys(made.asks) if name not in asked]
    if ended.status != "done" or not never:
        return ended
    return replace(ended, status="not_run", error=f"was never asked for its new result: {', '.join(never)}")


def _refuse_at_rest(made: Made) -> None:
    """Refuses to leave a fork ready whose change is made while it runs.

    Raises:
        Refused: It is such a fork.
    """
    if not made.asks:
        return
    node = made.as_node or " or ".join(dict.fromkeys(made.next))
    raise Refused(
        f"{', '.join(dict.fromkeys(made.asks))}: the new result is given while {node} runs, so a fork at rest cannot"
        " hold it",
        hint="leave --no-run out, and go on from the thread that the run leaves; or give the node's whole result: "
        f"--update FILE --as-node {node}",
    )


def _refuse_nothing_next(experiment: Experiment, target: Target, forms: Forms, made: Made) -> None:
    """Refuses to run a fork from which nothing runs, naming what would go on.

    Where nothing is left in a namespace, the graph around it goes on.

    Raises:
        Refused: Its next is empty.
    """
    if made.next or made.payload is not None or target.ns:
        return
    going_on = as_nodes_with_next(experiment, target, forms.update or {})
    table = "; ".join(f"--as-node {node}: {', '.join(n)}" for node, n in going_on.items())
    ways = [f"next would be, with {table}"] if table else []
    if is_functional(experiment.graph):
        ways.append("call it again: --input FILE")
    else:
        ways.append(f"say where {forms.as_node} leads: --goto NODE" if forms.as_node else "say what runs: --goto NODE")
    raise Refused(
        f"nothing would run: the fork's next is empty{f' after {made.as_node}' if made.as_node else ''}",
        hint="; ".join((*ways, "or leave it ready without a run: --no-run")),
        candidates=[{"as_node": node, "next": list(then)} for node, then in going_on.items()],
    )
