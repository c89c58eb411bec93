"""Calls of @task functions (functional API): what their stored results tell.

A row holds a call's result and place, not its arguments and not its name. The name is part of the task's id, so a name
that somebody knows can be proved right.

Source: prepare_push_task_functional, langgraph/pregel/_algo.py (langgraph 1.2.24).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from agentctl.codec.messages import text_of
from agentctl.codec.values import decode
from agentctl.errors import DecodeError
from agentctl.records.messages import CallSite, Message
from agentctl.records.rows import CheckpointRow, Lineage, WriteRow
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout


def task_calls(reader: Reader, lineage: Lineage, names: Collection[str]) -> Iterator[CallSite]:
    """Yields the @task calls that returned on a lineage, in the order they were made; `occurrence` is not counted.

    Args:
        reader: Where the thread lives.
        lineage: Checkpoints of one namespace.
        names: Names to try; a call that none of them fits is named `?`.
    """
    tip = lineage.tip
    returned = reader.writes(tip.thread, tip.ns, [row.id for row in lineage.rows], channels=[layout.RETURN])
    with_calls = list(dict.fromkeys(write.checkpoint_id for write in returned))
    for checkpoint_id in sorted(with_calls, key=lambda id: lineage.index[id]):
        at = lineage.index[checkpoint_id]
        here = [write for write in returned if write.checkpoint_id == checkpoint_id]
        callers = _Callers(reader, lineage.rows[at], names)
        for write in sorted(here, key=lambda write: write.task_path or ""):
            path = layout.parse_task_path(write.task_path)
            if path.kind == "call":
                name = callers.name_of(write.task_path or "", write.task_id) or UNKNOWN
                yield CallSite(
                    name=name,
                    id=write.task_id,
                    args=None,
                    occurrence=0,
                    ns=tip.ns,
                    pending_at=checkpoint_id,
                    answered_at=lineage.rows[at + 1].id if at + 1 < len(lineage.rows) else None,
                    answer=_answer(name, write),
                    position=path.index or 0,
                    ai_message_id=None,
                )


def names_in(namespaces: Iterable[str]) -> Iterator[str]:
    """Yields the names of nodes and tasks that ran a subgraph."""
    for ns in namespaces:
        for part in ns.split(layout.NS_SEPARATOR):
            if name := part.partition(layout.NS_END)[0]:
                yield name


class _Callers:
    """The tasks of one checkpoint's step, for finding the namespace in which each made its calls."""

    def __init__(self, reader: Reader, row: CheckpointRow, names: Collection[str]) -> None:
        self._row = row
        self._step = (row.step if row.step is not None else -1) + 1
        self._names = names
        writes = reader.writes(row.thread, row.ns, [row.id], value_bytes=0)
        self._ids = {write.task_path: write.task_id for write in writes if write.task_path}

    def name_of(self, path: str, task_id: str) -> str | None:
        """Returns the name that gives a call its id, or None."""
        caller_ns = self._namespace(layout.caller_path(path))
        if caller_ns is None:
            return None
        for name in self._names:
            if layout.call_task_id(self._row.id, caller_ns, self._step, name, path) == task_id:
                return name
        return None

    def _namespace(self, path: str | None) -> str | None:
        """Returns the namespace of the task at `path`: that of a node, or of another call."""
        if path is None:
            return None
        parsed = layout.parse_task_path(path)
        if parsed.kind == "pull" and parsed.node is not None:
            task_id = self._ids.get(path) or self._entry_id(parsed.node)
            return layout.task_ns(self._row.ns, parsed.node, task_id)
        if parsed.kind == "call" and path in self._ids:
            outer, name = self._namespace(layout.caller_path(path)), self.name_of(path, self._ids[path])
            return None if outer is None or name is None else layout.task_ns(outer, name, self._ids[path])
        return None

    def _entry_id(self, node: str) -> str:
        """Returns the id of an entrypoint's task that has left no row of its own yet."""
        return layout.pull_task_id(self._row.id, self._row.ns, self._step, node, _ENTRY_TRIGGERS)


_ENTRY_TRIGGERS: Sequence[str] = (layout.START,)


def _answer(name: str, write: WriteRow) -> Message | None:
    if write.value is None:
        return None
    try:
        content = decode(write.value)
    except DecodeError as error:
        return Message("tool", None, None, error.message, name=name, tool_call_id=write.task_id, status="unreadable")
    return Message("tool", None, content, text_of(content), name=name, tool_call_id=write.task_id, status="success")
