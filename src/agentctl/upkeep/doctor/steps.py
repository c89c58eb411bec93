"""Steps: what ran, what it left, and what waits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from agentctl.records.rows import CheckpointRow
from agentctl.records.threads import Task
from agentctl.stores.reading.layout import BRANCH, END, NOT_NODES, PREVIOUS, TASKS, is_state_channel
from agentctl.upkeep.doctor.records import Finding, Findings, Head, Kept, Visit

_ROUTES_APART_IN_FORMAT: Final = 3
"""Formats before have channels for nodes among those of state."""
_EMPTY_LISTS: Final = (b"\x90", b"[]")


def task_failed(head: Head) -> Findings:
    """Nodes of the root graph that raised; what raised in a subgraph is stored for the node that ran it too."""
    if head.site.ns:
        return
    for task in head.step.tasks:
        if task.error is not None and not task.settled:
            cause = f"{task.name} raised {_first_line(task.error)}"
            yield Finding("task_failed", head.id, cause, head.site.command("replay", head.site.at(head.id)), task.id)


def router_failed(head: Head) -> Findings:
    """Nodes that raised after they had written: it was their routing, and nothing is left to run.

    A node that raised and succeeded when it was run again has its old error beside its writes too, but then the step
    went on, or waits for another node.
    """
    tasks = head.step.tasks
    if not tasks or not all(task.finished for task in tasks):
        return
    for task in tasks:
        if task.error is not None:
            cause = f"{task.name} finished, and its routing raised {_first_line(task.error)}: nothing is due"
            yield Finding("router_failed", head.id, cause, head.site.command("replay", head.site.at(head.id)), task.id)


def route_lost(visit: Visit) -> Findings:
    """Routes to a node that the graph did not have when it ran: LangGraph drops them with a line in the log."""
    parent = visit.ran_from_parent
    if parent is None:
        return
    for task in parent.writes.finished:
        for node in sorted(task.outline.asked):
            if BRANCH + node not in visit.state.channel_versions:
                cause = f"{task.path.node or 'a task'} routed to {node}, which the graph did not have: nothing ran"
                helps = visit.site.command("replay", visit.site.at(parent.row.id))
                yield Finding("router_failed", parent.row.id, cause, helps, (parent.row.id, node))


def write_lost(visit: Visit) -> Findings:
    """Channels that a step changed, and that no write stored for the step names, although others are stored.

    A run that dies before its step is over goes on without such a write. LangGraph.js on SQLite lost them where a
    question had the same place (langgraphjs pull 2516).
    """
    parent = visit.ran_from_parent
    if parent is None or not parent.writes.finished or visit.state.format < _ROUTES_APART_IN_FORMAT:
        return
    stored = (*parent.writes.finished, *parent.writes.updates, *((parent.writes.null,) if parent.writes.null else ()))
    written = {write.channel for task in stored for write in task.writes}
    lost = sorted({_shown(channel) for channel in _changed(visit, parent) if channel not in written})
    if lost:
        cause = f"the step changed {', '.join(lost)}, and no stored write of {parent.row.id[-8:]} says so"
        helps = visit.site.command("diff", visit.site.at(parent.row.id), visit.site.at(visit.row.id))
        yield Finding("writes_missing", parent.row.id, cause, helps, (parent.row.id, "channels"))


def _changed(visit: Visit, parent: Kept) -> Iterator[str]:
    """Yields the channels with another version and another value than the parent's, and routes that were taken.

    A channel that a step empties by itself, as a Topic, is written by nobody; a join also drops names by itself.
    """
    for channel, digest in visit.kept.digests.items():
        is_route = channel.startswith(BRANCH)
        if not (is_route or channel in (TASKS, END, PREVIOUS) or is_state_channel(channel)):
            continue
        value = visit.state.values.get(channel)
        if value is None or value.data not in _EMPTY_LISTS:
            is_newer = visit.state.channel_versions.get(channel) != parent.channel_versions.get(channel)
            if is_newer and (is_route or digest != parent.digests.get(channel)):
                yield channel


def _shown(channel: str) -> str:
    if channel.startswith(BRANCH):
        return f"the route to {channel.removeprefix(BRANCH)}"
    return {TASKS: "the Sends", END: "the result", PREVIOUS: "what is kept for the next run"}.get(channel, channel)


def sends_lost(visit: Visit) -> Findings:
    """Tasks that a Send had asked for, and of which the step has stored nothing: no version tells that they ran."""
    parent = visit.ran_from_parent
    if parent is None or not (parent.writes.step or parent.each_step) or parent.writes.rerouted:
        return
    if any(task.path.kind == "unknown" for task in parent.writes.step):
        return
    stored = {task.path.index for task in parent.writes.step if task.path.kind == "send"}
    n_lost = sum(index not in stored for index in range(parent.n_sends))
    if n_lost:
        what = f"{n_lost} of {parent.n_sends} tasks that were sent"
        cause = f"{what} ran from {parent.row.id[-8:]}, and nothing that they wrote is stored there"
        helps = visit.site.command("diff", visit.site.at(parent.row.id), visit.site.at(visit.row.id))
        yield Finding("writes_missing", parent.row.id, cause, helps, (parent.row.id, "sends"))


def writes_missing(visit: Visit) -> Findings:
    """Nodes that ran by their versions, and left no writes on the checkpoint they ran from.

    A run with durability "exit" stores one checkpoint for all of its steps, or for its only step, and no writes: it
    cannot be told from a lost write where it made one step alone and nothing else of the step is stored. LangGraph
    before 0.5 told in metadata what a step wrote, and its oldest savers nowhere else.
    """
    parent = visit.ran_from_parent
    if parent is None:
        return
    stored = {task.path.node for task in (*parent.writes.step, *parent.writes.handlers, *parent.writes.updates)}
    if any(task.path.kind in ("unknown", "handler") for task in (*parent.writes.step, *parent.writes.handlers)):
        return
    seen = visit.state.versions_seen
    ran = sorted(
        node
        for node, versions in seen.items()
        if node not in NOT_NODES and versions and parent.versions_seen.get(node) != versions
    )
    told = () if parent.writes.step else {*_told(visit.row), *_told(parent.row)}
    lost = [node for node in ran if node not in stored and node not in told]
    if lost and (parent.writes.step or parent.each_step):
        cause = f"{', '.join(lost)} ran from {parent.row.id[-8:]}, and nothing that it wrote is stored there"
        yield Finding("writes_missing", parent.row.id, cause, visit.site.show(visit.row.id), parent.row.id)


def _told(row: CheckpointRow) -> Collection[str]:
    """Returns the nodes of which metadata tells what they wrote; that of an input is told of `__start__`."""
    writes = row.metadata.get("writes")
    return writes.keys() if isinstance(writes, Mapping) else ()


def join_wrong(visit: Visit) -> Findings:
    """Joins in which a name is stored that was neither there before nor written by the step.

    Durability "async", the default, stores a join's live set after the next step has begun: a resume or a replay from
    such a row never runs the join.
    """
    parent = visit.ran_from_parent
    if parent is None:
        return
    for channel, names in visit.kept.arrivals.items():
        known = parent.arrivals.get(channel, frozenset()) | parent.arriving.get(channel, frozenset())
        early = sorted(names - known)
        if early:
            cause = f"{channel} holds {', '.join(early)}, which had not arrived (durability async)"
            helps = visit.site.command("replay", visit.site.at(parent.row.id))
            yield Finding("join_wrong", visit.row.id, cause, helps, (visit.row.id, channel))


def pending_interrupts(head: Head, now: datetime, *, can_resume: bool = True) -> Findings:
    """Questions of the root graph's head that no task has an answer to.

    Args:
        head: The head.
        now: The time that they have waited until.
        can_resume: Whether an answer can be given by `agentctl resume`.
    """
    if head.site.ns:
        return
    asking = [task for task in head.step.tasks if task.interrupts and not task.finished]
    n_questions = sum(len(task.interrupts) for task in asking)
    for task in asking:
        for interrupt in task.interrupts:
            if not can_resume:
                helps = head.site.show(head.id)
            elif n_questions == 1:
                helps = head.site.command("resume", head.site.target, "--value", '"ANSWER"')
            else:
                helps = head.site.command("resume", head.site.target, "--map", f'{interrupt.id}="ANSWER"')
            yield Finding("interrupt_pending", head.id, _waits(task, head.step.row, now), helps, interrupt.id)


def _waits(task: Task, row: CheckpointRow, now: datetime) -> str:
    since = row.at
    for_ = "" if since is None else f" for {_age(now - since)}"
    return f"a question of {task.name} has waited{for_}"


def _age(waited: timedelta) -> str:
    seconds = max(0, int(waited.total_seconds()))
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            n = seconds // size
            return f"{n:,} {unit}{'s' if n > 1 else ''}"
    return f"{seconds} seconds"


def _first_line(error: str) -> str:
    line = error.splitlines()[0] if error else ""
    return line if len(line) <= 160 else line[:157] + "..."


VISIT_RULES: Final = (route_lost, write_lost, writes_missing, sends_lost, join_wrong)
HEAD_RULES: Final = (task_failed, router_failed)
