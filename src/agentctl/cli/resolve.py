"""`agentctl resolve`: which checkpoint a target names, and why."""

from __future__ import annotations

import typer

from agentctl.cli import options
from agentctl.cli.grouped import Where, expanded
from agentctl.cli.opening import open_target
from agentctl.cli.output import Answer, emit
from agentctl.render.machine import document


@expanded
def resolve(
    ctx: typer.Context,
    target: options.Target,
    where: Where,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Print the full id of the checkpoint that a target names, and why it is that one.

    Example: agentctl resolve 'prod::support-17@call:lookup_order'

    JSON: agentctl.resolve/1 {store, thread, ns, id, why, notes}.

    Exit: 0 done, 2 syntax, 3 nothing or several.
    """
    env = ctx.obj
    with open_target(env, target, where) as opened:
        found = opened.resolve()
        body = {
            "store": opened.reader.info.url,
            "thread": found.thread,
            "ns": found.ns,
            "id": found.id,
            "why": found.why,
            "notes": list(found.notes),
        }
        emit(
            env,
            Answer(
                human=lambda width: [found.id, f"  {found.why}", *(f"  {note}" for note in found.notes)],
                plain=lambda: [(found.id, found.ns, found.why)],
                document=lambda: document("resolve", body),
            ),
        )
