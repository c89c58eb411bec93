"""Diagnosis: replays, a fork, the difference between them, and the verdict with its evidence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from agentctl.experiments.comparing.diff import diff_tips, read_tip
from agentctl.experiments.comparing.turn import recorded_results, untried
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import Forms
from agentctl.experiments.forking.paths import path_text
from agentctl.experiments.judging.faithfulness import faithfulness
from agentctl.experiments.judging.verdict import Evidence, decide
from agentctl.experiments.prepare import seen_tip
from agentctl.experiments.replay import replay
from agentctl.records.copies import Place, command
from agentctl.records.diffs import Diff
from agentctl.records.runs import (
    DiagnoseReport,
    ForkReport,
    ReplayReport,
    RunGroup,
    RunReport,
    SideEffects,
    Substitution,
    Verdict,
)
from agentctl.records.views import View


def diagnose(
    experiment: Experiment,
    target: Target,
    forms: Forms | None,
    *,
    n: int = 5,
    trust_rest: bool = False,
    branch: str | None = None,
    options: Sequence[str] = (),
    notes: Sequence[str] = (),
    view: View | None = None,
) -> DiagnoseReport:
    """Replays a checkpoint `n` times, forks it `n` times where something is to be changed, and decides.

    Args:
        experiment: The experiment.
        target: The checkpoint.
        forms: What the fork changes, or None for replays alone.
        n: Runs of each.
        trust_rest: The other recorded results of the turn were checked by a person.
        branch: Tip of the branch that went wrong; None for the one that the customer saw.
        options: Options of the command line that the next commands repeat, such as `--check TEXT`.
        notes: What the reader should know beforehand.
        view: In which words of the workflow the difference is told too, or None.

    Raises:
        Refused: see `replay` and `fork`.
    """
    replays = replay(experiment, target, n)
    forked = fork(replace(experiment, on_plan=None), target, forms, n) if forms is not None else None
    substitutions = substituted(forms, forked) if forms is not None and forked is not None else ()
    evidence = Evidence(
        replays=replays.group,
        forks=forked.group if forked else None,
        substitutions=substitutions,
        fields=changed_fields(forms, forked) if forms is not None and forked is not None else (),
        untried=untried(
            recorded_results(
                experiment.source, target.thread, branch or seen_tip(experiment.source, target), target.id
            ),
            {change.call[1] for change in substitutions if change.call},
            thread=replace(target.place, id=None).target,
            rest=options,
        ),
        trust_rest=trust_rest,
        has_check=experiment.check is not None,
    )
    verdict = decide(evidence)
    difference = _difference(experiment, replays, forked, view)
    told = (*notes, *replays.warnings, *(forked.warnings if forked else ()))
    row = experiment.source.rows(target.thread, target.ns, ids=[target.id])[0]
    return DiagnoseReport(
        source=target.place,
        check=experiment.check.text if experiment.check else None,
        replays=replays,
        fork=forked,
        diff=difference,
        verdict=verdict,
        faithfulness=faithfulness(experiment, target, row, replays.group),
        commands=_next_commands(verdict, forked, replays),
        side_effects=_together(replays.side_effects, forked.side_effects if forked else None),
        case=experiment.case,
        warnings=tuple(dict.fromkeys((*told, *(difference.view_problems if difference else ())))),
    )


def substituted(forms: Forms, forked: ForkReport) -> tuple[Substitution, ...]:
    """Returns what the fork changed: calls with their ids, or the paths and nodes that it set."""
    calls = [
        Substitution(entry.form, (entry.name, entry.id), None)
        for entry in forked.answered
        if entry.how == "substituted"
    ]
    others = [Substitution(form.form, None, path_text(form.path)) for form in forms.assigns]
    others += [Substitution(form.form, None, "/".join((*form.namespace, form.key))) for form in forms.memory]
    if forms.update is not None:
        others.append(Substitution(forms.update_form, None, ", ".join(forms.update)))
    if forms.new_input is not None:
        others.append(Substitution(forms.new_input.form, None, "input"))
    if forms.goto is not None:
        others.append(Substitution(f"--goto {forms.goto}", None, forms.goto))
    return (*calls, *others)


def changed_fields(forms: Forms, forked: ForkReport) -> tuple[str, ...]:
    """Returns the changed paths: those inside results, then those of state and memory."""
    inside = [path for entry in forked.answered if entry.how == "substituted" for path, _, _ in entry.fields]
    return (*inside, *(change.path or "" for change in substituted(forms, forked) if change.call is None))


def _difference(
    experiment: Experiment, replays: ReplayReport, forked: ForkReport | None, view: View | None
) -> Diff | None:
    """Returns the difference between a typical replay and a typical fork run: the first of the larger part of each."""
    if forked is None:
        return None
    left, right = _typical(replays.group), _typical(forked.group)
    if left is None or right is None or left.head is None or right.head is None:
        return None
    store = experiment.debug.writer
    ends = [read_tip(store, run.thread, run.head) for run in (left, right) if run.head]
    named = [replace(end, place=replace(end.place, profile=experiment.debug.profile)) for end in ends]
    found = diff_tips(named[0], named[1])
    if view is None:
        return found
    from agentctl.experiments.comparing.views import in_words

    return in_words(found, named[0], named[1], view)


def _typical(group: RunGroup) -> RunReport | None:
    most = group.n_failed * 2 >= group.n
    decided = [run for run in group.runs if run.failed is most]
    ended = [run for run in group.runs if run.status == "done"]
    return next(iter(decided or ended or group.runs), None)


def _next_commands(verdict: Verdict, forked: ForkReport | None, replays: ReplayReport) -> tuple[str, ...]:
    if verdict.commands:
        return verdict.commands
    if verdict.name in ("tool_data", "state", "routing") and forked is not None:
        fixed = next((run for run in forked.group.runs if run.failed is False), None)
        if fixed is not None:
            target = f"{forked.target.profile}::{fixed.thread}" if forked.target.profile else fixed.thread
            dataset = ["agentctl", "export", target, "--dataset", "regressions", "--format", "jsonl"]
            return (shlex.join(dataset),)
    runs = (*(forked.group.runs if forked else ()), *replays.group.runs)
    if not runs:
        return ()
    place = forked.target if forked and forked.group.runs else replays.copies[0].target if replays.copies else None
    first = Place("", runs[0].thread, None, place.profile if place else "debug")
    return (command("history", first.target),)


def _together(left: SideEffects, right: SideEffects | None) -> SideEffects:
    if right is None:
        return left
    return SideEffects(
        left.recorded + right.recorded,
        left.stubbed + right.stubbed,
        left.live + right.live,
        left.blocked + right.blocked,
        left.escaped + right.escaped,
    )
