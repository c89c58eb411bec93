"""Any `BaseCheckpointSaver` as a store: the slow, general way, through its own `list` and `get_tuple`.

A saver hands out values already loaded, so its own serializer packs them again: the saver's code runs, and so does what
it does on its own account when it is read (the stock ones set up their tables). A saver's answer has no `task_path` and
no `idx`; the first stays unknown, the second is counted.

Source: langgraph-checkpoint 4.3.2, checkpoint/base/__init__.py (`BaseCheckpointSaver`, `WRITES_IDX_MAP`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agentctl.errors import AgentctlError, StoreError
from agentctl.records.rows import CheckpointRow, MemoryItem, Stored, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores import bookkeeping
from agentctl.stores.base import StoreInfo
from agentctl.stores.fetched import write_order
from agentctl.stores.saver_loading import OpenSaver

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple

T = TypeVar("T")


class SaverReader:
    """The saver that a Python file gives, open for looking; see `agentctl.stores.base.Reader`.

    Args:
        file: A .py file; it is run.
        attribute: A saver, a function that returns one, or a context manager that yields one, sync or async.
        profile: The name the store was reached by, or ''.

    Raises:
        StoreError: The file is missing, its code raised, or what it gives is no saver.
    """

    def __init__(self, file: Path, attribute: str, *, profile: str = "") -> None:
        self.info = StoreInfo("saver", f"{file}:{attribute}", profile)
        self._open = OpenSaver(file, attribute)

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """See `Reader.heads`. The saver lists everything it has."""
        newest: dict[str, CheckpointRow] = {}
        first: dict[str, str] = {}
        n_checkpoints: Counter[str] = Counter()
        for found in self._list(None):
            row = _row(found, metadata=metadata)
            if row.ns:
                continue
            n_checkpoints[row.thread] += 1
            first[row.thread] = min(first.get(row.thread, row.id), row.id)
            if row.thread not in newest or newest[row.thread].id < row.id:
                newest[row.thread] = row
        heads = [ThreadHead(thread, n, first[thread], newest[thread]) for thread, n in n_checkpoints.items()]
        return sorted(heads, key=lambda head: (head.head.id, head.thread), reverse=True)

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`."""
        return sorted({_row(found).ns for found in self._list(_config(thread))})

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`."""
        wanted = None if ids is None else frozenset(ids)
        rows = [_row(found, metadata=metadata) for found in self._list(_config(thread, ns))]
        chosen = [row for row in rows if row.ns == ns and (wanted is None or row.id in wanted)]
        return sorted(chosen, key=lambda row: row.id, reverse=True)

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """See `Reader.stored`. Values are what the saver's serializer makes of them now."""
        for checkpoint_id in dict.fromkeys(ids):
            found = self._get(_config(thread, ns, checkpoint_id))
            if found is not None:
                loaded: Mapping[str, object] = found.checkpoint.get("channel_values") or {}
                values = {
                    name: self._packed(value) for name, value in loaded.items() if channels is None or name in channels
                }
                whole = bookkeeping.from_document(_row(found), found.checkpoint, values)
                yield bookkeeping.without_large_values(whole, value_bytes)

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
        if ids is None:
            tuples = [found for found in self._list(_config(thread, ns)) if _row(found).ns == ns]
        else:
            got = [self._get(_config(thread, ns, checkpoint_id)) for checkpoint_id in dict.fromkeys(ids)]
            tuples = [found for found in got if found is not None]
        writes = [write for found in tuples for write in self._writes(found, value_bytes)]
        return sorted((write for write in writes if channels is None or write.channel in channels), key=write_order)

    def find_run(self, run_id: str) -> Sequence[str]:
        """See `Reader.find_run`."""
        rows = (_row(found) for found in self._list(None))
        return sorted({row.thread for row in rows if bookkeeping.names_run(row.metadata, run_id)})

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """Returns nothing: a saver holds no memory store."""
        return ()

    def close(self) -> None:
        """See `Reader.close`."""
        self._open.close()

    def _list(self, config: RunnableConfig | None) -> Sequence[CheckpointTuple]:
        from langgraph.checkpoint.base import BaseCheckpointSaver

        saver = self._open.saver
        if type(saver).list is not BaseCheckpointSaver.list:
            return self._asked(lambda: list(saver.list(config)))

        async def listed() -> Sequence[CheckpointTuple]:
            return [found async for found in saver.alist(config)]

        return self._asked(lambda: self._open.run(listed()))

    def _get(self, config: RunnableConfig) -> CheckpointTuple | None:
        from langgraph.checkpoint.base import BaseCheckpointSaver

        saver = self._open.saver
        if type(saver).get_tuple is not BaseCheckpointSaver.get_tuple:
            return self._asked(lambda: saver.get_tuple(config))
        return self._asked(lambda: self._open.run(saver.aget_tuple(config)))

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except AgentctlError:
            raise
        except Exception as error:
            raise StoreError(
                f"the saver of {self.info.url} raised {type(error).__name__}: {error}",
                hint="check that the application itself can read the thread with this saver",
            ) from error

    def _packed(self, value: object) -> Stored:
        type_, data = self._asked(lambda: self._open.saver.serde.dumps_typed(value))
        return Stored(type_, bytes(data))

    def _writes(self, found: CheckpointTuple, value_bytes: int | None) -> Iterator[WriteRow]:
        from langgraph.checkpoint.base import WRITES_IDX_MAP

        row = _row(found)
        n_written: Counter[str] = Counter()
        for task_id, channel, value in found.pending_writes or ():
            idx = WRITES_IDX_MAP.get(channel, n_written[task_id])
            n_written[task_id] += 1 if idx >= 0 else 0
            packed = self._packed(value)
            is_read = value_bytes is None or (value_bytes > 0 and len(packed.data) <= value_bytes)
            yield WriteRow(row.ns, row.id, task_id, None, idx, channel, packed if is_read else None, len(packed.data))


def _row(found: CheckpointTuple, *, metadata: bool = True) -> CheckpointRow:
    configurable: Mapping[str, Any] = found.config["configurable"]
    parent: Mapping[str, Any] = (found.parent_config or {}).get("configurable", {})
    return CheckpointRow(
        thread=str(configurable["thread_id"]),
        ns=configurable.get("checkpoint_ns") or "",
        id=configurable["checkpoint_id"],
        parent=parent.get("checkpoint_id"),
        metadata=dict(found.metadata or {}) if metadata else {},
    )


def _config(thread: str, ns: str | None = None, checkpoint_id: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    return {"configurable": {name: value for name, value in configurable.items() if value is not None}}
