"""The nodes that ran on a branch, in order, those of subgraphs with their path: as a run report lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctl.datasets.branch import Branch
from agentctl.records.rows import CheckpointRow
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import Reader
from agentctl.stores.reading.layout import NS_END, NS_SEPARATOR, START
from agentctl.stores.reading.steps import StepReader

NOT_NODES = frozenset({UNKNOWN, START})


def read_steps(branch: Branch) -> Mapping[str, tuple[str, ...]]:
    """Returns the nodes that made each checkpoint of a branch, each before those that ran inside it."""
    made: dict[str, tuple[str, ...]] = {}
    for part in branch.parts:
        below = _Below(part.reader, part.thread, tuple(part.reader.namespaces(part.thread)))
        for row, nodes in below.steps(part.ns, part.lineage.rows, ""):
            if nodes or row.id not in made:
                made[row.id] = nodes
    return made


@dataclass(frozen=True, slots=True)
class _Below:
    """A thread's namespaces."""

    reader: Reader
    thread: str
    namespaces: tuple[str, ...]

    def steps(
        self, ns: str, rows: Sequence[CheckpointRow], path: str
    ) -> Iterator[tuple[CheckpointRow, tuple[str, ...]]]:
        """Yields the nodes that made each of the rows, which are of one namespace and oldest first."""
        wrote = StepReader(self.reader, self.thread, ns).wrote([row.id for row in rows])
        inner = self._ran_inside(ns)
        for row in rows:
            nodes: list[str] = []
            waiting = list(inner.get(row.parent or "", ()))
            for name in wrote.get(row.id, ()):
                if name in NOT_NODES:
                    continue
                nodes.append(path + name)
                child = next((child for child in waiting if _node_of(child) == name), None)
                if child is not None:
                    waiting.remove(child)
                    nodes += self._nodes_of(child, row.parent or "", ns, f"{path}{name}|")
            yield row, tuple(nodes)

    def _ran_inside(self, ns: str) -> Mapping[str, Sequence[str]]:
        """Returns the namespaces right below `ns`, by the checkpoint of `ns` whose step ran them."""
        found: dict[str, list[str]] = {}
        for child in self.namespaces:
            if not _is_child(child, ns):
                continue
            for row in self.reader.rows(self.thread, child):
                above = _enclosing(row, ns)
                if child not in found.setdefault(above, []):
                    found[above].append(child)
        return found

    def _nodes_of(self, child: str, above: str, ns: str, path: str) -> Iterator[str]:
        """Yields what ran in a namespace while one step of the namespace above ran."""
        rows = [row for row in reversed(self.reader.rows(self.thread, child)) if _enclosing(row, ns) == above]
        for _, nodes in self.steps(child, rows, path):
            yield from nodes


def _enclosing(row: CheckpointRow, ns: str) -> str:
    parents = row.metadata.get("parents")
    return str(parents.get(ns, "")) if isinstance(parents, Mapping) else ""


def _is_child(child: str, ns: str) -> bool:
    """A namespace is a child where it names one node more."""
    prefix = ns + NS_SEPARATOR if ns else ""
    return child != ns and child.startswith(prefix) and len(_named(child.removeprefix(prefix))) == 1


def _node_of(child: str) -> str:
    return _named(child)[-1].split(NS_END, 1)[0]


def _named(ns: str) -> list[str]:
    """Returns the segments that name nodes; a number counts the subgraphs that one task called."""
    return [part for part in ns.split(NS_SEPARATOR) if not part.isdigit()]
