"""`agentctl size`: what a store or a thread takes, and what takes it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.opening import Stores, open_in, open_stores
from agentctl.cli.output import Answer, emit, progress, say
from agentctl.errors import UsageError
from agentctl.records.sizes import LEVELS, Assumptions, Level
from agentctl.render import size as rendering
from agentctl.render import size_document
from agentctl.revisions.times import parse_age

if TYPE_CHECKING:
    from agentctl.stores.base import Reader


def size(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="[PROFILE::][THREAD]", help="A store or one of its threads; the default store without."),
    ] = "",
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="LEVEL",
            help="What to list: "
            + ", ".join(LEVELS)
            + ". Unless said threads of a store, and of a thread namespaces (on an Agent Server channels).",
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help="The N largest; 0 for all.")] = 20,
    threads_per_day: Annotated[
        float | None,
        typer.Option("--threads-per-day", metavar="N", min=0, help="Project: how many threads begin a day."),
    ] = None,
    retention: Annotated[
        str | None,
        typer.Option("--retention", metavar="AGE", help="Project: how long each is kept, in days or as 30d."),
    ] = None,
    store: options.Store = None,
    schema: options.Schema = None,
    literal: options.Literal = False,
    debug_store: options.DebugStore = None,
    ticket: options.Ticket = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Show what a store or a thread takes, what takes it, and how often the same is stored.

    Threads, namespaces and rows are counted by the database without reading any state; so are channels on Postgres. On
    SQLite channels, and on both messages and fields, take reading the states, one at a time. Payload is the newest
    state, of messages and fields one copy of each; amplification is stored bytes by payload.

    Example: agentctl size prod:: --threads-per-day 1000 --retention 30

    JSON: agentctl.size/1 {store, thread, by, total, n_threads, items, n_total, truncated, database, projection, notes}.

    Exit: 0 done, 3 no such thread, 4 no such store, 5 a saver cannot tell.
    """
    env = ctx.obj
    level, assumed = _level(by), _assumed(threads_per_day, retention)
    with open_stores(env, store=store, schema=schema, debug_store=debug_store) as stores:
        from agentctl.upkeep.size import measure, usual_level

        reader, thread = _scope(stores, target, literal=literal)
        report = measure(
            reader,
            thread=thread,
            by=level or usual_level(reader, thread),
            top=top or None,
            assumed=assumed,
            progress=progress(env, "reading"),
        )
        emit(
            env,
            Answer(
                human=lambda width: rendering.human(report, reader.info.target, env.pasteable, width),
                plain=lambda: size_document.plain(report),
                document=lambda: size_document.as_document(report),
            ),
        )
        if not env.is_terminal:
            for line in rendering.beside(report):
                say(env, line)


def _scope(stores: Stores, text: str, *, literal: bool) -> tuple[Reader, str | None]:
    """Returns the store, and the thread where one is named: `PROFILE::` alone, or nothing, is a whole store."""
    if not text or (text.endswith("::") and not literal):
        return stores.reader(text.removesuffix("::")), None
    opened = open_in(stores, text, literal=literal)
    if opened.target.explicit:
        raise UsageError(f"sizes are of whole threads, not of {opened.target}", hint="leave the revision away")
    return opened.reader, opened.thread


def _level(text: str | None) -> Level | None:
    for level in LEVELS:
        if text == level:
            return level
    if text is None:
        return None
    raise UsageError(f"no level {text}", hint="one of: " + ", ".join(LEVELS))


def _assumed(threads_per_day: float | None, retention: str | None) -> Assumptions | None:
    if threads_per_day is None and retention is None:
        return None
    if threads_per_day is None or retention is None:
        raise UsageError(
            "a projection takes --threads-per-day and --retention",
            hint="agentctl size --threads-per-day 1000 --retention 30",
        )
    days = float(retention) if retention.isdecimal() else parse_age(retention) / timedelta(days=1)
    return Assumptions(threads_per_day, days)
