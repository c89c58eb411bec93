"""What is said when a revision names nothing, or more than one thing: always with something to paste next."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Sequence
from datetime import datetime

from agentctl.errors import Ambiguous, NotFound
from agentctl.records.messages import CallSite
from agentctl.revisions.facts import Facts
from agentctl.revisions.grammar import ATOMS, Call, Revision
from agentctl.revisions.shortids import MIN_DIGITS

Candidate = dict[str, object]


def typed(facts: Facts, revision: object = "") -> str:
    """Returns a target of the thread as it can be pasted into a shell."""
    return shlex.quote(f"{facts.place}@{revision}" if revision else facts.place)


def checkpoint_candidates(found: Sequence[tuple[str, str]], facts: Facts) -> list[Candidate]:
    """Returns a record a checkpoint: its full id as `revision`, step, time and next nodes.

    Args:
        found: (namespace, full id), in the order to show them.
        facts: The thread.
    """
    by_ns: dict[str, list[str]] = {}
    for ns, id in found:
        by_ns.setdefault(ns, []).append(id)
    rows = {ns: facts.details(ns, ids) for ns, ids in by_ns.items()}
    nexts = {ns: facts.next(ns, ids) for ns, ids in by_ns.items()}
    return [
        {
            "revision": id,
            "ns": ns,
            "step": rows[ns][id].step,
            "at": _rfc(rows[ns][id].at),
            "next": list(nexts[ns].get(id, ())),
        }
        for ns, id in found
    ]


def ambiguous_ids(text: str, found: Sequence[tuple[str, str]], facts: Facts) -> Ambiguous:
    """Several checkpoints have that id or end in it; `found` is (namespace, full id)."""
    candidates = checkpoint_candidates(found, facts)
    if len({id for _, id in found}) < len(found):
        return Ambiguous(
            f"{text} names checkpoints in {len({ns for ns, _ in found})} namespaces",
            hint=f"say which with --ns, such as --ns {shlex.quote(found[0][0])}",
            candidates=candidates,
        )
    return Ambiguous(
        f"{len(found)} checkpoints of {facts.thread} end in {text}",
        hint=f"give more digits, such as {typed(facts, found[0][1])}",
        candidates=candidates,
    )


def ambiguous_step(number: int, ns: str, ids: Sequence[str], facts: Facts) -> Ambiguous:
    """One lineage holds the step more than once, as rows written by other programs may."""
    return Ambiguous(
        f"step {number} stands {len(ids)} times on the lineage",
        hint=f"give the id, such as {typed(facts, ids[-1])}",
        candidates=checkpoint_candidates([(ns, id) for id in ids], facts),
    )


def no_id(text: str, ns: str, facts: Facts) -> NotFound:
    """No checkpoint has that id."""
    words = difflib.get_close_matches(text.lower(), ["head", "root", "interrupt", "error"], n=1)
    if words:
        hint = f"did you mean {typed(facts, words[0])}?"
    elif len(text.replace("-", "")) < MIN_DIGITS:
        hint = f"give at least {MIN_DIGITS} hex digits of the id's end"
    else:
        hint = f"revisions are {ATOMS}; ids: agentctl history {typed(facts)}"
    where = f"namespace {ns} of {facts.thread}" if ns else facts.thread
    return NotFound(f"no checkpoint of {where} is or ends in {text}", hint=hint)


def no_step(number: int, steps: Sequence[int], lineage: str, ns: str, others: Sequence[str], facts: Facts) -> NotFound:
    """The lineage lacks that step; `others` are checkpoints of the step on other branches."""
    has = f"it has steps {min(steps)} to {max(steps)}" if steps else "its rows have no step numbers"
    if others:
        has += f"; another branch has that step: {typed(facts, others[0])}"
    return NotFound(
        f"there is no step {number} on {lineage}",
        hint=has,
        candidates=checkpoint_candidates([(ns, id) for id in others], facts),
    )


def no_occurrence(what: str, k: int | None, n: int, spelled: str, otherwise: str) -> NotFound:
    """Nothing of that kind is on the lineage, or fewer than `k`.

    Args:
        what: `checkpoint about to run tools on the head's branch`.
        k: The occurrence asked for, or None.
        n: How many there are.
        spelled: The atom without its occurrence.
        otherwise: The hint where there is none at all.
    """
    if n == 0:
        return NotFound(f"there is no {what}", hint=otherwise)
    every = f"{spelled}:1" if n == 1 else f"{spelled}:1 to {spelled}:{n}"
    return NotFound(f"there is no {what} with number {k}", hint=f"it has {n}: {every}")


def ambiguous_call(text: str, sites: Sequence[CallSite], facts: Facts) -> Ambiguous:
    """A call names several occurrences; the hint is a revision that names one."""
    candidates = call_candidates(text, sites)
    return Ambiguous(
        f"call:{text} names {len(sites)} calls",
        hint=f"say which, such as {typed(facts, candidates[-1]['revision'])}",
        candidates=candidates,
    )


def call_candidates(text: str, sites: Sequence[CallSite]) -> list[Candidate]:
    """Returns a record a call with the revision that names it alone, its arguments and its result."""
    return [
        {
            "revision": str(Revision(Call(text, number))),
            "name": site.name,
            "call_id": site.id,
            "ns": site.ns,
            "id": site.pending_at,
            "args": site.args,
            "result": site.answer.content if site.answer else None,
            "answered": site.answer is not None,
        }
        for number, site in enumerate(sites, start=1)
    ]


def no_such_call(text: str, k: int, sites: Sequence[CallSite], facts: Facts) -> NotFound:
    """There are calls of that name, but not as many."""
    candidates = call_candidates(text, sites)
    return NotFound(
        f"call:{text} has {len(sites)} occurrence{'s' if len(sites) > 1 else ''}, not {abs(k)}",
        hint=f"say which, such as {typed(facts, candidates[-1]['revision'])}",
        candidates=candidates,
    )


def no_call(text: str, lineage: str, called: Sequence[str], facts: Facts) -> NotFound:
    """No call of that name or id is on the lineage or below it."""
    near = difflib.get_close_matches(text, list(called), n=1)
    if near:
        hint = f"did you mean {typed(facts, Revision(Call(near[0])))}?"
    elif called:
        hint = f"called there: {', '.join(called)}"
    else:
        known = "no row names a call there; one of a @task has the task's name"
        hint = f"{known}; every branch: agentctl history {typed(facts)}"
    return NotFound(f"no call named or with id {json.dumps(text, ensure_ascii=False)} on {lineage}", hint=hint)


def _rfc(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None
