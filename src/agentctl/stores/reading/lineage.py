"""The tree of a thread's checkpoints: parent chains, tips, the head, branches, common ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctl.errors import NotFound
from agentctl.records.copies import command
from agentctl.records.rows import CheckpointRow, Lineage
from agentctl.stores.base import Reader


@dataclass(frozen=True, slots=True)
class Tree:
    """The checkpoints of one namespace by id, with no state and no metadata.

    Attributes:
        ids: Every id, newest first.
        parents: Recorded parent of each id; it may name a checkpoint that is not stored.
        children: Ids by parent, oldest first; missing parents have entries too.
    """

    ids: tuple[str, ...]
    parents: Mapping[str, str | None]
    children: Mapping[str, Sequence[str]]

    @property
    def head(self) -> str | None:
        """The newest checkpoint: what `get_state(thread)` returns. None where there is none."""
        return self.ids[0] if self.ids else None

    @property
    def tips(self) -> tuple[str, ...]:
        """Checkpoints without children, newest first. The head may not be among them, when clocks differed."""
        return tuple(i for i in self.ids if not self.children.get(i))

    def chain(self, tip: str) -> Iterator[str]:
        """Yields `tip` and its ancestors as far as they are stored, newest first."""
        seen: set[str] = set()
        at: str | None = tip
        while at is not None and at in self.parents and at not in seen:
            seen.add(at)
            yield at
            at = self.parents[at]

    def dangling(self, checkpoint_id: str) -> str | None:
        """Returns the recorded parent of a checkpoint if it is not stored, else None."""
        parent = self.parents.get(checkpoint_id)
        return parent if parent is not None and parent not in self.parents else None

    def branches(self) -> Mapping[str, int]:
        """Returns every checkpoint's branch: 0 for the head's chain, then 1, 2 ... by tip, newest tip first.

        A checkpoint that several branches share has the lowest of their numbers.
        """
        found: dict[str, int] = {}
        starts = [self.head, *self.tips] if self.head else []
        number = 0
        for start in starts:
            if start is None or start in found:
                continue
            for checkpoint_id in self.chain(start):
                if checkpoint_id in found:
                    break
                found[checkpoint_id] = number
            number += 1
        for checkpoint_id in self.ids:
            found.setdefault(checkpoint_id, 0)
        return found


def read_tree(reader: Reader, thread: str, ns: str = "") -> Tree:
    """Reads the ids and parents of one namespace; of a thread without rows the tree is empty."""
    return tree_of(reader.rows(thread, ns, metadata=False))


def tree_of(rows: Iterable[CheckpointRow]) -> Tree:
    """Builds the tree of rows that all belong to one namespace."""
    parents = dict(sorted(((row.id, row.parent) for row in rows), reverse=True))
    children: dict[str, list[str]] = {}
    for checkpoint_id in reversed(parents):
        parent = parents[checkpoint_id]
        if parent is not None:
            children.setdefault(parent, []).append(checkpoint_id)
    return Tree(tuple(parents), parents, children)


def tips(rows: Iterable[CheckpointRow]) -> tuple[str, ...]:
    """Returns the ids of rows (of one namespace) that are nobody's parent, newest first."""
    return tree_of(rows).tips


def head_id(reader: Reader, thread: str, ns: str = "") -> str:
    """Returns the id of the newest checkpoint.

    Raises:
        NotFound: The thread, or this namespace of it, has no checkpoint.
    """
    head = read_tree(reader, thread, ns).head
    if head is None:
        raise no_checkpoints(reader, thread, ns)
    return head


def read_lineage(reader: Reader, thread: str, ns: str = "", tip: str | None = None) -> Lineage:
    """Reads a parent chain with its metadata, without state.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        tip: Last checkpoint of the chain; None for the head.

    Raises:
        NotFound: The thread, the namespace or the checkpoint does not exist.
    """
    tree = read_tree(reader, thread, ns)
    if tree.head is None:
        raise no_checkpoints(reader, thread, ns)
    end = tip or tree.head
    if end not in tree.parents:
        raise no_checkpoint(reader, thread, ns, end)
    chain = list(tree.chain(end))
    wanted = None if len(chain) == len(tree.ids) else chain
    rows = {row.id: row for row in reader.rows(thread, ns, ids=wanted)}
    ordered = tuple(rows[i] for i in reversed(chain) if i in rows)
    index = {row.id: position for position, row in enumerate(ordered)}
    return Lineage(ordered, dangling=tree.dangling(chain[-1]), index=index)


def common_ancestor(left: Lineage, right: Lineage) -> str | None:
    """Returns the newest checkpoint that both chains hold, or None. Ids survive copying, so stores may differ."""
    for row in reversed(left.rows):
        if row.id in right:
            return row.id
    return None


def no_checkpoints(reader: Reader, thread: str, ns: str) -> NotFound:
    """Returns the error for a thread or namespace without rows, naming what there is."""
    namespaces = reader.namespaces(thread)
    if namespaces and ns:
        return NotFound(
            f"thread {thread} has no namespace {ns!r}",
            hint=command("history", reader.info.target(thread), "--all"),
            candidates=[{"ns": name} for name in namespaces],
        )
    return NotFound(f"thread {thread} has no checkpoints in {reader.info}", hint=reader.info.threads_command)


def no_checkpoint(reader: Reader, thread: str, ns: str, checkpoint_id: str) -> NotFound:
    """Returns the error for an id that a namespace does not hold."""
    where = f" in namespace {ns!r}" if ns else ""
    return NotFound(
        f"thread {thread} has no checkpoint {checkpoint_id}{where}",
        hint=command("history", reader.info.target(thread), "--all"),
    )
