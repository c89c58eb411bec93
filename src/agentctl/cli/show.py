"""`agentctl show`: one checkpoint, a branch as a conversation, or one tool call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.grouped import Where, expanded
from agentctl.cli.opening import Opened, open_target
from agentctl.cli.output import Answer, emit
from agentctl.cli.viewing import tell_problems, view_of
from agentctl.codec.jsontext import dumps
from agentctl.config.profiles import DEBUG
from agentctl.errors import DecodeError, NotFound, UsageError
from agentctl.records.copies import command
from agentctl.records.threads import CheckpointView
from agentctl.records.views import Reading
from agentctl.render import checkpoint as rendering
from agentctl.render import conversation as talk_rendering
from agentctl.render.machine import document

if TYPE_CHECKING:
    from agentctl.revisions.scope import Resolution


@expanded
def show(
    ctx: typer.Context,
    target: options.Target,
    where: Where,
    messages: Annotated[
        bool, typer.Option("--messages", help="The branch as a conversation, calls beside results.")
    ] = False,
    call: Annotated[
        str | None,
        typer.Option("--call", metavar="NAME|ID", help="One tool call: arguments and recorded result verbatim."),
    ] = None,
    channel: Annotated[str | None, typer.Option("--channel", metavar="C", help="One channel's value, whole.")] = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="JMESPATH", help="A part of the state, or of --channel.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut nothing.")] = False,
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="With --messages: the last N.")] = 20,
    everything: Annotated[bool, typer.Option("--all", help="With --messages: all of them.")] = False,
    grep: Annotated[
        str | None, typer.Option("--grep", metavar="TEXT", help="With --messages: those that contain it.")
    ] = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Show one checkpoint: what it changed, pending tasks, last messages; or --messages, --call, --channel.

    Reads stored rows alone: no graph is loaded, no stored type is imported. A workflow with a `renderer` in
    agentctl.yaml is shown in its own words first.

    Example: agentctl show prod::support-17 --messages

    JSON: agentctl.show/1 {thread, ns, id, parent, metadata, values, changed, next, tasks, view}; agentctl.messages/1;
    agentctl.show.call/1; agentctl.show.value/1.

    Exit: 0 done, 3 no such checkpoint, channel or call, 4 its value cannot be read.
    """
    if sum((messages, call is not None, channel is not None)) > 1:
        raise UsageError("--messages, --call and --channel exclude each other")
    env = ctx.obj
    with open_target(env, target, where) as opened:
        if messages:
            answer = _conversation(
                opened, None if everything or env.as_json or not env.is_terminal else last, grep, full
            )
        elif call is not None:
            answer = _call(opened, call)
        elif channel is not None or path is not None:
            answer = _value(opened, channel, path)
        else:
            answer = _checkpoint(opened, full)
        emit(env, answer)


def _checkpoint(opened: Opened, full: bool) -> Answer:
    from agentctl.stores.reading.view import read_checkpoint

    found = opened.resolve()
    view = read_checkpoint(
        opened.reader,
        opened.thread,
        found.ns,
        found.id,
        n_last_messages=rendering.N_MESSAGES if _is_cut(opened, found, full) else None,
    )
    reading = _in_words(opened, view)
    now = opened.env.now()
    return Answer(
        human=lambda width: rendering.human(
            view,
            now,
            width,
            full=full,
            place=opened.facts.place,
            ids=opened.all_ids(found.ns),
            answer=_answer_command(opened, view),
            reading=reading,
        ),
        plain=lambda: rendering.plain(view, reading),
        document=lambda: rendering.as_document(view, reading),
    )


def _is_cut(opened: Opened, found: Resolution, full: bool) -> bool:
    """Tells whether only the beginnings of values are shown: on a terminal, where no view reads in them."""
    if full or opened.env.as_json or not opened.env.is_terminal:
        return False
    rows = opened.reader.rows(opened.thread, found.ns, ids=[found.id])
    return bool(found.ns) or view_of(opened.config, [row.metadata for row in rows]) is None


