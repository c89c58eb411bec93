"""What a revision is resolved against: one thread's checkpoints, asked for piece by piece."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from agentctl.records.messages import CallSite
from agentctl.records.rows import CheckpointRow, Lineage


class Facts(Protocol):
    """One thread, read lazily: each method costs only what it says, and only when it is called."""

    @property
    def thread(self) -> str:
        """Exact thread id."""
        ...

    @property
    def place(self) -> str:
        """The thread as it is typed: with `PROFILE::` where it was reached by one. For hints."""
        ...

    def namespaces(self) -> Sequence[str]:
        """Returns the namespaces that have checkpoints, sorted; empty where the thread is unknown."""
        ...

    def has(self, ns: str, checkpoint_id: str) -> bool:
        """Returns whether the namespace holds that full id."""
        ...

    def ids(self, ns: str) -> Sequence[str]:
        """Returns every checkpoint id of a namespace, newest first. Ids only are read."""
        ...

    def head(self, ns: str) -> str | None:
        """Returns what `get_state` would load: the newest id of the namespace, or None."""
        ...

    def lineage(self, ns: str, tip: str) -> Lineage:
        """Returns the parent chain of `tip`, oldest first. Ids and parents are read; `metadata` may be empty."""
        ...

    def details(self, ns: str, ids: Collection[str]) -> Mapping[str, CheckpointRow]:
        """Returns rows with their metadata (step, source), by id."""
        ...

    def next(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the nodes about to run from each checkpoint; `?` stands for what rows cannot tell."""
        ...

    def wrote(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the nodes that made each checkpoint; `?` stands for what rows cannot tell."""
        ...

    def interrupts(self, ns: str, ids: Collection[str]) -> Collection[str]:
        """Returns those of `ids` whose step asked something. No values are read."""
        ...

    def errors(self, ns: str, ids: Collection[str]) -> Collection[str]:
        """Returns those of `ids` whose step failed. No values are read."""
        ...

    def calls(self, ns: str, tip: str, name: str) -> Sequence[CallSite]:
        """Returns the calls of a tool name or call id, in order from the lineage's start.

        Looked for on the parent chain of `tip` and in the namespaces below it.
        """
        ...

    def called(self, ns: str, tip: str) -> Sequence[str]:
        """Returns the tool names called there, without repetition, for error texts."""
        ...
