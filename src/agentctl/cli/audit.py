"""`agentctl audit`: who looked at what, whether the log of it is whole, and what all experiments called."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.opening import page_size
from agentctl.cli.output import Answer, emit, say
from agentctl.config.load import load_config
from agentctl.records.audit import Access, AuditListing
from agentctl.render import audit as rendering
from agentctl.revisions.times import parse_time

app = typer.Typer(invoke_without_command=True)

ANSWER_IS_NO, ESCAPED = 1, 5


@app.callback()
def audit(
    ctx: typer.Context,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="At or after: a time, or an age such as 2h.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="At or before.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Of this profile.")] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="THREAD", help="Those that read rows of this thread.")
    ] = None,
    ticket: Annotated[str | None, typer.Option("--ticket", metavar="ID", help="For this ticket.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="LOGIN", help="By this login.")] = None,
    limit: options.Limit = None,
    side_effects: Annotated[
        bool,
        typer.Option("--side-effects", help="Instead: how the tool calls of all cases were answered; none may escape."),
    ] = False,
    debug_store: options.DebugStore = None,
    as_json: options.Json = False,
) -> None:
    """List reads and writes of profiles with ticket: required or audit: true, the newest first.

    `agentctl audit verify` checks that no line was changed, taken out, put in or cut off.

    Example: agentctl audit --profile prod --since 7d

    JSON: agentctl.audit/1 {store, items, n_total, truncated, n_damaged}; agentctl.audit.effects/1 {store, items,
    total}.

    Exit: 0 done, 2 wrong option, 4 the log cannot be read, 5 with --side-effects: a call escaped.
    """
    if ctx.invoked_subcommand is not None:
        return
    env: Env = ctx.obj
    if side_effects:
        _side_effects(env, debug_store)
        return
    now = env.now()
    after = parse_time(since, now) if since else None
    before = parse_time(until, now, end=True) if until else None
    from agentctl.casebook.audit.accesses import read_accesses

    folder = load_config(env.cwd, env.environ).audit_folder
    found, n_damaged = read_accesses(folder)
    wanted = [
        access
        for access in reversed(found)
        if _is_between(access, after, before) and _is_of(access, profile, thread, ticket, user)
    ]
    listing = AuditListing(folder, tuple(wanted[: page_size(env, limit)]), len(wanted), n_damaged)
    emit(
        env,
        Answer(
            human=lambda width: rendering.list_human(listing, now, width),
            plain=lambda: rendering.list_plain(listing),
            document=lambda: rendering.list_document(listing),
        ),
    )
    if n_damaged and not env.is_terminal:
        say(env, rendering.damaged(listing))


@app.command("verify")
def verify(
    ctx: typer.Context,
    anchor: Annotated[
        str | None,
        typer.Option(
            "--anchor", metavar="N:HASH", help="A line as an earlier check named it: it must still be in the log."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check that no line of the log was changed, taken out, put in, moved or cut off.

    Prints the anchor, the last line's number and hash. Kept where the log's owner cannot write, it tells later that the
    log was cut together with its head, or written anew: --anchor.

    Example: agentctl audit verify --anchor 41:9f2c4be1d07a6e55

    JSON: agentctl.audit.verify/1 {store, ok, n_entries, anchor, faults}.

    Exit: 0 whole, 1 not whole, 2 no anchor, 4 the log cannot be read.
    """
    env: Env = ctx.obj
    from agentctl.casebook.audit.verify import parse_anchor
    from agentctl.casebook.audit.verify import verify as run_verify

    expected = parse_anchor(anchor) if anchor is not None else None
    found = run_verify(load_config(env.cwd, env.environ).audit_folder, expected)
    emit(
        env,
        Answer(
            human=lambda width: rendering.verify_human(found),
            plain=lambda: rendering.verify_plain(found),
            document=lambda: rendering.verify_document(found),
        ),
    )
    if found.faults:
        raise typer.Exit(ANSWER_IS_NO)


def _side_effects(env: Env, debug_store: str | None) -> None:
    from agentctl.casebook.audit.effects import sum_effects

    config = load_config(env.cwd, env.environ)
    root = config.cases_root(config.debug_store(debug_store))
    items = sum_effects(root)
    emit(
        env,
        Answer(
            human=lambda width: rendering.effects_human(items, str(root), width),
            plain=lambda: rendering.effects_plain(items),
            document=lambda: rendering.effects_document(items, str(root)),
        ),
    )
    if any(item.escaped for item in items):
        raise typer.Exit(ESCAPED)


def _is_between(access: Access, after: datetime | None, before: datetime | None) -> bool:
    return (after is None or access.at >= after) and (before is None or access.at <= before)


def _is_of(access: Access, profile: str | None, thread: str | None, ticket: str | None, user: str | None) -> bool:
    touched = access.touched
    return (
        (profile is None or access.profile == profile.removesuffix("::"))
        and (thread is None or (touched is not None and thread in touched.threads))
        and (ticket is None or access.why.ticket == ticket)
        and (user is None or access.who.user == user)
    )
