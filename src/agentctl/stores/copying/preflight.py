"""What would make a copy fail or lie, found before the first row is written."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from agentctl.errors import Refused, ThreadExists
from agentctl.records.rows import WriteRow
from agentctl.stores.base import CopyPlan, Reader, RowPick
from agentctl.stores.copying import sqlite_rows
from agentctl.stores.copying.convert import Unholdable, require_text
from agentctl.stores.copying.converted_rows import converted_writes, for_postgres, for_sqlite
from agentctl.stores.copying.origin import origin_of

MAX_INDEXED_BYTES = 2704
"""Longest row that a btree index of Postgres holds: a third of a page of 8 KiB (access/nbtree.h, BTMaxItemSize)."""

_OTHER_KEY_BYTES = 200
"""What stands beside thread id and namespace in the longest key: two ids, an index, headers."""

_ENCRYPTED = "+"


def check_plans(source: Reader, target: Reader, plans: Sequence[CopyPlan]) -> None:
    """Raises Refused where one of the plans cannot be carried out exactly. Nothing is written.

    Looked at, in this order: the plans themselves, the names of the target threads, and, where rows go into another
    kind of store or are masked on the way, every value.
    """
    _check_names(target, plans)
    checked: set[tuple[str, tuple[RowPick, ...]]] = set()
    for plan in plans:
        _check_changes(plan)
        if target.info.kind == "postgres":
            _check_fits_index(plan)
            _check_texts(plan)
        if (plan.thread, plan.picks) not in checked:
            checked.add((plan.thread, plan.picks))
            _check_values(source, target, plan)


def _check_names(target: Reader, plans: Sequence[CopyPlan]) -> None:
    names: set[str] = set()
    for plan in plans:
        if plan.as_thread in names or target.namespaces(plan.as_thread):
            raise thread_exists(target, plan.as_thread)
        names.add(plan.as_thread)


def thread_exists(target: Reader, thread: str) -> ThreadExists:
    """Returns the error for a target thread that is there already."""
    return ThreadExists(f"{target.info} already has a thread {thread}", hint=f"name another one: --as '{thread}-2'")


def _check_changes(plan: CopyPlan) -> None:
    picked = {(pick.ns, pick.id) for pick in plan.picks}
    changed = [(ns, id) for ns, id, _, _ in plan.edits] + [(one.ns, one.checkpoint_id) for one in plan.extra_writes]
    for ns, id in changed:
        if (ns, id) not in picked:
            raise Refused(f"the plan changes writes of checkpoint {id}, which it does not copy")
    if any(write.value is None for write in plan.extra_writes):
        raise Refused("the plan adds a write without a value")
    if not plan.picks:
        raise Refused(f"nothing of thread {plan.thread} is picked for the copy {plan.as_thread}")


def _check_fits_index(plan: CopyPlan) -> None:
    longest = max(len(pick.ns.encode("utf-8", "replace")) for pick in plan.picks)
    n_bytes = len(plan.as_thread.encode("utf-8", "replace"))
    if n_bytes + longest + _OTHER_KEY_BYTES > MAX_INDEXED_BYTES:
        raise Refused(
            f"the thread id has {n_bytes} bytes: with its namespaces it is longer than Postgres' index allows",
            hint="name the copy shorter: --as THREAD",
        )


def _check_texts(plan: CopyPlan) -> None:
    try:
        require_text(thread=plan.as_thread)
        for key, value in plan.provenance.items():
            require_text(**{"key": key, key: value})
        for write in plan.extra_writes:
            require_text(channel=write.channel, task=write.task_id, path=write.task_path)
    except Unholdable as reason:
        raise Refused(f"Postgres cannot hold what the copy {plan.as_thread} adds: {reason}") from None


def _check_values(source: Reader, target: Reader, plan: CopyPlan) -> None:
    if source.info.kind == target.info.kind and not source.info.masked:
        return
    _check_not_encrypted(source, plan)
    rows: Iterator[object]
    if target.info.kind == "postgres":
        rows, name = for_postgres(source, plan.thread, plan.picks), "Postgres"
    else:
        rows, name = for_sqlite(source, plan.thread, plan.picks), "SQLite"
    _exhaust(rows)
    _exhaust(converted_writes(source, plan.thread, plan.picks, target=name))


def _check_not_encrypted(source: Reader, plan: CopyPlan) -> None:
    """Refuses encrypted SQLite rows: a key in the environment would let them leave as plain text, masked ones apart."""
    if source.info.kind != "sqlite" or source.info.masked:
        return
    with origin_of(source) as origin:
        types = [] if origin.file is None else list(sqlite_rows.read_types(origin.file, plan.thread, plan.picks))
    for ns, id, type_ in types:
        if _ENCRYPTED in type_:
            where = f" in namespace {ns}" if ns else ""
            raise Refused(
                f"checkpoint {id}{where} is encrypted ({type_}); it can be copied byte for byte only",
                hint="copy into another SQLite file: --to FILE.sqlite",
            )


def _exhaust(rows: Iterator[object]) -> None:
    deque(rows, maxlen=0)


def added(write: WriteRow) -> tuple[str, str, str, int]:
    """Returns the key of a write inside its thread."""
    return write.ns, write.checkpoint_id, write.task_id, write.idx
