"""Tasks whose code finds a changed result of a call that it made, which no state tells."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.experiments.forking.made import Made
from agentctl.experiments.forking.point import Point
from agentctl.revisions.namespaces import node_path
from agentctl.sandbox.models.recording import Place
from agentctl.stores.reading.layout import RETURN, caller_path


def retold_places(point: Point, made: Made) -> frozenset[Place]:
    """Returns the places of the tasks that are handed a changed result of a @task call, however far around it."""
    edits = made.plan.edits if made.plan is not None else {}
    changed = {task for _, checkpoint, task, _ in edits if checkpoint == point.target.id}
    paths = (write.task_path for write in point.writes if write.channel == RETURN and write.task_id in changed)
    graph = node_path(point.target.ns)
    return frozenset((graph, caller) for path in paths for caller in _callers(path or ""))


def _callers(path: str) -> Iterator[str]:
    caller = caller_path(path)
    while caller is not None:
        yield caller
        caller = caller_path(caller)
