"""What a store states of the step that runs from a checkpoint, where it gives no rows to work that out from.

An Agent Server does: it hands out states as `get_state_history` makes them, with tasks, not the rows behind them. What
it states is shown as stated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from agentctl.stores.base import Reader


class StatedTask(NamedTuple):
    """One task of a step, as the store states it; its writes are given by `Reader.writes`.

    Attributes:
        id: Task id.
        name: Its node.
        path: Its path in the stored form (`~__pregel_pull, NODE`).
        finished: Whether the store states a result of it.
        ns: The namespace of the subgraph that it runs, None where none is stated.
    """

    id: str
    name: str
    path: str
    finished: bool
    ns: str | None = None


@runtime_checkable
class StatesTasks(Reader, Protocol):
    """A reader whose store states tasks."""

    def stated(self, thread: str, ns: str, ids: Collection[str]) -> Mapping[str, tuple[StatedTask, ...]]:
        """Returns the tasks of each checkpoint among `ids` that there is, in the order in which they are stated."""
        ...

    def holds(self, thread: str) -> bool:
        """Says whether the store has a thread, without reading its checkpoints."""
        ...

    def names(self) -> Sequence[str]:
        """Returns the ids of all threads, the one that was written to last first, without reading their heads."""
        ...

    def cut(self, thread: str, ns: str) -> str | None:
        """Returns why the checkpoints of a namespace that the store lists are not all there were, None where they are.

        The namespace must have been listed before.
        """
        ...


def holds(reader: Reader, thread: str) -> bool:
    """Says whether a store has a thread."""
    return reader.holds(thread) if isinstance(reader, StatesTasks) else bool(reader.namespaces(thread))


def thread_names(reader: Reader) -> Sequence[str]:
    """Returns the ids of the threads of a store that have a root graph, newest first."""
    return reader.names() if isinstance(reader, StatesTasks) else [h.thread for h in reader.heads(metadata=False)]


def is_cut(reader: Reader, thread: str, ns: str) -> bool:
    """Says whether a namespace that was listed lacks checkpoints that the store does not give."""
    return isinstance(reader, StatesTasks) and reader.cut(thread, ns) is not None
