"""What the stored writes of a lineage say must run next, without reading any state."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.stores.reading.layout import BRANCH, JOIN, TASKS, join_is_complete, triggered_node
from agentctl.stores.reading.taskrows import CheckpointWrites


def agrees(made_by: CheckpointWrites, here: CheckpointWrites) -> bool:
    """Says whether the tasks stored on a checkpoint include all that the step before it asked for.

    They do not where a task left no rows, or where a deferred node was asked for and has to wait.

    Args:
        made_by: Writes on the parent, whose tasks made the checkpoint.
        here: Writes on the checkpoint.
    """
    asked: set[str] = set()
    n_sends = 0
    for task in made_by.finished:
        for write in task.output:
            if write.channel == TASKS:
                n_sends += 1
            elif write.channel.startswith(BRANCH):
                asked.add(write.channel[len(BRANCH) :])
    ran = {task.path.node for task in here.step if task.path.kind == "pull"}
    return asked <= ran and n_sends == sum(task.path.kind == "send" for task in here.step)


def nothing_due(steps: Iterable[CheckpointWrites]) -> bool:
    """Says whether a run of steps surely left nothing to run.

    Args:
        steps: Writes of consecutive checkpoints of one lineage, oldest first, each of which ran to its end. A longer
            stretch finds older triggers that still wait, such as those of a deferred node.
    """
    waiting: set[str] = set()
    arrived: dict[str, set[str]] = {}
    fresh = False
    for writes in steps:
        finished = writes.finished
        ran = {task.path.node for task in finished if task.path.node}
        waiting -= ran
        for channel in [channel for channel in arrived if triggered_node(channel) in ran]:
            del arrived[channel]
        fresh = False
        for task in finished:
            for write in task.output:
                target = triggered_node(write.channel)
                if write.channel == TASKS:
                    fresh = True
                elif write.channel.startswith(JOIN):
                    # A side that arrived before this stretch is not seen here, so any arrival may complete the join.
                    fresh = True
                    arrived.setdefault(write.channel, set()).add(task.path.node or "")
                    if target and join_is_complete(write.channel, arrived[write.channel]):
                        waiting.add(target)
                elif target:
                    waiting.add(target)
    return not waiting and not fresh
