"""`agentctl diagnose`: is it reproducible, does the correction cure it, and what was the cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.experimenting import (
    choose_graph,
    exit_code,
    experiment,
    kept_options,
    read_forms,
    resolve_for_forms,
)
from agentctl.cli.grouped import FormOptions, RunOptions, Where, expanded
from agentctl.cli.masking import MaskWish
from agentctl.cli.opening import open_target
from agentctl.cli.output import Answer, emit
from agentctl.cli.viewing import workflow_view
from agentctl.render import run_documents
from agentctl.render import runs as rendering


@expanded
def diagnose(
    ctx: typer.Context,
    target: options.Target,
    forms: FormOptions,
    chosen: RunOptions,
    where: Where,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, max=1000, help="Replays, and as many fork runs.")] = 5,
    trust_rest: Annotated[
        bool, typer.Option("--trust-rest", help="The other recorded results of the turn were checked: they are right.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Copy, replay N times, fork with what you correct, compare, and give a verdict: one command.

    TARGET without @REV is the checkpoint where the corrected call waits, else the start of the last turn.

    Example: agentctl diagnose prod::support-17 --check 'reply contains no refund' --patch lookup_order:status='"lost"'

    JSON: agentctl.diagnose/1 {source, check, replays, forks, p_value, verdict, cause, faithfulness, commands,
    side_effects}.

    Exit: 0 a verdict, 1 inconclusive, 5 refused or escaped, 3 no such thread, checkpoint or call.
    """
    env = ctx.obj
    with open_target(env, target, where, mask=MaskWish(chosen.mask)) as opened:
        from agentctl.experiments.works import Diagnosis

        parsed = read_forms(opened, forms, chosen)
        found, notes = resolve_for_forms(opened, parsed, to_run=True)
        view = workflow_view(choose_graph(opened, found, chosen).workflow)
        with experiment(opened, found, chosen, "diagnosis") as under:
            work = Diagnosis(
                None if parsed.op in ("rerun", "resume") else parsed,
                n=n,
                trust_rest=trust_rest,
                branch=opened.branch_id(found.ns),
                options=tuple(kept_options(chosen)),
                notes=notes,
                view=view,
            )
            report = under.bench.do(work)
            report = replace(
                report,
                commands=tuple(env.pasteable(command) for command in report.commands),
                masking=opened.mask_report(),
            )
            document = run_documents.diagnose_document(report)
            groups = [("replay", report.replays.group), *([("fork", report.fork.group)] if report.fork else [])]
            under.evidence.keep("diagnose", report.source, groups, under.bench.recording, document)
        emit(
            env,
            Answer(
                human=lambda width: rendering.diagnose_human(report, width),
                plain=lambda: rendering.diagnose_plain(report),
                document=lambda: document,
            ),
        )
    if report.side_effects.escaped:
        raise typer.Exit(exit_code([], report.side_effects))
    raise typer.Exit(1 if report.verdict.name == "inconclusive" else 0)
