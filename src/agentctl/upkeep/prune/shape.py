"""A thread as pruning sees it: the checkpoints of its root graph, each with what lies below it in subgraphs.

A checkpoint of the root graph and the rows of the subgraphs that its step ran go together, or stay together. A subgraph
that keeps its state from call to call has one namespace for all of them, whose rows belong to many checkpoints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from agentctl.records.prunes import Key
from agentctl.records.rows import CheckpointRow
from agentctl.stores.base import Reader
from agentctl.stores.reading.ancestors import enclosing_ids
from agentctl.stores.reading.layout import NS_SEPARATOR, keeps_state
from agentctl.stores.reading.lineage import Tree, tree_of

ROOT = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows of one thread, without state.

    Attributes:
        thread: Thread id.
        rows: Every checkpoint, by key, with its metadata.
        trees: Its namespaces.
        below: What lies below each checkpoint of the root graph, outermost namespaces last, newest first in each.
        carried: Namespaces of subgraphs that keep their state.
        stray: Checkpoints below a root checkpoint that is not stored any more, but for those of `carried`.
    """

    thread: str
    rows: Mapping[Key, CheckpointRow]
    trees: Mapping[str, Tree]
    below: Mapping[str, Sequence[Key]]
    carried: tuple[str, ...]
    stray: tuple[Key, ...]

    @property
    def root(self) -> Tree:
        """The checkpoints of the root graph."""
        return self.trees[ROOT]

    def owner(self, key: Key) -> str | None:
        """Returns the root checkpoint that a row belongs to, None where it names none."""
        ns, id = key
        return id if ns == ROOT else enclosing_ids(self.rows[key]).get(ROOT)

    def unit(self, root_id: str) -> Iterator[Key]:
        """Yields the keys that go with a root checkpoint, in an order in which they can be taken away."""
        yield from self.below.get(root_id, ())
        yield (ROOT, root_id)

    def children_first(self) -> Iterator[str]:
        """Yields the root checkpoints, newest first, but never one before a child of its own (clocks differ)."""
        tree = self.root
        n_open = {id: len(tree.children.get(id, ())) for id in tree.ids}
        places = {id: place for place, id in enumerate(tree.ids)}
        ready = [places[id] for id, n in n_open.items() if n == 0]
        heapify(ready)
        while ready:
            id = tree.ids[heappop(ready)]
            yield id
            parent = tree.parents[id]
            if parent in n_open:
                n_open[parent] -= 1
                if n_open[parent] == 0:
                    heappush(ready, places[parent])


def read_shape(reader: Reader, thread: str) -> Shape:
    """Reads the rows of a thread. A root graph without rows has an empty tree."""
    rows: dict[Key, CheckpointRow] = {}
    trees: dict[str, Tree] = {ROOT: tree_of(())}
    for ns in reader.namespaces(thread):
        found = reader.rows(thread, ns)
        rows.update(((ns, row.id), row) for row in found)
        trees[ns] = tree_of(found)
    below: defaultdict[str, list[Key]] = defaultdict(list)
    stray: list[Key] = []
    root = trees[ROOT]
    for key in sorted(rows, key=_inner_first):
        if key[0] == ROOT:
            continue
        owner = enclosing_ids(rows[key]).get(ROOT)
        if owner in root.parents:
            below[str(owner)].append(key)
        elif owner is not None and not keeps_state(key[0]) and root.head is not None and owner < root.head:
            stray.append(key)
    carried = tuple(sorted(ns for ns in trees if keeps_state(ns)))
    return Shape(thread, rows, trees, below, carried, tuple(stray))


def _inner_first(key: Key) -> tuple[int, str, list[int]]:
    """Sorts inner namespaces before those around them, and the rows of each newest first."""
    ns, id = key
    return -ns.count(NS_SEPARATOR), ns, [-ord(letter) for letter in id]
