"""Tool calls of a lineage and of the namespaces below it, each with where it waited and what answered it.

A call that a node made by itself, and stored together with its answer, never waited: its place is the checkpoint whose
step made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from agentctl.records.messages import CallSite, Message, ToolCall
from agentctl.records.rows import CheckpointRow, Lineage, WriteRow
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.conversation import pair_answers
from agentctl.stores.reading.lineage import read_tree, tree_of
from agentctl.stores.reading.messages import Logged, Logs, MessageLog, likeness, read_holding, read_logs
from agentctl.stores.reading.owncalls import StoredPair, made_calls, pair_key, stored_pairs, subgraph_tasks
from agentctl.stores.reading.taskcalls import names_in, task_calls

PARENTS: Final = "parents"
"""Metadata key: for each enclosing namespace, the checkpoint whose step ran this one. Source: pregel/_loop.py."""


def read_calls(reader: Reader, lineage: Lineage, *, task_names: Iterable[str] = ()) -> tuple[CallSite, ...]:
    """Reads every tool call made along a lineage or below it (subgraphs, subagents), in the order they were made.

    A message that several namespaces hold (a subgraph that shares its parent's messages) counts once, where it waited.
    @task calls of the functional API count too: their result is stored, their arguments are not (`args` is None), and
    their name is known only if it is among `task_names` or ran a subgraph; else it is `?`.

    Args:
        reader: Where the thread lives.
        lineage: The branch.
        task_names: Names to try for @task calls.

    Raises:
        DecodeError: The messages of a namespace cannot be read.
    """
    names = {*task_names, *names_in(reader.namespaces(lineage.tip.thread))}
    made = list(_made_in(reader, lineage, names))
    ran = _steps_taken(reader, lineage)
    for branch in lineages_below(reader, lineage):
        for call in _made_in(reader, branch, names):
            if _enclosing(branch.rows[branch.index[call.site.pending_at]], lineage.tip.ns) in ran:
                made.append(call)
    made = sorted(_once_each(made), key=lambda call: (call.made_at, call.waits, call.site.position))
    counts: Counter[str] = Counter()
    sites: list[CallSite] = []
    for call in made:
        counts[call.site.name] += 1
        sites.append(replace(call.site, occurrence=counts[call.site.name]))
    return tuple(sites)


def lineages_below(reader: Reader, lineage: Lineage) -> Iterator[Lineage]:
    """Yields a lineage for each namespace that ran inside a step of this one: the chain of its newest row there."""
    tip = lineage.tip
    for ns in reader.namespaces(tip.thread):
        if ns == tip.ns or not (tip.ns == "" or ns.startswith(tip.ns + layout.NS_SEPARATOR)):
            continue
        rows = {row.id: row for row in reader.rows(tip.thread, ns)}
        ends = [row.id for row in rows.values() if _enclosing(row, tip.ns) in lineage.index]
        if not ends:
            continue
        tree = tree_of(rows.values())
        ordered = tuple(rows[id] for id in reversed(list(tree.chain(max(ends)))))
        index = {row.id: position for position, row in enumerate(ordered)}
        yield Lineage(ordered, dangling=tree.dangling(ordered[0].id), index=index)


@dataclass(frozen=True, slots=True)
class _Made:
    """A call site and what tells it from other sightings of the same call.

    Attributes:
        site: The site.
        made_at: The checkpoint that first held its message; where none does yet, the one whose step wrote it.
        waits: Whether no checkpoint holds its message yet.
        answered_at_once: Whether the answer came with the message.
        parents: The enclosing checkpoints of the one where it was made, by namespace.
    """

    site: CallSite
    made_at: str
    waits: bool = False
    answered_at_once: bool = False
    parents: Mapping[str, object] = field(default_factory=dict)


def _enclosing(row: CheckpointRow, ns: str) -> str:
    return str(_parents(row).get(ns, ""))


def _parents(row: CheckpointRow) -> Mapping[str, object]:
    parents = row.metadata.get(PARENTS)
    return parents if isinstance(parents, Mapping) else {}


def _steps_taken(reader: Reader, lineage: Lineage) -> frozenset[str]:
    """Returns the checkpoints of a lineage whose step ran on it.

    After a replay the step was run again, from the fork; after an update it belongs to the branch that went on by
    itself, where there is one.
    """
    tree = read_tree(reader, lineage.tip.thread, lineage.tip.ns)
    ran = {lineage.tip.id}
    for row, following in pairwise(lineage.rows):
        if following.source == "fork":
            continue
        siblings = set(tree.children.get(row.id, ())) - {following.id}
        if following.source != "update" or not siblings or not _any_loop(reader, row, siblings):
            ran.add(row.id)
    return frozenset(ran)


def _any_loop(reader: Reader, row: CheckpointRow, ids: Collection[str]) -> bool:
    return any(sibling.source == "loop" for sibling in reader.rows(row.thread, row.ns, ids=ids))


def _made_in(reader: Reader, branch: Lineage, names: Collection[str]) -> Iterator[_Made]:
    logs = read_logs(reader, branch)
    own = list(_own_calls(reader, branch, logs))
    known = {_key(made.site) for made in own}
    for log in logs.logs:
        for made in _tool_calls(branch, log):
            if not (made.answered_at_once and _key(made.site) in known):
                yield made
    yield from own
    for site in task_calls(reader, branch, names):
        yield _Made(site, site.pending_at)


def _own_calls(reader: Reader, lineage: Lineage, logs: Logs) -> Iterator[_Made]:
    """Yields the calls that nodes made by themselves, each where its step ran."""
    by_checkpoint: dict[str, list[WriteRow]] = {}
    for write in logs.writes:
        by_checkpoint.setdefault(write.checkpoint_id, []).append(write)
    subgraphs = subgraph_tasks(reader.namespaces(lineage.tip.thread))
    known: dict[str, Message] = {}
    for position, row in enumerate(lineage.rows):
        pairs = stored_pairs(by_checkpoint.get(row.id, ()))
        if not pairs or not _is_applied(reader, lineage, position, pairs):
            continue
        for pair in made_calls(pairs, known, subgraphs) if row.source != "input" else ():
            yield _own_site(lineage, position, pair, logs)
        known.update((pair_key(pair.asked, pair.call), pair.answer) for pair in pairs)


def _is_applied(reader: Reader, lineage: Lineage, position: int, pairs: Sequence[StoredPair]) -> bool:
    """Returns whether what a step wrote is on this lineage: it ended there, or it has not ended and is its last."""
    if position == len(lineage.rows) - 1:
        return True
    row, following = lineage.rows[position], lineage.rows[position + 1]
    children = read_tree(reader, row.thread, row.ns).children.get(row.id, ())
    if following.source == "loop" and len(children) == 1:
        return True
    holding = read_holding(reader, following, pairs[0].channel)
    return any(
        pair.answer.id in holding.ids if pair.answer.id else likeness(pair.answer) in holding.likenesses
        for pair in pairs
        if pair.channel == pairs[0].channel
    )


def _own_site(lineage: Lineage, position: int, pair: StoredPair, logs: Logs) -> _Made:
    rows = lineage.rows
    row, waits = rows[position], position == len(rows) - 1
    held = row if waits else rows[position + 1]
    site = CallSite(
        name=pair.call.name,
        id=pair.call.id or "",
        args=pair.call.args,
        occurrence=0,
        ns=lineage.tip.ns,
        pending_at=row.id,
        answered_at=None if waits else held.id,
        answer=pair.answer,
        position=pair.call.position,
        ai_message_id=pair.asked.id or _given_id(pair, position + 1, logs),
        task=pair.task,
    )
    return _Made(site, held.id, waits, True, _parents(row))


def _given_id(pair: StoredPair, held: int, logs: Logs) -> str | None:
    """Returns the id that LangGraph gave an AI message when it merged it, None where that is not in sight."""
    log = next((log for log in logs.logs if log.channel == pair.channel), None)
    likes = likeness(pair.asked)
    found = (one.message.id for one in log.tip if one.held == held and likeness(one.message) == likes) if log else ()
    return next(iter(found), None)


def _tool_calls(lineage: Lineage, log: MessageLog) -> Iterator[_Made]:
    tip_and_waiting = [*(logged.message for logged in log.tip), *log.waiting]
    answers = pair_answers(tip_and_waiting)
    used = set(answers.values())
    for place, logged in enumerate(log.tip):
        following = _gone_on_at(log.tip, place) if logged.message.tool_calls else None
        for call in logged.message.tool_calls:
            at = answers.get((place, call.position))
            if at is None:
                yield _site(lineage, logged, call, None, None, following)
            elif at < len(log.tip):
                yield _site(lineage, logged, call, log.tip[at].message, log.tip[at].held, following)
            else:
                yield _site(lineage, logged, call, tip_and_waiting[at], None, None)
    unused = [logged for place, logged in enumerate(log.tip) if logged.message.role == "tool" and place not in used]
    yield from _calls_of_gone(lineage, sorted([*log.gone, *unused], key=lambda logged: logged.held))


def _gone_on_at(tip: Sequence[Logged], place: int) -> int | None:
    """Returns the position that first held something else than results after a message, None where nothing is."""
    after = (tip[at] for at in range(place + 1, len(tip)))
    return next((logged.held for logged in after if logged.message.role != "tool"), None)


def _calls_of_gone(lineage: Lineage, entries: Sequence[Logged]) -> Iterator[_Made]:
    """Yields the calls of messages that the tip does not hold any more; these pair by time."""
    answers = pair_answers([logged.message for logged in entries])
    for place, logged in enumerate(entries):
        for call in logged.message.tool_calls:
            at = answers.get((place, call.position))
            following = entries[place + 1].held if place + 1 < len(entries) else logged.held + 1
            if at is None:
                yield _site(lineage, logged, call, None, None, following)
            else:
                yield _site(lineage, logged, call, entries[at].message, entries[at].held, following)


def _site(
    lineage: Lineage,
    logged: Logged,
    call: ToolCall,
    answer: Message | None,
    answered: int | None,
    following: int | None,
) -> _Made:
    """Returns one site.

    Args:
        lineage: Rows of the namespace.
        logged: The AI message.
        call: One of its calls.
        answer: What answered it.
        answered: Position that first held the answer; None while it waits as a write, or where there is none.
        following: Position that first held the message after the AI message and its results; None where there is none.
    """
    rows = lineage.rows
    at_once = answered is not None and answered <= logged.held
    if at_once:
        pending = max(logged.held - 1, 0)
    elif answered is not None:
        pending = answered - 1
    elif answer is not None:
        pending = len(rows) - 1
    else:
        pending = _last_open(rows, logged.held, following)
    site = CallSite(
        name=call.name,
        id=call.id or "",
        args=call.args,
        occurrence=0,
        ns=lineage.tip.ns,
        pending_at=rows[pending].id,
        answered_at=None if answered is None else rows[answered].id,
        answer=answer,
        position=call.position,
        ai_message_id=logged.message.id,
    )
    return _Made(site, rows[logged.held].id, answered_at_once=at_once)


def _last_open(rows: Sequence[CheckpointRow], held: int, following: int | None) -> int:
    """Returns the last position at which an unanswered call could still be answered.

    That is before the conversation went on: by another message, or by new input.
    """
    end = len(rows) if following is None else following
    for position in range(held + 1, end):
        if rows[position].source == "input":
            end = position
            break
    return max(held, end - 1)


def _once_each(made: Sequence[_Made]) -> Iterator[_Made]:
    """Yields each call once, although a subgraph and the graph around it may both hold its messages.

    A call that waited counts where it waited, deepest first. One that a node made counts wherever a node made it, as
    often as that was; the task around a subgraph that made it only hands it on.
    """
    groups: dict[_Key, list[_Made]] = {}
    for call in made:
        if call.site.ai_message_id is None:
            yield call
        else:
            groups.setdefault(_key(call.site), []).append(call)
    for group in groups.values():
        own = [call for call in group if call.site.task]
        if own and all(call.answered_at_once for call in group):
            yield from (call for call in own if not any(_is_inside(other, call) for other in own))
        else:
            yield max(group, key=_preference)


_Key = tuple[str | None, int, str]


def _key(site: CallSite) -> _Key:
    return site.ai_message_id, site.position, site.id


def _is_inside(inner: _Made, outer: _Made) -> bool:
    """Returns whether a call was made in a namespace that the step of the other one ran."""
    return inner.parents.get(outer.site.ns) == outer.site.pending_at and inner.site.ns != outer.site.ns


def _preference(call: _Made) -> tuple[bool, bool, int]:
    return (not call.answered_at_once, call.site.answer is not None, call.site.ns.count(layout.NS_END))
