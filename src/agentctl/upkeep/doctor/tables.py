"""The tables themselves: rows that belong to nothing, mixed encryption, the layout."""

from __future__ import annotations

from typing import Final

from agentctl.records.faults import LayoutFacts
from agentctl.upkeep.doctor.records import Finding, Findings, Site, ThreadRows
from agentctl.upkeep.settled import REST, is_settled

_PLAIN_TYPES: Final = frozenset({"msgpack", "json", "bytes", "bytearray", "pickle"})
"""Types of what is stored plainly; `null` and `empty` hold nothing that could be hidden."""


def writes_orphaned(rows: ThreadRows) -> Findings:
    """Pending writes of checkpoints that are not stored.

    Where they are those of the one missing parent of a namespace's oldest checkpoint, the thread was deleted while it
    ran: its tasks then stored their results, and the next checkpoint, as if nothing had happened.
    """
    for ns, by_checkpoint in rows.orphans.items():
        site = rows.site.inside(ns)
        first = rows.first_parents.get(ns)
        if first is not None and set(by_checkpoint) == {first[0]}:
            cause = (
                f"all that came before it is gone, but for what the step from {first[0]} wrote: deleted while it ran"
            )
            helps = site.command("copy", site.at(first[1]), "--only", "point")
            yield Finding("rows_recreated", first[1], cause, helps, ns, ns)
            continue
        for checkpoint_id, n_rows in by_checkpoint.items():
            writes = "1 pending write belongs" if n_rows == 1 else f"{n_rows} pending writes belong"
            cause = f"{writes} to {checkpoint_id}, which is not stored"
            helps = _orphans_go(rows, is_newer=not is_settled((ns, checkpoint_id), rows.newest))
            yield Finding("writes_orphaned", checkpoint_id, cause, helps, (ns, checkpoint_id), ns)


def blobs_orphaned(rows: ThreadRows) -> Findings:
    """Values that no checkpoint names: they only take room."""
    for (ns, channel), (n_rows, is_newer) in rows.orphan_blobs.items():
        values = "1 stored value" if n_rows == 1 else f"{n_rows} stored values"
        cause = f"{values} of {channel} that no checkpoint names"
        yield Finding("blobs_orphaned", None, cause, _orphans_go(rows, is_newer=is_newer), (ns, channel), ns)


def headless(rows: ThreadRows) -> Findings:
    """Threads of which only rows of subgraphs, writes or values are left."""
    if not rows.has_root:
        cause = "no checkpoint of the root graph is stored, and other rows of the thread are"
        yield Finding("thread_headless", None, cause, _all_goes(rows), "root")


def encryption_mixed(rows: ThreadRows) -> Findings:
    """Threads with encrypted and plain rows: a loader with a key takes both, and shows neither difference."""
    sealed = [found for found in rows.types if "+" in found.type]
    plain = [found for found in rows.types if found.type in _PLAIN_TYPES]
    if sealed and plain:
        n_sealed, n_plain = (sum(found.n_rows for found in part) for part in (sealed, plain))
        where = ", ".join(sorted({found.table for found in plain}))
        cause = f"{n_plain} rows are stored plainly ({where}), {n_sealed} encrypted"
        at = next((found for found in plain if found.checkpoint), None)
        site = rows.site.inside(at.ns if at else "")
        helps = site.show(at.checkpoint) if at else site.command("history", site.target)
        yield Finding("encryption_mixed", at.checkpoint if at else None, cause, helps, "mixed", site.ns)


def layout(facts: LayoutFacts, store: Site) -> Findings:
    """How the tables differ from those that LangGraph makes."""
    helps = store.of_store("size")
    if facts.migration is not None and facts.known_migration is not None and facts.migration > facts.known_migration:
        cause = f"the tables are at migration {facts.migration}, this version knows up to {facts.known_migration}"
        yield Finding("layout_newer", None, cause, helps)
    if not facts.has_task_path:
        cause = "pending writes have no task_path: which task made them is found by trying names"
        yield Finding("layout_old", None, cause, helps)
    if facts.extra_columns:
        yield Finding("layout_altered", None, f"no saver makes {', '.join(facts.extra_columns)}", helps)
    for table in facts.lacking_keys:
        cause = f"{table} has no primary key of LangGraph's: a row can be there twice"
        yield Finding("key_lacking", None, cause, helps, table)


def _orphans_go(rows: ThreadRows, *, is_newer: bool) -> str:
    """Returns the plan that takes what no checkpoint refers to; of newer rows only where no run is at work any more."""
    if not rows.has_root:
        return _all_goes(rows)
    rest = ("--older-than", REST) if is_newer else ()
    return rows.site.command("prune", rows.site.target, "--orphans", *rest)


def _all_goes(rows: ThreadRows) -> str:
    """Returns the plan that takes a thread without a root graph away: nothing can run from it."""
    return rows.site.command("prune", rows.site.target, "--delete")


THREAD_RULES: Final = (writes_orphaned, blobs_orphaned, headless, encryption_mixed)
