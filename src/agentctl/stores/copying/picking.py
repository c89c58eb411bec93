"""Which stored writes a pick takes, said three ways: of one row, of a list, and in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentctl.records.rows import NULL_TASK, WriteRow
from agentctl.stores.base import RowPick

RESUME_CHANNEL = "__resume__"


def takes(pick: RowPick, task_id: str, channel: str) -> bool:
    """Tells whether a pick takes a write of that task to that channel on its checkpoint."""
    if pick.writes == "none" or task_id in pick.except_tasks:
        return False
    if pick.channels is not None and channel not in pick.channels:
        return False
    if pick.writes == "null_task":
        return task_id == NULL_TASK and channel != RESUME_CHANNEL
    return not (pick.except_null_resume and task_id == NULL_TASK and channel == RESUME_CHANNEL)


def taken(picks: Mapping[str, RowPick], writes: Sequence[WriteRow]) -> Iterator[WriteRow]:
    """Yields the writes that the picks of one namespace, by checkpoint id, take."""
    for write in writes:
        if takes(picks[write.checkpoint_id], write.task_id, write.channel):
            yield write


def condition(pick: RowPick, mark: str) -> tuple[str, tuple[str, ...]]:
    """Returns SQL that is true for the writes that a pick takes, beginning with ` AND` or empty, and its parameters.

    Args:
        pick: Its namespace and id are not in the SQL.
        mark: The driver's placeholder: `?` or `%s`.
    """
    text, parameters = "", []
    if pick.writes == "null_task":
        text += f" AND task_id = {mark} AND channel <> {mark}"
        parameters += [NULL_TASK, RESUME_CHANNEL]
    elif pick.except_null_resume:
        text += f" AND NOT (task_id = {mark} AND channel = {mark})"
        parameters += [NULL_TASK, RESUME_CHANNEL]
    for name, values, negated in (("task_id", pick.except_tasks, "NOT "), ("channel", pick.channels, "")):
        if values:
            text += f" AND {name} {negated}IN ({', '.join([mark] * len(values))})"
            parameters += sorted(values)
    return text, tuple(parameters)


def by_namespace(picks: Sequence[RowPick]) -> dict[str, dict[str, RowPick]]:
    """Returns the picks by namespace and checkpoint id, in their order."""
    found: dict[str, dict[str, RowPick]] = {}
    for pick in picks:
        found.setdefault(pick.ns, {})[pick.id] = pick
    return found


def by_rule(picks: Sequence[RowPick]) -> dict[RowPick, list[RowPick]]:
    """Returns the picks that take any writes by what they take of them, so that each rule is one query.

    The key is a pick with an empty namespace and id.
    """
    found: dict[tuple[Any, ...], list[RowPick]] = {}
    for pick in picks:
        if pick.writes != "none" and (pick.channels is None or pick.channels):
            rule = (pick.writes, pick.except_tasks, pick.channels, pick.except_null_resume)
            found.setdefault(rule, []).append(pick)
    return {RowPick("", "", *rule): group for rule, group in found.items()}
