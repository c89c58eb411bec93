"""What was recorded on a branch: tool calls with their whole results, and the answers to its interrupts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agentctl.codec import jsontext
from agentctl.codec.values import decode
from agentctl.datasets.branch import Branch
from agentctl.datasets.messages import message_dict, portable
from agentctl.errors import DecodeError
from agentctl.experiments.comparing.values_diff import changes
from agentctl.records.datasets import BadResult, ExampleCall
from agentctl.records.messages import CallSite
from agentctl.records.rows import NULL_TASK, Stored, WriteRow
from agentctl.sandbox.recorder import record_thread
from agentctl.sandbox.recordings import Recorded
from agentctl.stores.reading import layout
from agentctl.stores.reading.calls import PARENTS, read_calls

CallPlace = tuple[str, str, str]
"""(namespace, id of the calling message, or of the checkpoint where it waits, and call id)."""


def read_sites(branch: Branch) -> tuple[CallSite, ...]:
    """Returns the tool calls of a branch in order.

    Where parts know the same call, the branch has the answer that counts and the oldest part the place where it waited.
    Calls of @task functions, whose arguments are not stored, are none.
    """
    sites: dict[tuple[CallPlace, int], CallSite] = {}
    for part in branch.parts:
        for site in read_calls(part.reader, part.lineage):
            if site.args is None:
                continue
            key = (_place(site), site.position)
            if (known := sites.get(key)) is not None:
                sites[key] = replace(known, answer=site.answer)
            elif part is branch or _belongs_to_origin(site, part):
                sites[key] = site
    return tuple(sorted(sites.values(), key=lambda site: (site.pending_at, site.position)))


def recorded_calls(branch: Branch) -> tuple[tuple[str, ExampleCall], ...]:
    """Returns the tool calls of a branch in order, each with the checkpoint where it waited."""
    sites, outputs = read_sites(branch), _outputs(branch)
    waiting = {(site.ns, site.pending_at) for site in sites}
    return tuple(
        (
            site.pending_at,
            replace(
                _example_call(site, outputs.get((site.ns, site.pending_at, site.id))),
                inside=bool(waiting & set(_above(branch, site))),
            ),
        )
        for site in sites
    )


def calls_until(calls: Sequence[tuple[str, ExampleCall]], first: str, last: str) -> tuple[ExampleCall, ...]:
    """Returns the calls that had been made by the end of a turn, those of earlier turns marked.

    Args:
        calls: All calls of the branch, each with the checkpoint where it waited.
        first: The turn's first checkpoint.
        last: The turn's last checkpoint.
    """
    return tuple(replace(call, before=waited < first) for waited, call in calls if waited <= last)


def _above(branch: Branch, site: CallSite) -> Iterator[tuple[str, str]]:
    """Yields (namespace, checkpoint) of every step inside of which a call was made."""
    if site.ns == branch.ns:
        return
    for part in branch.parts:
        for row in part.reader.rows(part.thread, site.ns, ids=[site.pending_at]):
            parents = row.metadata.get(PARENTS)
            yield from ((str(ns), str(at)) for ns, at in (parents.items() if isinstance(parents, Mapping) else ()))


def resume_writes(branch: Branch) -> tuple[tuple[WriteRow, ...], ...]:
    """Returns the stored answers to interrupts of each part of a branch, of all its namespaces."""
    return tuple(
        tuple(
            write
            for ns in part.reader.namespaces(part.thread)
            for write in part.reader.writes(part.thread, ns, channels=[layout.RESUME])
        )
        for part in branch.parts
    )


def answers_of(
    branch: Branch, stored: Sequence[Sequence[WriteRow]], ids: Sequence[str], until: str | None
) -> tuple[object, ...]:
    """Returns what was answered to the interrupts of a turn, in order.

    A task keeps the answers that it was given before it asked again; the last answer is kept of no task.

    Args:
        branch: The branch.
        stored: The stored answers of each of its parts.
        ids: The turn's checkpoints.
        until: The first checkpoint of the next turn, None where it is the last.

    Source: langgraph 1.2.24, pregel/_algo.py (`_scratchpad`) and types.py (`interrupt`).
    """
    answers: list[object] = []
    for part, writes in zip(branch.parts, stored, strict=True):
        wanted = [checkpoint for checkpoint in ids if branch.owner(checkpoint) is part]
        given: dict[str, list[WriteRow]] = {}
        for write in writes:
            if checkpoint := _given_at(write, part.ns, wanted, until):
                given.setdefault(checkpoint, []).append(write)
        for checkpoint in sorted(given):
            answers += _answers_at(given[checkpoint])
    return tuple(answers)


def _given_at(write: WriteRow, own: str, wanted: Sequence[str], until: str | None) -> str | None:
    """Returns the checkpoint of the turn from which the task ran that was answered, None for one of another turn.

    Ids are time-ordered, those of the namespaces below as well.
    """
    if write.ns == own:
        return write.checkpoint_id if write.checkpoint_id in wanted else None
    if not write.ns.startswith(own) or (until is not None and write.checkpoint_id >= until):
        return None
    return max((checkpoint for checkpoint in wanted if checkpoint <= write.checkpoint_id), default=None)


def _answers_at(writes: Sequence[WriteRow]) -> list[object]:
    kept: list[object] = []
    last: list[object] = []
    for write in writes:
        for value in _decoded(write.value) if write.value else ():
            value = portable(value)
            if write.task_id == NULL_TASK:
                last.append(value)
            else:
                kept += value if isinstance(value, list) else [value]
    return kept + [value for value in last if value not in kept]


def bad_results(branch: Branch, sites: Sequence[CallSite]) -> tuple[BadResult, ...]:
    """Returns the tool results that a fork changed, as they were and as they are on the branch."""
    if branch.origin is None:
        return ()
    now = {(_place(site), site.position): site for site in sites}
    found = []
    for was in read_sites(branch.origin):
        site = now.get((_place(was), was.position))
        if site is None or site.answer is None or was.answer is None or site.answer.content == was.answer.content:
            continue
        field = ", ".join(_changed_fields(was.answer.content, site.answer.content))
        found.append(BadResult(was.name, was.id, was.args, was.answer.content, field, site.answer.content))
    return tuple(found)


def _changed_fields(old: object, new: object) -> Iterator[str]:
    for change in changes(_as_data(old), _as_data(new)):
        if change.path:
            yield change.path


def _as_data(content: object) -> object:
    try:
        return jsontext.parse(content) if isinstance(content, str) else content
    except ValueError:
        return content


def _belongs_to_origin(site: CallSite, part: Branch) -> bool:
    """What ran inside the step after an origin's last checkpoint belongs to the source, not to the branch."""
    return site.ns == part.ns or site.pending_at < part.lineage.tip.id


def _place(site: CallSite) -> CallPlace:
    return (site.ns, site.ai_message_id or site.pending_at, site.id)


def _outputs(branch: Branch) -> Mapping[CallPlace, Recorded]:
    """Returns what the tools wrote besides their messages, by namespace, checkpoint and call id."""
    found: dict[CallPlace, Recorded] = {}
    for part in branch.parts:
        for entry in record_thread(part.reader, part.thread, tip=part.lineage.tip.id).entries:
            found[entry.ns, entry.pending_at, entry.id] = entry
    return found


def _example_call(site: CallSite, entry: Recorded | None) -> ExampleCall:
    result = message_dict(site.answer) if site.answer else None
    if entry is None:
        return ExampleCall(site.name, site.args, site.id, site.ns, result)
    writes = [(channel, portable(value)) for channel, stored in entry.writes for value in _decoded(stored)]
    return ExampleCall(
        name=site.name,
        args=site.args,
        id=site.id,
        ns=site.ns,
        result=result,
        kind=entry.kind,
        writes=tuple(writes),
        goto=entry.goto,
        shared=entry.shared,
    )


def _decoded(stored: Stored) -> Iterator[object]:
    try:
        yield decode(stored)
    except DecodeError:
        return
