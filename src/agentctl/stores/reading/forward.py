"""What the stored writes of a lineage say must run next, without reading any state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentctl.stores.reading.layout import JOIN, TASKS, join_is_complete, triggered_node
from agentctl.stores.reading.taskrows import CheckpointWrites


def agrees(made_by: CheckpointWrites, here: CheckpointWrites) -> bool:
    """Says whether the tasks stored on a checkpoint include all that the step before it asked for.

    They do not where a task left no rows, or where a deferred node was asked for and has to wait.

    Args:
        made_by: Writes on the parent, whose tasks made the checkpoint.
        here: Writes on the checkpoint.
    """
    ran: list[str | None] = []
    n_sent = 0
    for task in here.step:
        if task.path.kind == "pull":
            ran.append(task.path.node)
        elif task.path.kind == "send":
            n_sent -= 1
    for task in made_by.finished:
        if not task.outline.asked.issubset(ran):
            return False
        n_sent += task.outline.n_sends
    return n_sent == 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Triggers that were written on a lineage and whose node has not run since.

    Attributes:
        nodes: Nodes that are waiting to run.
        arrivals: Sides that have arrived at joins which are not complete.
        fresh: Whether the last step sent to a node or arrived at a join: a side that arrived before the stretch that
            was looked at is not seen, so any arrival may complete its join.
        certain: False after a fork or an update, which may have brought triggers along that no rows tell of.
    """

    nodes: frozenset[str] = frozenset()
    arrivals: Mapping[str, frozenset[str]] = field(default_factory=dict)
    fresh: bool = False
    certain: bool = True

    @property
    def nothing_due(self) -> bool:
        """Whether surely nothing is left to run."""
        return self.certain and not (self.nodes or self.fresh)

    def after(self, made_by: CheckpointWrites) -> Waiting:
        """Returns what waits after the step whose writes these are."""
        ran = {task.path.node for task in made_by.finished if task.path.node}
        nodes = self.nodes - ran
        arrivals = {channel: names for channel, names in self.arrivals.items() if triggered_node(channel) not in ran}
        fresh = False
        for task in made_by.finished:
            for write in task.output:
                target = triggered_node(write.channel)
                if write.channel == TASKS:
                    fresh = True
                elif target is None:
                    continue
                elif write.channel.startswith(JOIN):
                    fresh = True
                    arrived = arrivals.get(write.channel, frozenset()) | {task.path.node or ""}
                    arrivals[write.channel] = arrived
                    if join_is_complete(write.channel, arrived):
                        nodes |= {target}
                else:
                    nodes |= {target}
        return Waiting(nodes, arrivals, fresh, self.certain)