def _in_words(opened: Opened, checkpoint: CheckpointView) -> Reading | None:
    """Returns a checkpoint in its workflow's words, None where that has no view, or for a subgraph's state."""
    view = None if checkpoint.ns else view_of(opened.config, [checkpoint.metadata])
    if view is None:
        return None
    from agentctl.experiments.comparing.views import read_view_of

    reading = read_view_of(view, checkpoint.values)
    tell_problems(opened.env, reading.problems)
    return reading


def _answer_command(opened: Opened, view: CheckpointView) -> str:
    """Returns the command that answers the questions of a checkpoint, '' where it asks none.

    The head's are answered in the thread itself where its store may be written; those of an older checkpoint, of a
    subgraph, and of a store that is only read, on a copy: a fork where other tasks of the step have finished, so that
    they stay so.
    """
    waiting = [question for task in view.tasks if not task.finished for question in task.interrupts]
    asked = waiting or [question for task in view.tasks for question in task.interrupts]
    if not asked:
        return ""
    half_done = waiting and any(task.finished for task in view.tasks)
    store = opened.store_choice
    tools = () if store.profile == DEBUG else ("--tools", "production")
    if view.ns or view.id != opened.facts.head("") or (tools and store.access != "write"):
        answers = [word for _ in asked for word in ("--resume", "JSON")]
        text = command("fork" if half_done else "replay", f"{opened.facts.place}@{view.id}", *answers)
    elif len(asked) == 1:
        text = command("resume", opened.facts.place, "--value", "JSON", *tools)
    else:
        text = command("resume", opened.facts.place, *(f"--map={question.id}=JSON" for question in asked), *tools)
    return opened.env.pasteable(text)


def _conversation(opened: Opened, last: int | None, grep: str | None, full: bool) -> Answer:
    from agentctl.stores.reading.conversation import read_conversation
    from agentctl.stores.reading.lineage import read_lineage

    found = opened.resolve()
    lineage = read_lineage(opened.reader, opened.thread, found.ns, found.id)
    talk = read_conversation(opened.reader, lineage, last=last, grep=grep)
    now = opened.env.now()
    return Answer(
        human=lambda width: talk_rendering.human(talk, now, width, full=full, ids=opened.all_ids(found.ns)),
        plain=lambda: talk_rendering.plain(talk),
        document=lambda: talk_rendering.as_document(talk),
    )


def _call(opened: Opened, name_or_id: str) -> Answer:
    from agentctl.revisions.resolve import resolve_call

    site = resolve_call(
        name_or_id, opened.target.one, opened.facts, ns=opened.ns, branch=opened.branch, now=opened.env.now()
    )
    return Answer(
        human=lambda width: rendering.call_human(site, opened.facts.place),
        plain=lambda: [
            ("name", site.name),
            ("id", site.id),
            ("pending_at", site.pending_at),
            ("args", dumps(site.args)),
            ("result", rendering.call_result(site) if site.answer else None),
        ],
        document=lambda: rendering.call_document(site, opened.thread, opened.reader.info.url),
    )


def _value(opened: Opened, channel: str | None, path: str | None) -> Answer:
    import jmespath
    from jmespath.exceptions import JMESPathError

    from agentctl.stores.reading.state import read_values

    found = opened.resolve()
    values = read_values(
        opened.reader, opened.thread, found.ns, found.id, channels=None if channel is None else [channel]
    )
    if channel is not None and channel in values.unreadable:
        raise DecodeError(
            f"channel {channel} of checkpoint {found.id} cannot be read: {values.unreadable[channel]}",
            hint=opened.env.pasteable(command("doctor", opened.facts.place)),
        )
    if channel is not None and channel not in values.values:
        present = read_values(opened.reader, opened.thread, found.ns, found.id).values
        raise NotFound(
            f"no channel {channel} at {found.id}", hint="channels: " + (", ".join(sorted(present)) or "none")
        )
    value: object = values.values[channel] if channel is not None else dict(values.values)
    if path is not None:
        try:
            value = jmespath.search(path, value)
        except JMESPathError as error:
            raise UsageError(f"--path {path!r}: {error}") from error
    body = {"thread": opened.thread, "ns": found.ns, "id": found.id, "channel": channel, "path": path, "value": value}
    return Answer(
        human=lambda width: [dumps(value, indent=2)],
        plain=lambda: [(dumps(value),)],
        document=lambda: document("show.value", body),
    )
