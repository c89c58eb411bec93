"""`agentctl case`: the evidence of an investigation."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.output import Answer, emit
from agentctl.config.debug import sqlite_file
from agentctl.config.load import Config, load_config
from agentctl.errors import Refused
from agentctl.records.cases import CaseView, DebugThread
from agentctl.records.copies import command
from agentctl.render import cases as rendering

app = typer.Typer(help="Open, list, show and close cases: every run and call of an investigation, as plain files.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The case's name.")]


@app.command("open")
def open_case(
    ctx: typer.Context,
    name: Name,
    reason: options.Reason = None,
    debug_store: options.DebugStore = None,
    as_json: options.Json = False,
) -> None:
    """Open a case, or reopen one that was closed; give it to commands with --case NAME.

    Example: agentctl case open INC-31 --reason 'refund refused'

    JSON: agentctl.case/1 {case, folder, state, reason, conclusion, n_runs, n_calls, n_escaped, threads, reports}.
    """
    env: Env = ctx.obj
    from agentctl.casebook.cases import open_case as run_open
    from agentctl.casebook.cases import show_case as run_show

    _, root = _root(env, debug_store)
    run_open(root, name, now=env.now(), reason=reason or "")
    _emit(env, run_show(root, name))


@app.command("list")
def list_cases(ctx: typer.Context, debug_store: options.DebugStore = None, as_json: options.Json = False) -> None:
    """List cases, the newest first.

    JSON: agentctl.cases/1 {store, items, n_total, truncated}.
    """
    env: Env = ctx.obj
    from agentctl.casebook.cases import list_cases as run_list

    _, root = _root(env, debug_store)
    items = run_list(root)
    emit(
        env,
        Answer(
            human=lambda width: rendering.list_human(items, str(root), env.now(), width),
            plain=lambda: rendering.list_plain(items),
            document=lambda: rendering.list_document(items, str(root)),
        ),
    )


@app.command("show")
def show_case(
    ctx: typer.Context, name: Name, debug_store: options.DebugStore = None, as_json: options.Json = False
) -> None:
    """Show a case: its debug threads, runs, calls and reports.

    JSON: agentctl.case/1 {case, folder, state, reason, conclusion, n_runs, n_calls, n_escaped, threads, reports}.
    """
    env: Env = ctx.obj
    from agentctl.casebook.cases import show_case as run_show

    _, root = _root(env, debug_store)
    _emit(env, run_show(root, name))


@app.command("close")
def close_case(
    ctx: typer.Context,
    name: Name,
    conclusion: Annotated[str, typer.Option("--conclusion", metavar="TEXT", help="What was found out.")] = "",
    debug_store: options.DebugStore = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Close a case: delete its debug threads, keep its evidence.

    Example: agentctl case close support-17 --conclusion 'stale replica in the order service'

    JSON: agentctl.case/1.

    Exit: 0 done, 3 no such case, 4 a store cannot be opened, 5 closed already, or a thread is not the case's.
    """
    env: Env = ctx.obj
    from agentctl.casebook.cases import close_case as run_close
    from agentctl.casebook.cases import show_case as run_show

    config, root = _root(env, debug_store)
    if dry_run:
        view = run_show(root, name)
        for thread in view.threads:
            if thread.deleted_at is None:
                _delete(config, name, thread, debug_store, dry_run=True)
        _emit(env, view, dry_run=True)
        return
    view = run_close(root, name, conclusion, lambda thread: _delete(config, name, thread, debug_store), now=env.now())
    _emit(env, view)


def _root(env: Env, debug_store: str | None) -> tuple[Config, Path]:
    config = load_config(env.cwd, env.environ)
    return config, config.cases_root(config.debug_store(debug_store))


def _delete(config: Config, case: str, thread: DebugThread, debug_store: str | None, *, dry_run: bool = False) -> int:
    """Deletes a debug thread where it was made, and returns how many rows went; 0 where it is gone already.

    Raises:
        Refused: its profile leads elsewhere now, or what lies there was not made by this case.
        StoreError: the store cannot be opened.
    """
    from agentctl.experiments.experiment import CASE
    from agentctl.stores.open import open_writer

    choice = config.target_of(thread.profile or thread.store, debug_flag=debug_store)
    file = sqlite_file(choice.url)
    if file is not None and str(file) == thread.store and not file.exists():
        return 0
    writer = open_writer(choice.url, profile=choice.profile, schema=choice.schema)
    try:
        if writer.info.url != thread.store:
            raise Refused(
                f"{thread.profile or 'the store'} is {writer.info.url} now; {thread.thread} was made in {thread.store}",
                hint=f"agentctl case close {case} --debug-store {shlex.quote(thread.store)}",
            )
        rows = writer.rows(thread.thread)
        if rows and all(row.metadata.get(CASE) != case for row in rows):
            raise Refused(
                f"{thread.thread} in {writer.info} was not made by case {case}",
                hint=f"look at it: {command('history', writer.info.target(thread.thread))}",
            )
        return 0 if dry_run else writer.delete_thread(thread.thread)
    finally:
        writer.close()


def _emit(env: Env, view: CaseView, *, dry_run: bool = False) -> None:
    emit(
        env,
        Answer(
            human=lambda width: rendering.view_human(view, env.now(), width, dry_run=dry_run),
            plain=lambda: rendering.view_plain(view),
            document=lambda: rendering.view_document(view, dry_run=dry_run),
        ),
    )
