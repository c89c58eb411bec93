"""A task's rows as the record that is shown: result, error text, questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xxhash import xxh3_128_hexdigest

from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.records.rows import Stored, WriteRow
from agentctl.records.threads import Interrupt, Task
from agentctl.stores.reading import layout
from agentctl.stores.reading.taskrows import TaskRows

UNREAD = "$unread"
"""Key of the stand-in for a value over the asked size: `{"$unread": n_bytes}`."""


def make_task(
    name: str,
    ns: str,
    task_id: str,
    path: str,
    rows: TaskRows | None,
    namespaces: Collection[str],
    *,
    results: bool = True,
) -> Task:
    """Returns a task with what its rows say.

    Args:
        name: The node's name, or `?`.
        ns: The namespace the task belongs to.
        task_id: Its id.
        path: Its path as stored, or as it would be stored.
        rows: Its rows, None where it has left none.
        namespaces: All namespaces of the thread, to find the one that its subgraph used.
        results: Whether to decode what it wrote.
    """
    if rows is not None and not rows.outline.has_control and not results and len(namespaces) == 1:
        return Task(task_id, name, path, bool(rows.output))  # most tasks of a long list
    has_control = rows is not None and rows.outline.has_control
    return Task(
        id=task_id,
        name=name,
        path=path,
        finished=rows is not None and rows.finished,
        error=error_of(rows) if rows and has_control else None,
        interrupts=interrupts_of(rows, name) if rows and has_control else (),
        result=result_of(rows) if results and rows and rows.finished else None,
        ns=_inner_ns(name, ns, task_id, namespaces),
        caught=rows is not None and has_control and any(w.channel == layout.ERROR_SOURCE_NODE for w in rows.writes),
    )


def _inner_ns(name: str, ns: str, task_id: str, namespaces: Collection[str]) -> str | None:
    """Returns the namespace that the task's subgraph used: one of its own, or one that all of its runs share."""
    if len(namespaces) == 1:
        return None
    inner = layout.task_ns(ns, name, task_id), layout.node_ns(ns, name)
    return next((candidate for candidate in inner if candidate in namespaces), None)


def result_of(rows: TaskRows) -> tuple[tuple[str, object], ...]:
    """Returns a task's writes to state channels, and what it returned, in order."""
    return tuple(
        (write.channel, readable(write))
        for write in rows.output
        if layout.is_state_channel(write.channel) or write.channel in (layout.RETURN, layout.END)
    )


def error_of(rows: TaskRows) -> str | None:
    """Returns the stored error of a task as text; it stays stored when a later attempt succeeds."""
    row = next((write for write in rows.writes if write.channel == layout.ERROR), None)
    if row is None:
        return None
    error = readable(row)
    return error if isinstance(error, str) else str(error)


def interrupts_of(rows: TaskRows, node: str) -> tuple[Interrupt, ...]:
    """Returns the last questions a task asked; they stay stored when they are answered."""
    found: list[Interrupt] = []
    for write in rows.writes:
        if write.channel == layout.INTERRUPT:
            value = readable(write)
            found += [_interrupt(item, rows.id, node) for item in (value if isinstance(value, list) else [value])]
    return tuple(found)


def _interrupt(value: object, task_id: str, node: str) -> Interrupt:
    """Returns one question from its stored form; forms before LangGraph 0.6 have `ns` in place of `id`."""
    if not isinstance(value, Mapping) or "value" not in value:
        return Interrupt(None, value, task_id, node)
    number = value.get("id") or value.get("interrupt_id")
    where = value.get("ns")
    if number is None and isinstance(where, list):
        number = xxh3_128_hexdigest(layout.NS_SEPARATOR.join(map(str, where)).encode())
    return Interrupt(str(number) if number is not None else None, value["value"], task_id, node)


def readable(write: WriteRow) -> object:
    """Returns the inert value of a write; where it was not read or cannot be, a stand-in that says so."""
    if write.value is None:
        return {UNREAD: write.n_bytes}
    return readable_value(write.value)


def readable_value(value: Stored) -> object:
    """Returns the inert value of stored bytes, or a text that says why it cannot be shown."""
    try:
        return decode(value)
    except DecodeError as error:
        return {"$unreadable": error.message}
