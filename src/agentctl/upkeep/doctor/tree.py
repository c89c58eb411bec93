"""The tree of a namespace: parents, heads, branches, and the rows of the graph around it."""

from __future__ import annotations

from typing import Final

from agentctl.records.rows import id_time
from agentctl.revisions.heads import edited_head
from agentctl.stores.reading.layout import keeps_state
from agentctl.upkeep.doctor.records import Finding, Findings, Visit, Whole


def parent_missing(visit: Visit) -> Findings:
    """Checkpoints whose parent is not stored; in a copy made by agentctl that is as it should be."""
    if visit.dangling is None or visit.site.is_copy:
        return
    cause = f"its parent {visit.dangling} is not stored"
    yield Finding("parent_missing", visit.row.id, cause, _rescue(visit), visit.dangling)


def parent_wrong(visit: Visit) -> Findings:
    """Parents that lead back to their own child, and parents of a later step: steps only grow along a branch."""
    row, parent = visit.row, visit.parent
    if parent is None:
        if row.parent is not None and visit.dangling is None:
            cause = f"its parents lead from {row.parent} back to itself"
            yield Finding("parent_wrong", row.id, cause, _rescue(visit), "loop")
    elif row.step is not None and parent.row.step is not None and row.step <= parent.row.step:
        cause = f"it is step {row.step}, and its parent {parent.row.id} is step {parent.row.step}"
        yield Finding("parent_wrong", row.id, cause, visit.site.command("history", visit.site.target), row.id)


def _rescue(visit: Visit) -> str:
    return visit.site.command("copy", visit.site.at(visit.row.id), "--only", "point")


def heads(whole: Whole) -> Findings:
    """Branches of the root graph, an edited head, and a head that is not the end of its branch."""
    site, tree = whole.site, whole.tree
    head = tree.head
    if head is None:
        return
    history = site.command("history", site.target)
    if site.ns == "" and len(tree.tips) > 1:
        cause = f"{len(tree.tips)} branches; the head is {head}"
        yield Finding("several_heads", head, cause, history)
    if tree.children.get(head):
        child = tree.children[head][-1]
        cause = (
            f"get_state gives this checkpoint, and {child} descends from it: clocks differed ({_times(head, child)})"
        )
        yield Finding("head_superseded", head, cause, site.command("history", site.target, "--branch", child))
    if site.ns == "" and not site.is_copy:
        edited = edited_head(tree.parents, head, whole.passed.edits)
        if edited is not None and edited.last_head is not None:
            cause = f"it descends from the edit {edited.edit}; the last head without one is {edited.last_head}"
            helps = site.command("history", site.target, "--branch", edited.last_head)
            yield Finding("head_edited", head, cause, helps)


def namespace_orphaned(whole: Whole) -> Findings:
    """Subgraphs whose rows belong to a checkpoint around them that is not stored; the root graph has some."""
    if whole.site.ns == "" or whole.site.is_copy or not whole.root.ids:
        return
    for (ns, owner), row in whole.passed.owners.items():
        if owner in whole.around.get(ns, ()):
            continue
        if not (keeps_state(whole.site.ns) and _was_never_stored(whole, owner)):
            of = f"namespace {ns}" if ns else "the root graph"
            cause = f"it belongs to checkpoint {owner} of {of}, which is not stored"
            yield Finding("namespace_orphaned", row, cause, whole.site.show(row), "owner")
            return


def _was_never_stored(whole: Whole, id: str) -> bool:
    """Says whether a run with durability "exit" may have passed a checkpoint of the root graph without storing it.

    A subgraph that keeps its state stores the checkpoint's id all the same, and before such a run is over.
    """
    leaps, head = whole.of_root.leaps, whole.root.head or ""
    return any(before < id < after or after == head < id for before, after in leaps)


def _times(head: str, child: str) -> str:
    first, second = id_time(head), id_time(child)
    if first is None or second is None:
        return "ids without a time"
    return f"{first:%H:%M:%S} and {second:%H:%M:%S}"


VISIT_RULES: Final = (parent_missing, parent_wrong)
WHOLE_RULES: Final = (heads, namespace_orphaned)
