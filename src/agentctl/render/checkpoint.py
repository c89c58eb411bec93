"""One checkpoint, one channel of it, or one tool call, for people, pipes and programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps, timestamp
from agentctl.codec.secrets import hide_secrets_in
from agentctl.records.messages import CallSite
from agentctl.records.threads import CheckpointView, Task
from agentctl.records.views import Reading
from agentctl.render import views
from agentctl.render.clean import clean, cut
from agentctl.render.machine import document
from agentctl.render.messages import ROLE_STYLE, message_document, message_text
from agentctl.render.words import age, names, short_ids

if TYPE_CHECKING:
    from rich.console import RenderableType

N_MESSAGES = 10


def human(
    view: CheckpointView,
    now: datetime,
    width: int,
    *,
    full: bool,
    place: str,
    ids: Iterable[str] = (),
    answer: str = "",
    reading: Reading | None = None,
) -> Iterable[RenderableType]:
    """Yields the checkpoint: where it stands, pending tasks, its workflow's words, what changed, the last messages.

    Args:
        view: The checkpoint.
        now: The clock, for its age.
        width: Columns; values are cut to one line each unless `full`.
        full: Cut nothing.
        place: The thread as it is typed.
        ids: The ids among which the short one must be unique.
        answer: The command that answers what its tasks ask, '' where they ask nothing.
        reading: The checkpoint in its workflow's words, None where it has none.
    """
    from rich.text import Text

    short = short_ids({view.id, *ids})[view.id]
    yield Text(
        f"{place}@{short}  step {'?' if view.step is None else view.step}  {view.source}  {age(view.at, now)} ago",
        "bold",
    )
    yield f"id       {view.id}"
    yield f"parent   {view.parent or '-'}"
    if view.ns:
        yield f"ns       {view.ns}"
    yield f"wrote    {names(view.wrote)}"
    yield f"next     {names(view.next)}"
    for task in view.tasks:
        yield from (Text(line, style) for line, style in _task_lines(task, width, full))
    if answer:
        yield f"answer   {answer}"
    if reading:
        yield from views.reading_lines(reading, width, full=full)
    if view.messages:
        shown = view.messages if full else view.messages[-N_MESSAGES:]
        left_out = view.n_earlier_messages + len(view.messages) - len(shown)
        yield Text(
            f"messages ({left_out} earlier not shown; all: show --messages --all)" if left_out else "messages", "dim"
        )
        for message in shown:
            text = message_text(message)
            body = clean(message.text or text, keep_newlines=True) if full else cut(text, max(width - 11, 20))
            yield Text(f"  {message.role:<7}  {body}", ROLE_STYLE.get(message.role, ""))
    unreadable = view.unreadable or {}
    yield Text("state (* changed by this step)", "dim")
    for channel in sorted({*view.values, *unreadable}):
        mark = "*" if channel in view.changed else " "
        if channel in unreadable:
            yield Text(f" {mark} {channel}: {clean(unreadable[channel])}", "red")
        elif full:
            yield f" {mark} {channel}: {dumps(view.values[channel], indent=2)}"
        else:
            yield cut(f" {mark} {channel}: {dumps(view.values[channel])}", width)
        if view.notes and channel in view.notes:
            yield Text(f"   {view.notes[channel]}", "dim")


def _task_lines(task: Task, width: int, full: bool) -> Iterable[tuple[str, str]]:
    limit = 1_000_000 if full else width
    where = f"  in {task.ns}" if task.ns else ""
    yield f"task     {task.name}: {_task_state(task)}{where}", "red" if task.error else "yellow"
    if task.error:
        yield cut(f"         {task.error}", limit), "red"
    for asked in task.interrupts:
        answered = "answered  " if task.finished else ""
        yield cut(f"         {answered}{asked.id or '?'}  {dumps(asked.value)}", limit), "yellow"
    for channel, value in task.result or ():
        yield cut(f"         {channel}: {dumps(value)}", limit), ""


def _task_state(task: Task) -> str:
    """Returns how a task stands: one without stored writes may have acted all the same."""
    if task.handled_by is not None:
        return f"failed, handled by {task.handled_by}"
    if task.finished:
        return "finished"
    if task.error:
        return "failed"
    return "asks" if task.interrupts else "no result stored; it may have run"


def plain(view: CheckpointView, reading: Reading | None = None) -> Iterable[Sequence[str | int | None]]:
    """Yields rows `field<TAB>value`, then `view NAME<TAB>text`, then `channel NAME<TAB>JSON`; whole values."""
    yield "thread", view.thread
    yield "id", view.id
    yield "parent", view.parent
    yield "ns", view.ns
    yield "step", view.step
    yield "source", view.source
    yield "at", timestamp(view.at)
    yield "wrote", ",".join(view.wrote)
    yield "next", ",".join(view.next)
    for task in view.tasks:
        yield f"task {task.name}", dumps(_task(task))
    if reading:
        yield from views.reading_plain(reading)
    for channel, value in view.values.items():
        yield f"channel {channel}", dumps(value)
    for channel, reason in (view.unreadable or {}).items():
        yield f"unreadable {channel}", reason


def as_document(view: CheckpointView, reading: Reading | None = None) -> dict[str, object]:
    """Returns the JSON document `agentctl.show/1`."""
    return document(
        "show",
        {
            "store": view.store,
            "thread": view.thread,
            "ns": view.ns,
            "id": view.id,
            "parent": view.parent,
            "step": view.step,
            "source": view.source,
            "at": timestamp(view.at),
            "metadata": hide_secrets_in(view.metadata),
            "values": dict(view.values),
            "changed": list(view.changed),
            "wrote": list(view.wrote),
            "next": list(view.next),
            "tasks": [_task(task) for task in view.tasks],
            "unreadable": dict(view.unreadable or {}),
            "notes": dict(view.notes or {}),
            "view": views.reading_document(reading),
        },
    )


def _task(task: Task) -> dict[str, object]:
    return {
        "id": task.id,
        "name": task.name,
        "finished": task.finished,
        "error": task.error,
        "handled_by": task.handled_by,
        "interrupts": [{"id": asked.id, "value": asked.value} for asked in task.interrupts],
        "result": None
        if task.result is None
        else [{"channel": channel, "value": value} for channel, value in task.result],
        "ns": task.ns,
    }


def call_document(site: CallSite, thread: str, store: str) -> dict[str, object]:
    """Returns the JSON document of `show --call`."""
    return document(
        "show.call",
        {
            "store": store,
            "thread": thread,
            "ns": site.ns,
            "name": site.name,
            "id": site.id,
            "args": site.args,
            "occurrence": site.occurrence,
            "pending_at": site.pending_at,
            "answered_at": site.answered_at,
            "result": message_document(site.answer),
        },
    )


def call_human(site: CallSite, target: str) -> Iterable[RenderableType]:
    """Yields a call's place, its arguments and its recorded result verbatim."""
    from rich.text import Text

    where = f" in {site.ns}" if site.ns else ""
    yield Text(f"{site.name}  {site.id or '(no id)'}  occurrence {site.occurrence}{where}", "bold")
    yield ("made     " if site.task else "pending  ") + shlex.quote(f"{target}@{site.pending_at}")
    yield Text("arguments", "dim")
    yield dumps(site.args, indent=2)
    if site.answer is None:
        yield Text("result   none recorded: the call is unanswered", "yellow")
        return
    yield Text("result" if site.answer.status != "error" else "result (an error)", "dim")
    yield call_result(site)


def call_result(site: CallSite) -> str:
    """Returns the recorded result as it can be given back to `--answer`: text as it is, anything else as JSON."""
    if site.answer is None:
        return ""
    content = site.answer.content
    return clean(content, keep_newlines=True) if isinstance(content, str) else dumps(content)
