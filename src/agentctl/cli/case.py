"""`agentctl case`: the evidence of an investigation."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.admission import admitted
from agentctl.cli.env import Env
from agentctl.cli.output import Answer, emit, say, warn
from agentctl.config.debug import sqlite_file
from agentctl.config.load import Config, load_config
from agentctl.errors import Refused
from agentctl.records.cases import CaseView, DebugThread
from agentctl.records.copies import command
from agentctl.render import cases as rendering
from agentctl.render.words import count

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
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking. Only a terminal is asked.")] = False,
    ticket: options.Ticket = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Close a case: delete its debug threads, keep its evidence. Threads that their profile protects stay.

    Example: agentctl case close support-17 --conclusion 'stale replica in the order service'

    JSON: agentctl.case/1.

    Exit: 0 done, 3 no such case, 4 a store cannot be opened, 5 closed already, not confirmed, or a thread is not the
    case's.
    """
    env: Env = ctx.obj
    from agentctl.casebook.cases import close_case as run_close
    from agentctl.casebook.cases import show_case as run_show

    config, root = _root(env, debug_store)
    view = run_show(root, name)
    kept: list[DebugThread] = []

    def delete(thread: DebugThread) -> int | None:
        n_rows = _delete(env, config, name, thread, debug_store, dry_run=dry_run)
        if n_rows is None:
            kept.append(thread)
            warn(env, f"{thread.thread} is protected in agentctl.yaml and stays")
        return n_rows

    if dry_run:
        for thread in _standing(view):
            delete(thread)
    else:
        if not yes:
            _confirm(env, view)
        view = run_close(root, name, conclusion, delete, now=env.now())
    _emit(env, view, dry_run=dry_run, kept=kept)


def _root(env: Env, debug_store: str | None) -> tuple[Config, Path]:
    config = load_config(env.cwd, env.environ)
    return config, config.cases_root(config.debug_store(debug_store))


def _standing(view: CaseView) -> list[DebugThread]:
    return [thread for thread in view.threads if thread.deleted_at is None]


def _confirm(env: Env, view: CaseView) -> None:
    """Asks a person at a terminal whether the debug threads may go; programs and pipes are never asked.

    Raises:
        Refused: the answer is not yes.
    """
    case, standing = view.summary.case, _standing(view)
    if env.as_json or not env.is_terminal or not env.stdin.isatty() or case.state == "closed" or not standing:
        return
    say(env, f"{count(len(standing), 'debug thread')} of {case.name} will be deleted. Go on? [y/N]")
    if env.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("not confirmed, so nothing was deleted", hint=command("case close", case.name, "--dry-run"))


def _delete(
    env: Env, config: Config, case: str, thread: DebugThread, debug_store: str | None, *, dry_run: bool
) -> int | None:
    """Deletes a debug thread where it was made, and returns how many rows went; 0 where it is gone already.

    Returns None, and deletes nothing, where its profile protects it.

    Raises:
        Refused: its profile leads elsewhere now, or what lies there was not made by this case.
        StoreError: the store cannot be opened.
    """
    from agentctl.experiments.experiment import CASE
    from agentctl.stores.open import open_writer

    choice = config.target_of(thread.profile or thread.store, debug_flag=debug_store)
    if choice.protects(thread.thread):
        return None
    file = sqlite_file(choice.url)
    if file is not None and str(file) == thread.store and not file.exists():
        return 0
    with (
        admitted(env, config, choice, "write"),
        closing(open_writer(choice.url, profile=choice.profile, schema=choice.schema)) as writer,
    ):
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


def _emit(env: Env, view: CaseView, *, dry_run: bool = False, kept: Collection[DebugThread] = ()) -> None:
    emit(
        env,
        Answer(
            human=lambda width: rendering.view_human(view, env.now(), width, dry_run=dry_run, kept=kept),
            plain=lambda: rendering.view_plain(view),
            document=lambda: rendering.view_document(view, dry_run=dry_run),
        ),
    )
