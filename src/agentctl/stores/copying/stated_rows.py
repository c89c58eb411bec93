"""Rows made from the states that an Agent Server states, so that a copy of them is read and run by stock LangGraph.

A server gives states, not rows. Ids, parents, metadata, times, values, tasks with results, errors and questions are
stated and kept. Made from them are:

- the form of values: messages by their shape, all else as the JSON that it is;
- channel versions: a version says at which checkpoint of the namespace the value came to be, so equal versions mean
  equal values, as they do in rows that LangGraph wrote;
- what runs next: one `branch:to:NODE` channel a node, `__start__` with what its task wrote, a Send for each one stated.
  LangGraph gives a node's task the id that the server gives it: ids come from checkpoint, step, name and triggers;
- where finished tasks went on to: what the next checkpoint has to run.

What cannot be made is written into the metadata of the checkpoint (`lacks`), and its runs are refused: the payloads of
Sends, and where tasks that finished beside one that did not would have gone on to.

Source: langgraph 1.2.24, pregel/_algo.py (`prepare_single_task`, `_triggers`, `apply_writes`), graph/state.py
(`attach_node`: every node has a `branch:to:` channel among its triggers).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from agentctl.records.rows import CheckpointRow, MemoryItem, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores.base import Reader
from agentctl.stores.copying import lacks
from agentctl.stores.copying.stated_space import Space
from agentctl.stores.copying.stated_values import made_write, packed
from agentctl.stores.fetched import write_order
from agentctl.stores.reading.layout import START, TASKS
from agentctl.stores.stated import StatesTasks

_DELTA: Final = "counters_since_delta_snapshot"


def as_rows(reader: Reader) -> Reader:
    """Returns a reader whose rows can be copied and run: the same one, unless its store states tasks."""
    return StatedRows(reader) if isinstance(reader, StatesTasks) else reader


class StatedRows:
    """The states of a store as rows; see `agentctl.stores.base.Reader`.

    Args:
        reader: The store.
    """

    def __init__(self, reader: StatesTasks) -> None:
        self.info = reader.info
        self.source = reader
        self._spaces: dict[tuple[str, str], Space] = {}

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """See `Reader.heads`."""
        return self.source.heads(metadata=metadata)

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`."""
        return self.source.namespaces(thread)

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`."""
        rows = self.source.rows(thread, ns, ids=ids, metadata=metadata)
        return [self._space(thread, ns).marked(row) for row in rows] if metadata else rows

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """See `Reader.stored`."""
        space = self._space(thread, ns)
        asked = channels if channels is None else [name for name in channels if name not in (START, TASKS)]
        for stored in self.source.stored(thread, ns, ids, channels=asked, value_bytes=value_bytes):
            routes = space.due(stored.row.id)
            values = {name: packed(value) for name, value in stored.values.items()}
            values |= {name: value for name, value in routes.items() if channels is None or name in channels}
            yield replace(
                stored,
                row=space.marked(stored.row),
                channel_versions=space.channel_versions(stored.row.id),
                versions_seen=space.versions_seen(stored.row.id),
                values=values,
            )

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """See `Reader.writes`."""
        space = self._space(thread, ns)
        stated = [made_write(write) for write in self.source.writes(thread, ns, ids, value_bytes=value_bytes)]
        wanted = space.ids if ids is None else [id for id in ids if id in space.ids]
        routes = [route for id in wanted for route in space.routes(id, value_bytes)]
        return sorted(
            (one for one in (*stated, *routes) if channels is None or one.channel in channels), key=write_order
        )

    def find_run(self, run_id: str) -> Sequence[str]:
        """See `Reader.find_run`."""
        return self.source.find_run(run_id)

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """See `Reader.memory`."""
        return self.source.memory(prefix)

    def close(self) -> None:
        """See `Reader.close`."""
        self.source.close()

    def warnings(self, thread: str, picked: Collection[tuple[str, str]]) -> tuple[str, ...]:
        """Returns what a copy of these checkpoints, given by namespace and id, does not hold as the application did."""
        spaces = {ns: self._space(thread, ns) for ns, _ in picked}
        rows = [row for ns, id in picked for row in spaces[ns].rows if row.id == id]
        marked = [spaces[ns].marked(row) for ns, id in picked for row in spaces[ns].rows if row.id == id]
        found = [cut for ns in spaces if (cut := self.source.cut(thread, ns)) is not None]
        if untyped := sorted({name for space in spaces.values() for name in space.untyped}):
            found.append(
                f"types other than messages are not stated: {', '.join(untyped)}"
                " hold the JSON of their values, so a date is text there and an object a dict"
            )
        if deltas := sorted({str(name) for row in rows for name in _map(row.metadata.get(_DELTA))}):
            found.append(f"changes of delta channels are not stated: {', '.join(deltas)} hold whole values")
        for key, verb in ((lacks.TO_REPLAY, "replayed"), (lacks.TO_RESUME, "resumed")):
            lacking = [row for row in marked if key in row.metadata]
            if lacking:
                what = "; ".join(sorted({str(row.metadata[key]) for row in lacking}))
                found.append(f"{len(lacking)} of {len(marked)} checkpoints can be shown but not {verb}: {what}")
        return tuple(found)

    def _space(self, thread: str, ns: str) -> Space:
        if (thread, ns) not in self._spaces:
            self._spaces[thread, ns] = Space(self.source, thread, ns)
        return self._spaces[thread, ns]


def _map(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else {}
