"""A revision to one checkpoint of one lineage, with the reason in a sentence.

Everything but an id is read along one parent chain: the head's, or that of `--branch ID`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentctl.errors import NotFound
from agentctl.records.messages import CallSite
from agentctl.revisions.candidates import ambiguous_ids, ambiguous_step, no_id, no_step, typed
from agentctl.revisions.facts import Facts
from agentctl.revisions.grammar import (
    HEAD,
    At,
    Atom,
    Call,
    Head,
    Id,
    Range,
    Revision,
    Root,
    Step,
    Stop,
    Visit,
    parse_call,
)
from agentctl.revisions.occurrences import find_call, find_stop, find_visit
from agentctl.revisions.scope import Resolution, Scope, open_scope
from agentctl.revisions.shortids import match_id
from agentctl.revisions.times import parse_time


@dataclass(frozen=True, slots=True)
class RangeResolution:
    """The two ends of a range. `common` is their newest common ancestor, or None where they share none.

    `right_ids` are the checkpoints after `common` up to the right end, oldest first; `left_ids` the same for the left
    end of a symmetric range, and empty otherwise.
    """

    left: Resolution
    right: Resolution
    common: str | None
    left_ids: tuple[str, ...]
    right_ids: tuple[str, ...]


def resolve(
    rev: Revision, facts: Facts, *, now: datetime, ns: str | None = None, branch: str | None = None
) -> Resolution:
    """Returns the checkpoint that a revision names.

    Args:
        rev: The parsed revision.
        facts: The thread.
        now: The clock, for ages and bare clock times.
        ns: Namespace by its full name or its path of nodes; None for the root graph, and then an id is looked for in
            the other namespaces too.
        branch: An id (or suffix): read along its parent chain instead of the head's.

    Raises:
        NotFound: nothing is there; the hint says what is.
        Ambiguous: more than one checkpoint or call; the candidates carry a revision for each.
    """
    scope = open_scope(facts, now=now, ns=ns, branch=branch)
    found = _resolve_atom(rev.atom, scope)
    return _climb(found, rev.parents, facts) if rev.parents else found


def resolve_range(
    rng: Range, facts: Facts, *, now: datetime, ns: str | None = None, branch: str | None = None
) -> RangeResolution:
    """Returns both ends of a range with the checkpoints between.

    Raises:
        NotFound: an end is not there, or the two are in different namespaces.
        Ambiguous: an end names more than one checkpoint.
    """
    left = resolve(rng.left, facts, now=now, ns=ns, branch=branch)
    right = resolve(rng.right, facts, now=now, ns=ns, branch=branch)
    if left.ns != right.ns:
        raise NotFound(
            f"{rng.left} is in namespace {left.ns or 'root'} and {rng.right} in {right.ns or 'root'}",
            hint="a range lies in one namespace",
        )
    lefts = tuple(row.id for row in facts.lineage(left.ns, left.id).rows)
    rights = tuple(row.id for row in facts.lineage(right.ns, right.id).rows)
    n_common = next((i for i, (a, b) in enumerate(zip(lefts, rights, strict=False)) if a != b), None)
    if n_common is None:
        n_common = min(len(lefts), len(rights))
    return RangeResolution(
        left,
        right,
        common=lefts[n_common - 1] if n_common else None,
        left_ids=lefts[n_common:] if rng.symmetric else (),
        right_ids=rights[n_common:],
    )


def resolve_call(
    text: str, rev: Revision, facts: Facts, *, now: datetime, ns: str | None = None, branch: str | None = None
) -> CallSite:
    """Returns the one tool call that `NAME_OR_ID[:k]` names beside a target, as in `show TARGET --call NAME`.

    The call that the target itself names, where it is of that name; else the one that waits at the target; else the
    one on the lineage up to the target.

    Raises:
        NotFound: no such call.
        Ambiguous: several; the candidates carry a revision for each.
    """
    atom = parse_call(text)
    found = resolve(rev, facts, now=now, ns=ns, branch=branch)
    if atom.k is None:
        if found.call is not None and atom.name in (found.call.name, found.call.id):
            return found.call
        scope = open_scope(facts, now=now, ns=ns, branch=branch)
        sites = facts.calls(scope.ns, _tip_over(found, scope), atom.name)
        here = [site for site in sites if (site.ns, site.pending_at) == (found.ns, found.id)]
        if len(here) == 1:
            return here[0]
    up_to = Scope(facts, found.ns, found.id, on_branch=branch is not None or rev != HEAD, anywhere=False, now=now)
    return find_call(atom, up_to)[1]


def _tip_over(found: Resolution, scope: Scope) -> str:
    """Returns the tip whose lineage goes on from the checkpoint, so that answers given later are known."""
    if found.ns != scope.ns or found.id in scope.chain:
        return scope.tip
    newer = (id for id in scope.facts.ids(scope.ns) if id >= found.id)
    return next((id for id in newer if found.id in scope.facts.lineage(scope.ns, id)), found.id)


def _resolve_atom(atom: Atom, scope: Scope) -> Resolution:
    match atom:
        case Head():
            return scope.found(
                scope.tip, "the tip of --branch" if scope.on_branch else "the head: its newest checkpoint"
            )
        case Root():
            return _root(scope)
        case Id(text):
            return _id(text, scope)
        case Step(number):
            return _step(number, scope)
        case Visit():
            return find_visit(atom, scope)
        case Call():
            return find_call(atom, scope)[0]
        case Stop():
            return find_stop(atom, scope)
        case At(time):
            return _at(time, scope)


def _root(scope: Scope) -> Resolution:
    chain = scope.chain
    notes = [f"its parent {chain.dangling} is not stored: the lineage is cut here"] if chain.dangling else []
    return scope.found(chain.rows[0].id, f"the oldest checkpoint of {scope.name}", notes=notes)


def _id(text: str, scope: Scope) -> Resolution:
    """Looks in the scope's namespace first, and in the others only where that has none and no `--ns` was given."""
    facts = scope.facts
    if facts.has(scope.ns, text):
        return scope.found(text, "the full id")
    found = [(scope.ns, id) for id in match_id(text, facts.ids(scope.ns))]
    if not found and scope.anywhere:
        spaces = [ns for ns in facts.namespaces() if ns != scope.ns]
        found = [(ns, id) for ns in spaces for id in match_id(text, facts.ids(ns))]
    if not found:
        raise no_id(text, scope.ns, facts)
    if len(found) > 1:
        raise ambiguous_ids(text, found, facts)
    ns, id = found[0]
    why = "the full id" if id == text else f"the only id that ends in {text}"
    notes = (f"found in namespace {ns or 'root'}",) if ns != scope.ns else ()
    return Resolution(facts.thread, ns, id, why, notes)


