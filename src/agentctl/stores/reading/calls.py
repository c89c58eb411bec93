"""Tool calls of a lineage and of the namespaces below it, each with where it waited and what answered it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from agentctl.records.messages import CallSite, Message, ToolCall
from agentctl.records.rows import CheckpointRow, Lineage
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.conversation import pair_answers
from agentctl.stores.reading.lineage import read_tree, tree_of
from agentctl.stores.reading.messages import Logged, MessageLog, read_log
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
    made = sorted(_once_each(made), key=lambda call: (call.made_at, call.site.position))
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
    """A call site, the checkpoint that first held its message, and whether the answer came with the message."""

    site: CallSite
    made_at: str
    answered_at_once: bool = False


def _enclosing(row: CheckpointRow, ns: str) -> str:
    parents = row.metadata.get(PARENTS)
    return str(parents.get(ns, "")) if isinstance(parents, Mapping) else ""


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
    yield from _tool_calls(branch, read_log(reader, branch))
    for site in task_calls(reader, branch, names):
        yield _Made(site, site.pending_at)


def _tool_calls(lineage: Lineage, log: MessageLog) -> Iterator[_Made]:
    tip_and_waiting = [*(logged.message for logged in log.tip), *log.waiting]
    answers = pair_answers(tip_and_waiting)
    used = set(answers.values())
    for place, logged in enumerate(log.tip):
        following = log.tip[place + 1].held if place + 1 < len(log.tip) else None
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
        following: Position that first held the message after the AI message; None where it is the last.
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
    return _Made(site, rows[logged.held].id, at_once)


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
    """Yields each call of a message once: where it waited rather than where it arrived answered, deepest first."""
    best: dict[tuple[str, int, str], _Made] = {}
    for call in made:
        site = call.site
        if site.ai_message_id is None:
            yield call
            continue
        key = (site.ai_message_id, site.position, site.id)
        known = best.get(key)
        if known is None or _preference(call) > _preference(known):
            best[key] = call
    yield from best.values()


def _preference(call: _Made) -> tuple[bool, bool, int]:
    return (not call.answered_at_once, call.site.answer is not None, call.site.ns.count(layout.NS_END))
