"""`agentctl history`: a thread's checkpoints."""

from __future__ import annotations

from functools import partial

import typer

from agentctl.cli import options
from agentctl.cli.grouped import Where, expanded
from agentctl.cli.opening import Opened, open_target, page_size
from agentctl.cli.output import Answer, emit
from agentctl.errors import UsageError
from agentctl.render import history as rendering


@expanded
def history(
    ctx: typer.Context,
    target: options.Target,
    where: Where,
    everything: bool = typer.Option(False, "--all", help="Every namespace: subgraphs and subagents too."),
    limit: options.Limit = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """List a thread's checkpoints, newest first: who wrote each, what runs next, where it forked.

    THREAD lists every branch; THREAD@REV, or --branch, a checkpoint and its ancestors; THREAD@A..B what came after A
    up to B; THREAD@A...B both branches since they parted. Reads stored rows alone: no graph is loaded, nothing is
    written.

    Example: agentctl history prod::support-17

    JSON: agentctl.history/1 {store, thread, items, n_total, truncated}.

    Exit: 0 done, 3 no such thread.
    """
    env = ctx.obj
    with open_target(env, target, where, ranges=True) as opened:
        from agentctl.stores.reading.history import iter_history, list_history, read_history

        ns, among = _wanted(opened)
        if among is not None and everything:
            raise UsageError("--all lists every namespace, and a revision or --branch names checkpoints of one")
        rows = partial(
            iter_history,
            opened.reader,
            opened.thread,
            ns=ns,
            all_namespaces=everything,
            limit=page_size(env, limit),
            among=among,
        )
        whole = partial(read_history, *rows.args, **rows.keywords)
        listing = partial(list_history, *rows.args, **rows.keywords)
        emit(
            env,
            Answer(
                human=lambda width: rendering.human(whole(), env.now(), width),
                plain=lambda: rendering.plain(rows()),
                document=lambda: rendering.as_document(listing()),
            ),
        )


def _wanted(opened: Opened) -> tuple[str, frozenset[str] | None]:
    """Returns the namespace to list, and which of its checkpoints; None for all."""
    pair = opened.resolve_range()
    if pair is not None:
        return pair.right.ns, frozenset((*pair.left_ids, *pair.right_ids))
    if not opened.target.explicit and opened.branch is None:
        return opened.full_ns, None
    found = opened.resolve()
    return found.ns, frozenset(opened.chain(found.ns, found.id))
