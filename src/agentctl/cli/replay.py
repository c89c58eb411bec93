"""`agentctl replay`: run from a checkpoint again, N times, on copies."""

from __future__ import annotations

from dataclasses import replace

import typer

from agentctl.cli import options
from agentctl.cli.experimenting import exit_code, experiment
from agentctl.cli.grouped import RunOptions, Runs, Where, expanded
from agentctl.cli.masking import MaskWish
from agentctl.cli.opening import open_target
from agentctl.cli.output import Answer, emit
from agentctl.render import run_documents
from agentctl.render import runs as rendering


@expanded
def replay(
    ctx: typer.Context,
    target: options.Target,
    chosen: RunOptions,
    where: Where,
    n: Runs = 1,
    as_json: options.Json = False,
) -> None:
    """Run a checkpoint's step and all that follows again, on copies: every node after it executes, no tool does.

    Tool calls are answered from the thread's own recording, then from the sandbox; a call without an answer stops the
    run there. The plan is printed before anything runs.

    Example: agentctl replay prod::support-17@before:tools -n 5 --check 'reply contains no refund'

    JSON: agentctl.replay/1 {source, plan, runs, n, n_failed, n_undecided, interval, side_effects}.

    Exit: 0 done, 1 the check failed, 5 blocked or refused, 6 the graph raised.
    """
    env = ctx.obj
    with open_target(env, target, where, mask=MaskWish(chosen.mask)) as opened:
        from agentctl.experiments.works import Replays

        with experiment(opened, opened.resolve(), chosen, "replay") as under:
            report = replace(under.bench.do(Replays(n)), masking=opened.mask_report())
            document = run_documents.replay_document(report)
            under.evidence.keep("replay", report.source, [("replay", report.group)], under.bench.recording, document)
        emit(
            env,
            Answer(
                human=lambda width: rendering.replay_human(report, width, env.pasteable, checked=bool(chosen.check)),
                plain=lambda: rendering.run_plain(report.group, report.copies[0].target.profile),
                document=lambda: document,
            ),
        )
    raise typer.Exit(exit_code([report.group], report.side_effects))
