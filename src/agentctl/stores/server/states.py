"""A ThreadState of an Agent Server as our rows: what it says, and no more.

Keys that a version lacks or adds are tolerated. Values are JSON: messages are known by their shape, other types are
what JSON holds of them. Task results become writes, in the order in which they are stated; channel versions, routes,
writes of no task and @task calls are not stated.

Source: langgraph_api/state.py (`state_snapshot_to_thread_state`, langgraph-api 0.16.7); pregel/debug.py
(`tasks_w_writes`, `map_task_result_writes`) and pregel/_algo.py (`task_path_str`, langgraph 1.2.24).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from agentctl.errors import StoreError
from agentctl.records.rows import CheckpointRow, Stored, StoredCheckpoint, WriteRow
from agentctl.stores.bookkeeping import json_value
from agentctl.stores.reading.layout import END, ERROR, INTERRUPT, NO_WRITES
from agentctl.stores.stated import StatedTask

WITHOUT_VALUES: Final = ("checkpoint", "parent_checkpoint", "metadata", "created_at", "tasks")
"""The fields of a state that are read, but for its values."""

_ERROR_IDX: Final = -1
_INTERRUPT_IDX: Final = -3
"""Positions of these writes where they are stored. Source: `WRITES_IDX_MAP`, langgraph-checkpoint 4.3.2."""


class State(NamedTuple):
    """One state.

    Attributes:
        row: The checkpoint.
        tasks: Tasks of the step that runs from it.
        writes: What these wrote, and their errors and questions.
        values: The channel values, serialized as JSON; empty where they were not asked for.
        ts: When it was made, as stated.
    """

    row: CheckpointRow
    tasks: tuple[StatedTask, ...]
    writes: tuple[WriteRow, ...]
    values: Mapping[str, Stored]
    ts: str | None

    def slim(self, kept_bytes: int) -> State:
        """Returns the same without values, and without the values of writes that are larger than so many bytes."""
        writes = tuple(w if w.n_bytes <= kept_bytes else w._replace(value=None) for w in self.writes)
        return self._replace(values={}, writes=writes)

    def stored(self, channels: Collection[str] | None) -> StoredCheckpoint:
        """Returns the checkpoint with the values of only these channels; None for all."""
        values = {name: v for name, v in self.values.items() if channels is None or name in channels}
        return StoredCheckpoint(
            self.row, format=4, channel_versions={}, versions_seen={}, values=values, ts=self.ts, has_versions=False
        )


def parse_state(raw: Mapping[str, Any], thread: str, ns: str) -> State | None:
    """Returns a state, None where it is of no checkpoint: a thread on which nothing ran, an id that is not stored.

    Args:
        raw: The JSON object.
        thread: The thread that was asked for.
        ns: The namespace that was asked for.

    Raises:
        StoreError: It is of another thread or namespace than was asked for.
    """
    checkpoint = _map(raw.get("checkpoint"))
    checkpoint_id = _text(checkpoint.get("checkpoint_id")) or _text(raw.get("checkpoint_id"))
    metadata = raw.get("metadata")
    if not checkpoint_id or (metadata is None and raw.get("created_at") is None):
        return None
    _check_place(checkpoint, thread, ns)
    parent = _text(_map(raw.get("parent_checkpoint")).get("checkpoint_id")) or _text(raw.get("parent_checkpoint_id"))
    row = CheckpointRow(thread, ns, checkpoint_id, parent, dict(_map(metadata)))
    listed = raw.get("tasks")
    tasks = [_map(task) for task in listed] if isinstance(listed, list) else []
    return State(
        row=row,
        tasks=tuple(_task(task) for task in tasks),
        writes=tuple(write for task in tasks for write in _writes(row, task)),
        values=_values(raw.get("values")),
        ts=_text(raw.get("created_at")),
    )


def parse_time(text: object) -> datetime | None:
    """Returns a stated time in UTC, None where it is none."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def path_text(path: object) -> str:
    """Returns a task's path in its stored form."""
    if isinstance(path, list):
        return "~" + ", ".join(path_text(part) for part in path)
    return f"{path:010d}" if isinstance(path, int) else str(path or "")


def _check_place(checkpoint: Mapping[str, Any], thread: str, ns: str) -> None:
    given_thread, given_ns = _text(checkpoint.get("thread_id")), _text(checkpoint.get("checkpoint_ns")) or ""
    if given_thread is not None and given_thread.lower() != thread.lower():
        raise StoreError(
            f"the server was asked for thread {thread} and gave a state of {given_thread}",
            hint="its answers cannot be trusted: read the database it checkpoints into",
        )
    if given_ns != ns:
        raise StoreError(
            f"the server was asked for namespace {ns!r} and gave a state of {given_ns!r}",
            hint="it ignores namespaces: read the database it checkpoints into to see subgraphs",
        )


def _task(task: Mapping[str, Any]) -> StatedTask:
    inner = _map(task.get("checkpoint")) or _map(_map(task.get("state")).get("checkpoint"))
    return StatedTask(
        id=_text(task.get("id")) or "",
        name=_text(task.get("name")) or "?",
        path=path_text(task.get("path")),
        finished=task.get("result") is not None,
        ns=_text(inner.get("checkpoint_ns")),
    )


def _writes(row: CheckpointRow, task: Mapping[str, Any]) -> Iterator[WriteRow]:
    """Yields what a task wrote as it would be stored; a finished one that wrote nothing has a mark."""
    found: list[tuple[int, str, object]] = []
    interrupts = task.get("interrupts")
    if interrupts:
        found.append((_INTERRUPT_IDX, INTERRUPT, interrupts))
    if task.get("error") is not None:
        found.append((_ERROR_IDX, ERROR, task["error"]))
    result = task.get("result")
    if result is not None:
        found += [(idx, channel, value) for idx, (channel, value) in enumerate(_outputs(result))]
    for idx, channel, value in found:
        stored = json_value(value)
        yield WriteRow(
            row.ns,
            row.id,
            _text(task.get("id")) or "",
            path_text(task.get("path")),
            idx,
            channel,
            stored,
            len(stored.data),
        )


def _outputs(result: object) -> Iterator[tuple[str, object]]:
    if not isinstance(result, Mapping):
        yield END, result
        return
    if not result:
        yield NO_WRITES, None
    for channel, value in result.items():
        match value:
            case {"$writes": list(several)} if len(value) == 1:
                yield from ((channel, one) for one in several)
            case _:
                yield channel, value


def _values(values: object) -> Mapping[str, Stored]:
    """Returns channel values; those of a functional entrypoint are one value, which any JSON can be."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        return {END: json_value(values)}
    return {str(name): json_value(value) for name, value in values.items()}


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return str(value) if value else None
