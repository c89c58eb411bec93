"""What every store can do. Reading is separate from writing: a `Reader` cannot change anything.

All methods may be called many times; each opens and ends its own short statement, so no cursor, transaction or lock
stays open between calls or while a caller pauses. Rows come newest first (by id, descending) unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agentctl.records.copies import Place, command
from agentctl.records.rows import CheckpointRow, MemoryItem, Stored, StoredCheckpoint, ThreadHead, WriteRow

StoreKind = Literal["sqlite", "postgres", "saver", "server"]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Which store this is. `url` has its password replaced; `profile` is the name it was reached by, or ''.

    `masked` says that a reader gives other values than the store holds, so that no row may be taken past the reader.
    """

    kind: StoreKind
    url: str
    profile: str = ""
    warnings: tuple[str, ...] = ()
    masked: bool = False

    def __str__(self) -> str:
        return f"{self.profile} ({self.kind})" if self.profile else self.url

    def target(self, thread: str) -> str:
        """Returns the text that names a thread of this store on the command line."""
        return Place(self.url, thread, None, self.profile).target

    @property
    def threads_command(self) -> str:
        """The command that lists the threads of this store."""
        return command("threads", f"{self.profile}::") if self.profile else "agentctl threads"


class Reader(Protocol):
    """A store open for looking."""

    info: StoreInfo

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """Returns one entry a thread that has root checkpoints, newest head first. Reads no state.

        Args:
            metadata: False leaves the head rows' metadata empty, which is much cheaper on SQLite: ids and counts come
                from an index alone. `rows(thread, ids=[head])` then reads it for the threads that are shown.
        """
        ...

    def namespaces(self, thread: str) -> Sequence[str]:
        """Returns the thread's checkpoint namespaces, sorted, '' included; empty where the thread is unknown."""
        ...

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """Returns the checkpoints of one namespace, newest first, without state.

        Args:
            thread: Exact thread id.
            ns: One namespace, bound in the query.
            ids: Only these checkpoints; None for all.
            metadata: False leaves `metadata` empty, which is much cheaper on SQLite for long threads.
        """
        ...

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """Yields checkpoints with their serialized values, in the order of `ids`; unknown ids are left out.

        Args:
            thread: Exact thread id.
            ns: Namespace.
            ids: Which checkpoints.
            channels: Values of only these channels; None for all, empty for bookkeeping alone.
            value_bytes: Values up to this many bytes are read, of larger ones only their size is told; None reads all.
        """
        ...

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """Returns pending writes stored on the checkpoints, ordered by checkpoint id, task path, task id, idx.

        Args:
            thread: Exact thread id.
            ns: Namespace.
            ids: Only writes of these checkpoints; None for all of the namespace.
            value_bytes: Values up to this many bytes are read, larger ones left None; 0 reads none; None reads all.
            channels: Only writes to these channels; None for all.
        """
        ...

    def find_run(self, run_id: str) -> Sequence[str]:
        """Returns the threads that have `run_id` as a run or trace id in their metadata (for error texts)."""
        ...

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """Returns the memory store's items kept beside the checkpoints, under `prefix`; empty where there is none."""
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...


WriteKey = tuple[str, str, str, int]
"""(namespace, checkpoint id, task id, idx): the key of one stored write inside a thread."""


@dataclass(frozen=True, slots=True)
class RowPick:
    """One checkpoint to copy and which of its writes come along.

    `writes`: `all`; `null_task` (only NULL-task rows other than `__resume__`: a re-execution); `none`.
    `except_tasks` leaves out the rows of those tasks. `channels` keeps only writes to those channels.
    `except_null_resume` leaves out the `__resume__` rows of the NULL task, which answer the next question asked.
    """

    ns: str
    id: str
    writes: Literal["all", "null_task", "none"] = "all"
    except_tasks: frozenset[str] = frozenset()
    channels: frozenset[str] | None = None
    except_null_resume: bool = False


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Which rows of one thread go into which new thread, and what is changed on the way.

    Attributes:
        thread: Source thread id.
        as_thread: Target thread id; it must not exist there.
        picks: Rows, root namespace first.
        edits: New values of stored writes.
        extra_writes: Writes that the source does not have; their `checkpoint_id` must be among the picks.
        provenance: Flat `agentctl_*` metadata merged into the newest picked root checkpoint, outside verification.
        run_from: The checkpoint id that the copy is to be run with; None runs it without an id, from its head.
    """

    thread: str
    as_thread: str
    picks: tuple[RowPick, ...]
    edits: Mapping[WriteKey, Stored] = field(default_factory=dict)
    extra_writes: tuple[WriteRow, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    run_from: str | None = None


class Writer(Reader, Protocol):
    """A store open for writing: a debug store, or the target of a copy."""

    def setup(self) -> None:
        """Creates the stock tables where they are missing."""
        ...

    def delete_thread(self, thread: str) -> int:
        """Deletes every row of a thread in every table, in one transaction; returns how many rows went."""
        ...
