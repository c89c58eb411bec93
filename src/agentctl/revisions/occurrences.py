"""Atoms that count along a lineage: visits of a node, interrupts, errors, tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from shlex import quote
from typing import Final

from agentctl.errors import Ambiguous
from agentctl.records.messages import CallSite
from agentctl.records.threads import UNKNOWN
from agentctl.revisions.candidates import ambiguous_call, call_candidates, no_call, no_occurrence, no_such_call, typed
from agentctl.revisions.grammar import Call, Revision, Stop, Visit
from agentctl.revisions.scope import Resolution, Scope

_PAGE: Final = 64
"""Checkpoints asked about at once while the lineage is searched from its tip."""

_BEFORE_INPUT: Final = -2
"""The number before that of the first step, which takes the input in."""
_MAX_NAMESPACES: Final = 64
"""Namespaces that are searched for a node that is not on the lineage."""

Which = Callable[[Sequence[str]], Sequence[str]]
"""Ids of a stretch of the lineage, oldest first -> those of them that count, in the same order."""


@dataclass(frozen=True, slots=True)
class _Nth:
    """The occurrence that was looked for, or None; `n` is how many were seen (all of them where it is None)."""

    id: str | None
    n: int


def find_visit(atom: Visit, scope: Scope) -> Resolution:
    """Returns the checkpoint about to run a node, or made by it; without `k` the last one."""
    names = scope.facts.next if atom.side == "before" else scope.facts.wrote
    unsure: list[str] = []
    seen: set[str] = set()

    def visits(ids: Sequence[str]) -> list[str]:
        told = names(scope.ns, ids)
        for id in ids:
            seen.update(told.get(id, ()))
        unsure.extend(id for id in ids if UNKNOWN in told.get(id, ()))
        return [id for id in ids if atom.node in told.get(id, ())]

    ids = [row.id for row in scope.chain.rows]
    found = _nth(ids, atom.k, visits, _drop_superseded(scope, ids) if atom.side == "before" else _keep)
    what = f"checkpoint {'about to run' if atom.side == 'before' else 'made by'} {atom.node} on {scope.name}"
    if found.id is None:
        otherwise = _otherwise(atom, scope, sorted(seen - {UNKNOWN}))
        raise no_occurrence(what, atom.k, found.n, str(Visit(atom.side, atom.node)), otherwise)
    notes = [f"rows cannot tell it for {len(unsure)} checkpoints of the lineage; --graph can"] if unsure else []
    return scope.found(found.id, f"{_ordinal(atom.k)} {what}", notes=notes)


def find_stop(atom: Stop, scope: Scope) -> Resolution:
    """Returns a checkpoint whose step asked something or failed, later answered or not; without `k` the last one."""
    ask = scope.facts.interrupts if atom.kind == "interrupt" else scope.facts.errors

    def stops(ids: Sequence[str]) -> list[str]:
        hits = frozenset(ask(scope.ns, ids))
        return [id for id in ids if id in hits]

    found = _nth([row.id for row in scope.chain.rows], atom.k, stops, _keep)
    what = f"checkpoint whose step {'asked something' if atom.kind == 'interrupt' else 'failed'} on {scope.name}"
    if found.id is None:
        otherwise = f"every branch: agentctl history {typed(scope.facts)}"
        raise no_occurrence(what, atom.k, found.n, atom.kind, otherwise)
    return scope.found(found.id, f"{_ordinal(atom.k)} {what}")


def find_call(atom: Call, scope: Scope) -> tuple[Resolution, CallSite]:
    """Returns the checkpoint where a tool call is pending, in its own namespace, and the call.

    `call:x:0` and `call:x:1` may be a whole id too (some models number their calls so): that is tried first.
    """
    facts = scope.facts
    name, k = atom.name, atom.k
    sites = list(facts.calls(scope.ns, scope.tip, name))
    if k is not None:
        whole = f"{name}:{k}"
        literal = list(facts.calls(scope.ns, scope.tip, whole))
        numbered = sites[k - 1 : k] if k > 0 else []
        if literal and sites and numbered != literal:
            raise Ambiguous(
                f"call:{whole} is the id of a call, and call number {k} of {name}",
                hint=f"for the id write {typed(facts, Revision(Call(whole)))}",
                candidates=[*call_candidates(whole, literal), *call_candidates(name, sites)],
            )
        if literal:
            name, k, sites = whole, None, literal
    if not sites:
        raise no_call(name, scope.name, facts.called(scope.ns, scope.tip), facts)
    if k is None and len(sites) > 1:
        raise ambiguous_call(name, sites, facts)
    position = 0 if k is None else k - 1 if k > 0 else len(sites) + k
    if k is not None and not 0 <= position < len(sites):
        raise no_such_call(name, k, sites, facts)
    site = sites[position]
    notes = [f"found in namespace {site.ns or 'root'}"] if site.ns != scope.ns else []
    if site.answer is None:
        notes.append("the call has no answer yet")
    which = f"call {site.id} of {site.name}" if site.id else f"a call of {site.name} without an id"
    why = f"whose step made {which}" if site.task else f"where {which} waits for its answer"
    return Resolution(facts.thread, site.ns, site.pending_at, why, tuple(notes), site), site


def _otherwise(atom: Visit, scope: Scope, nodes: Sequence[str]) -> str:
    """Returns the hint where a node is not on the lineage: the subgraphs that it is in, else what is there."""
    facts = scope.facts
    names = facts.next if atom.side == "before" else facts.wrote
    others = [ns for ns in facts.namespaces() if ns != scope.ns][:_MAX_NAMESPACES] if scope.anywhere else []
    within = [ns for ns in others if any(atom.node in told for told in names(ns, facts.ids(ns)).values())]
    if within:
        return f"it is in a subgraph: {' | '.join(f'--ns {quote(ns)}' for ns in within)}"
    runs = "runs" if atom.side == "before" else "ran"
    there = f"nodes there: {', '.join(nodes)}" if nodes else f"no node {runs} there"
    n_missing = _n_not_stored(scope)
    return f"{there}; {n_missing} steps are not stored (durability exit, or pruned)" if n_missing else there


def _n_not_stored(scope: Scope) -> int:
    """Returns how many steps of the lineage have no checkpoint: a run with durability "exit" stores its last alone."""
    chain = scope.chain
    known = scope.facts.details(scope.ns, [row.id for row in chain.rows])
    steps = [step for row in chain.rows if (step := known[row.id].step) is not None]
    first = steps[:1] if chain.dangling else [_BEFORE_INPUT]
    return sum(max(0, step - above - 1) for above, step in pairwise([*first, *steps]))


def _nth(ids: Sequence[str], k: int | None, which: Which, merge: Which) -> _Nth:
    """Finds occurrence `k` of a lineage (oldest first), from the tip and only as far as needed where `k` allows it."""
    if k is not None and k > 0:
        hits = merge(which(ids))
        return _Nth(hits[k - 1] if k <= len(hits) else None, len(hits))
    wanted = 1 if k is None else -k
    hits = []
    found: Sequence[str] = ()
    for end in range(len(ids), 0, -_PAGE):
        hits = [*which(ids[max(0, end - _PAGE) : end]), *hits]
        found = merge(hits)
        if len(found) >= wanted:
            return _Nth(found[-wanted], len(found))
    return _Nth(None, len(found))


def _keep(ids: Sequence[str]) -> Sequence[str]:
    return ids


def _drop_superseded(scope: Scope, lineage: Sequence[str]) -> Which:
    """Makes one visit of a checkpoint and the `update` or `fork` row made from it that is about to run the same node.

    The node did not run between the two; the later row is the one it ran from.
    """
    child_of = dict(pairwise(lineage))

    def merge(ids: Sequence[str]) -> list[str]:
        hits = frozenset(ids)
        children = {id: child for id in ids if (child := child_of.get(id)) in hits}
        rows = scope.facts.details(scope.ns, list(children.values())) if children else {}
        return [id for id in ids if id not in children or rows[children[id]].source not in ("update", "fork")]

    return merge


def _ordinal(k: int | None) -> str:
    match k:
        case None | -1:
            return "the last"
        case 1:
            return "the first"
        case _ if k > 0:
            return f"number {k}: a"
        case _:
            return f"number {-k} from the end: a"
