"""`agentctl fork`: a branch with one thing changed, on a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.experimenting import exit_code, experiment, read_forms, resolve_for_forms
from agentctl.cli.grouped import FormOptions, RunOptions, Runs, Where, expanded
from agentctl.cli.masking import MaskWish
from agentctl.cli.opening import open_target
from agentctl.cli.output import Answer, emit
from agentctl.render import run_documents
from agentctl.render import runs as rendering


@expanded
def fork(
    ctx: typer.Context,
    target: options.Target,
    forms: FormOptions,
    chosen: RunOptions,
    where: Where,
    n: Runs = 1,
    no_run: Annotated[bool, typer.Option("--no-run", help="Make the fork and leave it ready; run nothing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Start a branch from a checkpoint with something changed, in a new debug thread, and run it.

    The source stays as it is: its rows, its head, its other branches. TARGET without @REV is the checkpoint where the
    call of --answer or --patch waits.

    Example: agentctl fork prod::support-17 --answer lookup_order=@result.json

    JSON: agentctl.fork/1 {source, target, as_node, next, answered, runs, n, n_failed, n_undecided, interval,
    side_effects}.

    Exit: 0 done, 1 the check failed, 2 no such node or channel, 5 blocked or refused, 6 the graph raised.
    """
    env = ctx.obj
    with open_target(env, target, where, mask=MaskWish(chosen.mask)) as opened:
        from agentctl.experiments.works import ForkRuns

        parsed = read_forms(opened, forms, chosen)
        found, _ = resolve_for_forms(opened, parsed, to_run=False)
        with experiment(opened, found, chosen, "fork") as under:
            report = replace(under.bench.do(ForkRuns(parsed, n, run=not no_run)), masking=opened.mask_report())
            document = run_documents.fork_document(report)
            under.evidence.keep("fork", report.source, [("fork", report.group)], under.bench.recording, document)
        emit(
            env,
            Answer(
                human=lambda width: rendering.fork_human(report, width, env.pasteable, checked=bool(chosen.check)),
                plain=lambda: [(report.target.target,), *rendering.run_plain(report.group, report.target.profile)],
                document=lambda: document,
            ),
        )
    raise typer.Exit(exit_code([report.group], report.side_effects))
