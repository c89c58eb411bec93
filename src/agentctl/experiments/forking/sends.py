"""The Sends that run from a target, and which task is to answer a call that waits there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agentctl.codec.values import decode
from agentctl.experiments.forking.pairing import Pair
from agentctl.experiments.forking.point import Point
from agentctl.records.threads import Task
from agentctl.stores.base import Reader
from agentctl.stores.reading.layout import TASKS, parse_task_path


def owner_of(reader: Reader, point: Point, pair: Pair, tool_nodes: Collection[str]) -> Task | None:
    """Returns the task that is to answer a pending call: the Send that carries it, or the tool node that runs next."""
    sends = _sends(reader, point)
    for task in point.tasks:
        index = parse_task_path(task.path).index
        is_send = parse_task_path(task.path).kind == "send"
        if is_send and index is not None and index < len(sends) and mentions(sends[index], pair.call.id):
            return task
    known = [task for task in point.unfinished if task.name in tool_nodes and parse_task_path(task.path).kind == "pull"]
    return known[0] if len(known) == 1 else None


def _sends(reader: Reader, point: Point) -> Sequence[object]:
    """Returns the inert arguments of the Sends that run from the target, by position."""
    target = point.target
    for stored in reader.stored(target.thread, target.ns, [target.id], channels=[TASKS]):
        value = stored.values.get(TASKS)
        if value is not None and value.type != "empty":
            sends = decode(value)
            return sends if isinstance(sends, list) else []
    return []


def pending_sends(reader: Reader, point: Point) -> Sequence[object]:
    """Returns the inert Sends that run from the target; empty where it has none."""
    return _sends(reader, point) if any(parse_task_path(t.path).kind == "send" for t in point.tasks) else []


def mentions(value: object, call_id: str | None) -> bool:
    """Returns whether an inert value holds a tool call with that id; never where there is none."""
    if isinstance(value, Mapping):
        is_call = bool(call_id) and value.get("id") == call_id and "args" in value
        return is_call or any(mentions(inner, call_id) for inner in value.values())
    return isinstance(value, list) and any(mentions(inner, call_id) for inner in value)
