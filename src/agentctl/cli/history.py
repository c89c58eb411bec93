"""`agentctl history`: a thread's checkpoints."""

from __future__ import annotations

import typer

from agentctl.cli import options
from agentctl.cli.grouped import Where, expanded
from agentctl.cli.opening import open_target, page_size
from agentctl.cli.output import Answer, emit
from agentctl.render import history as rendering


@expanded
def history(
    ctx: typer.Context,
    target: options.Target,
    where: Where,
    everything: bool = typer.Option(False, "--all", help="Every namespace: subgraphs and subagents too."),
    limit: options.Limit = None,
    as_json: options.Json = False,
) -> None:
    """List a thread's checkpoints, newest first: who wrote each, what runs next, where it forked.

    Reads stored rows alone: no graph is loaded, nothing is written.

    Example: agentctl history prod::support-17

    JSON: agentctl.history/1 {store, thread, items, n_total, truncated}.

    Exit: 0 done, 3 no such thread.
    """
    env = ctx.obj
    with open_target(env, target, where) as opened:
        from agentctl.stores.reading.history import read_history

        listing = read_history(
            opened.reader, opened.thread, ns=opened.full_ns, all_namespaces=everything, limit=page_size(env, limit)
        )
        emit(
            env,
            Answer(
                human=lambda width: rendering.human(listing, env.now(), width),
                plain=lambda: rendering.plain(listing),
                document=lambda: rendering.as_document(listing),
            ),
        )
