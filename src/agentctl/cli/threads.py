"""`agentctl threads`: which threads a store holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.opening import open_stores
from agentctl.cli.output import Answer, emit, say, warn
from agentctl.errors import UsageError
from agentctl.records.threads import ThreadQuery, ThreadStatus
from agentctl.render import threads as rendering
from agentctl.revisions.times import parse_time

STATUSES: tuple[ThreadStatus, ...] = ("done", "pending", "interrupted", "error", "empty")


def threads(
    ctx: typer.Context,
    profile: Annotated[str, typer.Argument(metavar="PROFILE::", help="The store; the default one without it.")] = "",
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Updated at or after: a time, or an age such as 2h.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Updated at or before.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="One of: " + ", ".join(STATUSES) + ".")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="KEY=VALUE", help="Checkpoint metadata, such as user_id=u-1042. Repeatable, all hold."
        ),
    ] = None,
    grep: Annotated[
        str | None,
        typer.Option("--grep", metavar="TEXT", help="In messages, tool results and errors, newest thread first."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="At most N threads; 0 for all.")] = 20,
    store: options.Store = None,
    schema: options.Schema = None,
    debug_store: options.DebugStore = None,
    ticket: options.Ticket = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """List threads, newest first: find one by user, time, status, metadata or text.

    Reads ids and metadata alone; states only for --grep.

    Example: agentctl threads prod:: --where user_id=u-1042 --since 3h

    JSON: agentctl.threads/1 {store, items, n_total, truncated}.

    Exit: 0 done, 4 no such store.
    """
    env = ctx.obj
    query = ThreadQuery(
        since=parse_time(since, env.now()) if since else None,
        until=parse_time(until, env.now(), end=True) if until else None,
        status=_status(status),
        where=tuple(_pair(text) for text in where or ()),
        grep=grep,
        limit=limit or None,
    )
    with open_stores(env, store=store, schema=schema, debug_store=debug_store) as stores:
        from agentctl.stores.reading.threads import list_threads

        reader = stores.reader(profile.removesuffix("::"))
        found = list_threads(reader, query)
        where_from = str(reader.info)

        def document() -> Mapping[str, object]:
            items = found.items
            for warning in found.warnings:
                warn(env, warning)
            return rendering.as_document(items, where_from, found.n_total, found.truncated)

        emit(
            env,
            Answer(
                human=lambda width: rendering.human(found.items, where_from, found.truncated, env.now(), width),
                plain=lambda: rendering.plain(found),
                document=document,
            ),
        )
        for warning in () if env.as_json else found.warnings:
            warn(env, warning)
        if grep:
            say(env, f"searched {found.n_read:,} of {found.n_total:,} threads, newest first")


def _status(text: str | None) -> ThreadStatus | None:
    for status in STATUSES:
        if text == status:
            return status
    if text is None:
        return None
    raise UsageError(f"no status {text}", hint="one of: " + ", ".join(STATUSES))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--where takes KEY=VALUE, not {text!r}", hint="agentctl threads --where user_id=u-1042")
    return key, value