def _step(number: int, scope: Scope) -> Resolution:
    chain = scope.chain
    ids = [row.id for row in chain.rows]
    steps = {id: row.step for id, row in scope.facts.details(scope.ns, ids).items()}
    matches = [id for id in ids if steps.get(id) == number]
    if len(matches) == 1:
        return scope.found(matches[0], f"step {number} of {scope.name}")
    if matches:
        raise ambiguous_step(number, scope.ns, matches, scope.facts)
    others = [id for id in scope.facts.ids(scope.ns) if id not in steps]
    elsewhere = [id for id, row in scope.facts.details(scope.ns, others).items() if row.step == number]
    known = [step for step in steps.values() if step is not None]
    raise no_step(number, known, scope.name, scope.ns, elsewhere, scope.facts)


def _at(time: str, scope: Scope) -> Resolution:
    moment = parse_time(time, scope.now, end=True)
    rows = scope.chain.rows
    dated = [(row.id, at) for row in rows if (at := row.at) is not None]
    if not dated:
        raise NotFound(
            f"the checkpoints of {scope.name} have no times: their ids are not LangGraph's",
            hint="use step:N or an id",
        )
    earlier = [id for id, at in dated if at <= moment]
    if not earlier:
        id, first = dated[0]
        raise NotFound(
            f"{scope.name} has no checkpoint as early as {_rfc(moment)}",
            hint=f"its first is {typed(scope.facts, id)} at {_rfc(first)}",
        )
    n_undated = len(rows) - len(dated)
    notes = [f"{n_undated} checkpoints without a time were passed over"] if n_undated else []
    return scope.found(earlier[-1], f"the last checkpoint of {scope.name} not later than {_rfc(moment)}", notes=notes)


def _rfc(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _climb(found: Resolution, n: int, facts: Facts) -> Resolution:
    rows = facts.lineage(found.ns, found.id).rows
    if n >= len(rows):
        above = len(rows) - 1
        raise NotFound(
            f"{found.id} has {above} checkpoint{'' if above == 1 else 's'} above it, so ~{n} is beyond the root",
            hint=f"the root is {typed(facts, rows[0].id)}",
        )
    hops = "the parent of" if n == 1 else f"{n} parents above"
    why = f"{hops} {found.id} ({found.why})"
    return Resolution(found.thread, found.ns, rows[-1 - n].id, why, found.notes, found.call)
