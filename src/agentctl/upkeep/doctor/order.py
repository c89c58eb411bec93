"""The order in which a namespace is passed: parents before children, and little to remember on the way."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.stores.reading.lineage import Tree


def parents_first(tree: Tree) -> Iterator[str]:
    """Yields every id, each after its parent where that is stored; ids of a loop of parents come last.

    Where a thread forked, the branch with the most checkpoints comes last. So of n checkpoints at most log2(n) have to
    be remembered at any time because children of theirs are still to come.
    """
    sizes = _sizes(tree)
    roots = [id for id in reversed(tree.ids) if tree.parents[id] not in tree.parents]
    seen: set[str] = set()
    todo = sorted(roots, key=lambda id: -sizes[id])
    while todo:
        at = todo.pop()
        seen.add(at)
        yield at
        todo += sorted(tree.children.get(at, ()), key=lambda id: -sizes[id])
    yield from (id for id in reversed(tree.ids) if id not in seen)


def _sizes(tree: Tree) -> dict[str, int]:
    """Returns how many checkpoints each branch has, itself included. Ids may lie in any order (clocks differ)."""
    n_open = {id: len(tree.children.get(id, ())) for id in tree.ids}
    sizes = dict.fromkeys(tree.ids, 1)
    ready = [id for id, n in n_open.items() if n == 0]
    while ready:
        at = ready.pop()
        parent = tree.parents[at]
        if parent in sizes:
            sizes[parent] += sizes[at]
            n_open[parent] -= 1
            if n_open[parent] == 0:
                ready.append(parent)
    return sizes
