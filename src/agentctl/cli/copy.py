"""`agentctl copy`: a thread, or what leads to a checkpoint, into another store."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, get_args

import typer

from agentctl.cli import options
from agentctl.cli.experimenting import target_store
from agentctl.cli.grouped import Where, expanded
from agentctl.cli.masking import MaskWish
from agentctl.cli.opening import Opened, open_target
from agentctl.cli.output import Answer, emit, progress, say
from agentctl.errors import UsageError
from agentctl.records.copies import CopyReport, Scope
from agentctl.render import run_documents
from agentctl.render import runs as rendering
from agentctl.render.masking import mask_counts
from agentctl.stores.base import Reader

SCOPES: tuple[Scope, ...] = get_args(Scope)


@expanded
def copy(
    ctx: typer.Context,
    target: options.Target,
    where: Where,
    to: options.To = None,
    as_thread: Annotated[
        str | None, typer.Option("--as", metavar="THREAD", help="The new thread's id; THREAD.copy-N without it.")
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            "--only", metavar="lineage|all|point", help="The parent chain, the whole thread, or the least that runs."
        ),
    ] = "lineage",
    mask: options.Mask = None,
    reason: options.Reason = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Copy checkpoints into a new thread, ids kept, in one transaction, and read them back to compare.

    What the target cannot hold is found before anything is written. With --mask the copy holds tokens in place of
    personal data, and is compared with what the source is when masked.

    Example: agentctl copy prod::support-17 --to postgresql://localhost/debug --only all

    JSON: agentctl.copy/1 {source, target, n_checkpoints, n_writes, n_blobs, n_bytes, verified, masked, masking}.

    Exit: 0 done, 3 no such checkpoint, 4 a store cannot be opened, 5 the target exists or cannot hold a value.
    """
    env = ctx.obj
    scope = next((known for known in SCOPES if known == only), None)
    if scope is None:
        raise UsageError(f"--only {only}", hint="one of: " + ", ".join(SCOPES))
    with open_target(env, target, where, mask=MaskWish(mask, keeps_key=not dry_run)) as opened:
        report = _copy(opened, to, as_thread, scope, reason, dry_run)
        if not env.is_terminal:
            for text in report.warnings:
                say(env, f"warning: {text}")
        emit(
            env,
            Answer(
                human=lambda width: rendering.copy_human(report, width, env.pasteable),
                plain=lambda: [
                    (
                        report.target.target,
                        report.n_checkpoints,
                        report.n_writes,
                        report.n_blobs,
                        report.n_bytes,
                        str(report.verified).lower(),
                        str(report.masked).lower(),
                        mask_counts(report.masking),
                    )
                ],
                document=lambda: run_documents.copy_document(report),
            ),
        )


def _copy(
    opened: Opened, to: str | None, as_thread: str | None, scope: Scope, reason: str | None, dry_run: bool
) -> CopyReport:
    from agentctl.experiments.experiment import Target, provenance
    from agentctl.experiments.runs.debug_threads import free_names
    from agentctl.stores.copying.execute import copy as run_copy
    from agentctl.stores.copying.selection import for_copy
    from agentctl.stores.copying.stated_rows import as_rows
    from agentctl.stores.moments import at_a_moment_that_lasts

    found = opened.resolve()
    if as_thread is None:
        opened.require_nameless()
    with target_store(opened, to) as (writer, choice):
        name = as_thread or free_names(writer, opened.thread, "copy", 1)[0]
        info = opened.reader.info
        source = Target(opened.shown(opened.thread), found.id, found.ns, info.url, info.profile)

        def copied(still: Reader) -> CopyReport:
            plan = replace(
                for_copy(still, opened.thread, found.ns, found.id, scope, name),
                provenance=provenance(source, f"copy {scope}", reason or "", masked=opened.is_masked),
            )
            (report,) = run_copy(still, writer, [plan], dry_run=dry_run, on_progress=progress(opened.env, "copying"))
            return report

        report = at_a_moment_that_lasts(as_rows(opened.reader), [opened.thread], copied)
        return replace(
            report,
            source=source.place,
            target=replace(report.target, profile=choice.profile),
            masking=opened.mask_report(),
        )
