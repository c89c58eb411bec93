"""`agentctl diff`: what differs between two checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.masking import masked_reader
from agentctl.cli.opening import Opened, Stores, open_in, open_stores
from agentctl.cli.output import Answer, emit, say
from agentctl.cli.viewing import tell_problems, view_of
from agentctl.errors import UsageError
from agentctl.records.copies import command
from agentctl.records.diffs import Diff
from agentctl.render import diff as rendering

Side = tuple[Opened, str, str]
"""A thread that is open, a namespace of it, and the id of a checkpoint there."""


def diff(
    ctx: typer.Context,
    left: Annotated[str, typer.Argument(metavar="A", help="A target; or both as one range, THREAD@A...B.")],
    right: Annotated[str | None, typer.Argument(metavar="B", help="The target to compare with.")] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 where they differ.")] = False,
    ns: options.Namespace = None,
    store: options.Store = None,
    schema: options.Schema = None,
    debug_store: options.DebugStore = None,
    ticket: options.Ticket = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Show what differs between two checkpoints from their common ancestor: messages, tool calls, reply, state.

    The two may be in different threads or stores; ids survive copying, so the ancestor is found all the same. Where
    one is a masked copy the other is compared masked too.
    A workflow with a `renderer` in agentctl.yaml is compared in its own words first.

    Example: agentctl diff prod::support-17 debug::support-17.fork-1

    JSON: agentctl.diff/1 {left, right, common, equal, messages, tool_calls, reply, state, interrupts, view}.

    Exit: 0 done, 1 differs (with --exit-code), 3 no such checkpoint.
    """
    env = ctx.obj
    with open_stores(env, store=store, schema=schema, debug_store=debug_store) as stores:
        found = _difference(env, stores, _seen_alike(_sides(stores, left, right, ns)))
        tell_problems(env, found.view_problems)
        emit(
            env,
            Answer(
                human=lambda width: rendering.human(found, width),
                plain=lambda: rendering.plain(found),
                document=lambda: rendering.as_document(found),
            ),
        )
    if exit_code and not found.equal:
        raise typer.Exit(1)


def _difference(env: Env, stores: Stores, sides: Sequence[Side]) -> Diff:
    """Returns what differs, also in the words of the workflow that both sides are of, where it has a view."""
    from agentctl.experiments.comparing.diff import End, diff_tips, read_tip, read_tips
    from agentctl.stores.reading.lineage import no_checkpoint

    left, right = (End(opened.reader, opened.thread, checkpoint, ns) for opened, ns, checkpoint in sides)
    rows = [row for one in (left, right) for row in one.reader.rows(one.thread, one.ns, ids=[one.checkpoint])]
    if len(rows) < 2:  # gone since they were resolved, or with an id that is no text that can be asked for
        lacking = left if left.checkpoint not in {row.id for row in rows} else right
        raise no_checkpoint(lacking.reader, lacking.thread, lacking.ns, lacking.checkpoint)
    # A view is of the root graph's state, and may name any part of it.
    view = None if left.ns or right.ns else view_of(stores.config, [row.metadata for row in rows])
    if view is None:
        return diff_tips(*read_tips(left, right, is_cut=env.is_terminal and not env.as_json))
    from agentctl.experiments.comparing.views import in_words

    tips = read_tip(*left), read_tip(*right)
    return in_words(diff_tips(*tips), *tips, view)


def _seen_alike(sides: list[Side]) -> list[Side]:
    """Returns the sides, all of them masked where one is: else each masked value would be a difference."""
    if all(opened.was_masked for opened, _, _ in sides) or not any(opened.was_masked for opened, _, _ in sides):
        return sides
    return [(_masked(opened), ns, checkpoint) for opened, ns, checkpoint in sides]


def _masked(opened: Opened) -> Opened:
    if opened.was_masked:
        return opened
    say(opened.env, f"{opened.target} is compared masked, as the other side is")
    return replace(opened, reader=masked_reader(opened.reader, opened.store_choice, lambda: opened.stores.masker))


def _sides(stores: Stores, left: str, right: str | None, ns: str | None) -> list[Side]:
    """Returns the two sides."""
    if right is not None:
        sides = []
        for text in (left, right):
            opened = open_in(stores, text, ns=ns)
            found = opened.resolve()
            sides.append((opened, found.ns, found.id))
        return sides
    opened = open_in(stores, left, ns=ns, ranges=True)
    pair = opened.resolve_range()
    if pair is None:
        place = opened.facts.place
        raise UsageError("diff takes two targets, or one range", hint=command("diff", f"{place}@head~", place))
    return [(opened, found.ns, found.id) for found in (pair.left, pair.right)]
