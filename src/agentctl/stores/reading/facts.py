"""One stored thread as revisions see it: each question costs its own query, and is asked once.

The head, the root, ids and parents need the ids of the namespace alone; steps read metadata; `interrupt` and `error`
read which channels were written; nodes and calls read what they must, and import their code only then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentctl.records.messages import CallSite
from agentctl.records.rows import CheckpointRow, Lineage
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.lineage import Tree, no_checkpoint, read_lineage, read_tree

if TYPE_CHECKING:
    from agentctl.stores.reading.steps import StepReader


@dataclass(slots=True)
class StoredFacts:
    """`revisions.facts.Facts` over a store open for reading.

    What was read is kept, so that one command sees one thread; rows that an application adds meanwhile are not.

    Attributes:
        reader: The store.
        thread: Exact thread id.
    """

    reader: Reader
    thread: str
    _namespaces: tuple[str, ...] | None = None
    _trees: dict[str, Tree] = field(default_factory=dict)
    _steps: dict[str, StepReader] = field(default_factory=dict)
    _calls: dict[tuple[str, str], tuple[CallSite, ...]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The thread as it is typed: with `PROFILE::` where it was reached by one."""
        profile = self.reader.info.profile
        return f"{profile}::{self.thread}" if profile else self.thread

    def namespaces(self) -> Sequence[str]:
        """Returns the namespaces that have checkpoints, sorted; empty where the thread is unknown."""
        if self._namespaces is None:
            self._namespaces = tuple(self.reader.namespaces(self.thread))
        return self._namespaces

    def has(self, ns: str, checkpoint_id: str) -> bool:
        """Returns whether the namespace holds that full id."""
        if ns in self._trees:
            return checkpoint_id in self._trees[ns].parents
        return bool(self.reader.rows(self.thread, ns, ids=[checkpoint_id], metadata=False))

    def ids(self, ns: str) -> Sequence[str]:
        """Returns every checkpoint id of a namespace, newest first."""
        return self._tree(ns).ids

    def head(self, ns: str) -> str | None:
        """Returns the newest id of the namespace, or None."""
        return self._tree(ns).head

    def lineage(self, ns: str, tip: str) -> Lineage:
        """Returns the parent chain of `tip`, oldest first, its rows without metadata.

        Raises:
            NotFound: the namespace does not hold `tip`.
        """
        tree = self._tree(ns)
        chain = list(tree.chain(tip))
        if not chain:
            raise no_checkpoint(self.reader, self.thread, ns, tip)
        chain.reverse()
        rows = tuple(CheckpointRow(self.thread, ns, id, tree.parents[id], {}) for id in chain)
        return Lineage(rows, tree.dangling(chain[0]), {id: position for position, id in enumerate(chain)})

    def details(self, ns: str, ids: Collection[str]) -> Mapping[str, CheckpointRow]:
        """Returns rows with their metadata, by id."""
        wanted = None if len(ids) == len(self._tree(ns).ids) else ids
        return {row.id: row for row in self.reader.rows(self.thread, ns, ids=wanted)} if ids else {}

    def next(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the nodes about to run from each checkpoint."""
        return self._step_reader(ns).next(ids)

    def wrote(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the nodes that made each checkpoint."""
        return self._step_reader(ns).wrote(ids)

    def interrupts(self, ns: str, ids: Collection[str]) -> Collection[str]:
        """Returns those of `ids` whose step asked something."""
        return self._written(ns, ids, layout.INTERRUPT)

    def errors(self, ns: str, ids: Collection[str]) -> Collection[str]:
        """Returns those of `ids` whose step failed."""
        return self._written(ns, ids, layout.ERROR)

    def calls(self, ns: str, tip: str, name: str) -> Sequence[CallSite]:
        """Returns the calls of a tool name or call id; a `@task` of the functional API is found by its name too."""
        return [site for site in self._all_calls(ns, tip, name) if name in (site.name, site.id)]

    def called(self, ns: str, tip: str) -> Sequence[str]:
        """Returns the tool names called there, without repetition."""
        return [name for name in _once(site.name for site in self._all_calls(ns, tip, "")) if name != UNKNOWN]

    def _all_calls(self, ns: str, tip: str, name: str) -> tuple[CallSite, ...]:
        """Reads calls once; again only where a `@task` is left whose name rows do not hold, to try this one on it."""
        known = self._calls.get((ns, tip))
        if known is None or (name and any(site.name == UNKNOWN for site in known)):
            from agentctl.stores.reading.calls import read_calls

            lineage = read_lineage(self.reader, self.thread, ns, tip)
            known = read_calls(self.reader, lineage, task_names=[name] if name else [])
            self._calls[ns, tip] = known
        return known

    def _written(self, ns: str, ids: Collection[str], channel: str) -> frozenset[str]:
        writes = self.reader.writes(self.thread, ns, ids, value_bytes=0, channels=[channel])
        return frozenset(write.checkpoint_id for write in writes)

    def _tree(self, ns: str) -> Tree:
        if ns not in self._trees:
            self._trees[ns] = read_tree(self.reader, self.thread, ns)
        return self._trees[ns]

    def _step_reader(self, ns: str) -> StepReader:
        if ns not in self._steps:
            from agentctl.stores.reading.steps import StepReader

            self._steps[ns] = StepReader(self.reader, self.thread, ns, tree=self._tree(ns), value_bytes=0)
        return self._steps[ns]


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
