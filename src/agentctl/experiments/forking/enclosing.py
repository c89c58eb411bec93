"""The tool calls inside which a target in a namespace lies: a run has to make them to get there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from agentctl.experiments.experiment import Target
from agentctl.experiments.forking.point import read_point
from agentctl.experiments.forking.sends import mentions, pending_sends
from agentctl.stores.base import Reader
from agentctl.stores.reading.layout import parse_task_path


def enclosing_calls(reader: Reader, target: Target, is_state: Callable[[str], bool]) -> frozenset[str]:
    """Returns the ids of the tool calls inside which a target in a namespace lies.

    Where one task made several calls it cannot be told in which of them the namespace arose: then those count whose
    tool runs a graph.

    Args:
        reader: Where the thread lives.
        target: The target.
        is_state: Says of a tool name whether it touches graph state only or runs another graph.
    """
    row = next(iter(reader.rows(target.thread, target.ns, ids=[target.id])), None)
    parents = row.metadata.get("parents") if row is not None else None
    found: set[str] = set()
    for outer, id in parents.items() if isinstance(parents, Mapping) else ():
        inside = target.ns[len(outer) + 1 :] if outer else target.ns
        task_id = inside.partition("|")[0].rpartition(":")[2]
        point = read_point(reader, replace(target, ns=str(outer), id=str(id)))
        task = next((task for task in point.tasks if task.id == task_id), None)
        if task is None:
            continue
        found |= {own.stored.call.id or "" for own in point.made if own.task == task and is_state(own.stored.call.name)}
        path, sends = parse_task_path(task.path), pending_sends(reader, point)
        if path.kind == "send" and path.index is not None and path.index < len(sends):
            sent = sends[path.index]
            found |= {pair.call.id or "" for pair in point.open_pairs if mentions(sent, pair.call.id)}
        else:
            found |= {pair.call.id or "" for pair in point.open_pairs if is_state(pair.call.name)}
    return frozenset(found - {""})
