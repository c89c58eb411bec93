"""Names that rows do not hold, found by trying candidates until LangGraph's own id function gives the stored id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from agentctl.records.rows import WriteRow
from agentctl.records.threads import UNKNOWN
from agentctl.stores.reading import layout
from agentctl.stores.reading.due import Bookkeeping
from agentctl.stores.reading.layout import TaskPath
from agentctl.stores.reading.taskrows import TaskRows

_FORMATS = (4, 1)
"""Checkpoint formats whose ids are made differently: with XXH3 since format 2, with SHA-1 before."""
_MAX_SENDS = 256
"""How many positions are tried for a task without a path."""


class Names:
    """Node names and triggers of one namespace's graph, learned from whatever rows are read.

    Args:
        ns: The namespace.
    """

    def __init__(self, ns: str) -> None:
        self._ns = ns
        self._nodes: dict[str, None] = {}
        self._joins: dict[str, set[str]] = {}
        self._triggers: dict[str, frozenset[str]] = {}

    def learn_from_writes(self, writes: Iterable[WriteRow]) -> None:
        """Learns the nodes that stored writes name in their channel or path."""
        for channel in {write.channel for write in writes}:
            self._learn_channel(channel)
        for path in {write.task_path for write in writes}:
            if node := layout.parse_task_path(path).node:
                self._nodes.setdefault(node)

    def learn_from_books(self, books: Iterable[Bookkeeping]) -> None:
        """Learns the nodes that ran and the channels that were written."""
        for book in books:
            self._nodes.update(dict.fromkeys(book.nodes))
            self._nodes.update(dict.fromkeys(name for name in book.due.names if name != UNKNOWN))
            for channel in book.channel_versions:
                self._learn_channel(channel)

    def learn_from_namespaces(self, namespaces: Iterable[str]) -> None:
        """Learns the nodes that have run a subgraph."""
        for namespace in namespaces:
            for part in namespace.split(layout.NS_SEPARATOR):
                if name := part.partition(layout.NS_END)[0]:
                    self._nodes.setdefault(name)

    def of_send(self, checkpoint_id: str, step: int, index: int, task_id: str) -> str | None:
        """Returns the node of the Send at `index` whose task has this id, or None where no known name fits."""
        for format in _FORMATS:
            for node in self._nodes:
                if layout.send_task_id(checkpoint_id, self._ns, step, node, index, format=format) == task_id:
                    return node
        for node in self._nodes:
            if layout.javascript_task_id(checkpoint_id, self._ns, step, node, layout.PUSH, str(index)) == task_id:
                return node
        return None

    def of_handler(self, checkpoint_id: str, step: int, task: TaskRows, failed: Iterable[tuple[str, TaskPath]]) -> str:
        """Returns the node of an error handler's task.

        Args:
            checkpoint_id: The checkpoint the step runs from.
            step: The step's number.
            task: The handler's rows.
            failed: Ids and paths of the tasks that may have failed.
        """
        own, default = layout.ERROR_HANDLER_NODES
        for failed_id, path in failed:
            for node in (f"{own}{path.node}", default, *(f"{own}{name}" for name in self._nodes)):
                for format in _FORMATS:
                    found = layout.handler_task_id(checkpoint_id, self._ns, step, node, failed_id, format=format)
                    if found == task.id:
                        return node
        return f"{own}{task.path.node}" if task.path.node else UNKNOWN

    def triggers(self, node: str, channels: Iterable[str]) -> frozenset[str]:
        """Returns the channels that make a node run, as far as rows tell.

        A join that never got a value is in no row, so the id of a task that left no rows can be another one.
        """
        if node in self._triggers:
            return self._triggers[node]
        if node == layout.START or (layout.BRANCH + node not in {*channels} and not self._is_branched(node)):
            return frozenset({layout.START})
        return frozenset({layout.BRANCH + node, *self._joins.get(node, ())})

    def identify(self, checkpoint_id: str, step: int, task_id: str) -> TaskPath | None:
        """Returns what a task without a stored path was, or None where no known name fits."""
        for node in self._nodes:
            if self._fits(checkpoint_id, step, node, task_id) or self._fits_javascript(
                checkpoint_id, step, node, task_id
            ):
                return TaskPath("pull", node)
        for index in range(_MAX_SENDS):
            if self.of_send(checkpoint_id, step, index, task_id):
                return TaskPath("send", None, index)
        return None

    def learn_triggers(self, checkpoint_id: str, step: int, node: str, task_id: str) -> None:
        """Learns which channels make a node run from the id of a task of it that did run; of interest with joins."""
        if node in self._joins and node not in self._triggers:
            self._fits(checkpoint_id, step, node, task_id)

    def _fits(self, checkpoint_id: str, step: int, node: str, task_id: str) -> bool:
        for triggers in self._possible_triggers(node):
            for format in _FORMATS:
                if layout.pull_task_id(checkpoint_id, self._ns, step, node, triggers, format=format) == task_id:
                    self._triggers[node] = triggers
                    return True
        return False

    def _fits_javascript(self, checkpoint_id: str, step: int, node: str, task_id: str) -> bool:
        """Says whether LangGraph.js would have given a task of the node this id: of its triggers it takes the first."""
        for channel in (layout.BRANCH + node, *self._joins.get(node, ()), layout.START):
            made = layout.javascript_task_id(checkpoint_id, self._ns, step, node, layout.PULL, [channel])
            if made == task_id:
                return True
        return False

    def _possible_triggers(self, node: str) -> Iterator[frozenset[str]]:
        joins = sorted(self._joins.get(node, ()))
        for count in range(len(joins), -1, -1):
            for chosen in combinations(joins, count):
                yield frozenset({layout.BRANCH + node, *chosen})
        yield frozenset({layout.START})

    def _is_branched(self, node: str) -> bool:
        return bool(self._joins.get(node))

    def _learn_channel(self, channel: str) -> None:
        node = layout.triggered_node(channel)
        if node is None:
            return
        self._nodes.setdefault(node)
        if channel.startswith(layout.JOIN):
            self._joins.setdefault(node, set()).add(channel)
