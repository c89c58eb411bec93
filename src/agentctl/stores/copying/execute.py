"""Carrying out copy plans: pre-flight, one transaction for all of them, read-back verification.

Of a row only `thread_id` changes. Metadata stays as it is, a thread id that a server put there included, so that the
copy tells where it comes from; a plan's provenance is added to one checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from agentctl.errors import Refused
from agentctl.records.copies import MASKED, CopyReport, Place
from agentctl.records.rows import Stored
from agentctl.stores.base import CopyPlan, Reader, RowPick, Writer
from agentctl.stores.copying import preflight, verify
from agentctl.stores.copying.converted_rows import lean_writes, picked_in_parts
from agentctl.stores.copying.handed import HandsOver
from agentctl.stores.copying.marks import marks_of, newest_root
from agentctl.stores.copying.origin import Origin, origin_of
from agentctl.stores.copying.routes import Route, open_route
from agentctl.stores.copying.same_steps import same_steps
from agentctl.stores.copying.stated_rows import StatedRows, as_rows
from agentctl.stores.moments import at_a_moment_that_lasts
from agentctl.stores.sqlite.writer import SqliteTransaction

if TYPE_CHECKING:
    from agentctl.stores.postgres.writer import PostgresTransaction, PostgresWriter
    from agentctl.stores.sqlite.writer import SqliteWriter

Progress = Callable[[int, int], None]
"""Told how many of how many checkpoints are written."""


def copy(
    reader: Reader,
    writer: Writer,
    plans: Sequence[CopyPlan],
    *,
    dry_run: bool = False,
    on_progress: Progress | None = None,
) -> tuple[CopyReport, ...]:
    """Copies threads as planned, all or none, and returns one report a plan.

    Plans that pick the same rows of the same thread cost one reading of the source.

    What is copied is the source as it stands at one moment: of the reader, where that is still, else of now.

    Args:
        reader: The source; never written.
        writer: The target; its tables are made where they are missing, but not by a dry run.
        plans: Each names a thread that the target does not have yet.
        dry_run: Look for what would be refused and count, write nothing.
        on_progress: Called while checkpoints are written.

    Raises:
        Refused: The target has the thread, or cannot hold a value exactly. Nothing was written.
        Moved: Rows of that moment were replaced or deleted meanwhile. Nothing was left behind.
        StoreError: Reading or writing failed, or a row did not read back equal. Nothing was left behind.
    """
    if not plans:
        return ()
    if isinstance(reader, HandsOver):
        return _copy_handed(reader, writer, plans)
    reader = as_rows(reader)
    preflight.check_plans(reader, writer, plans)
    if dry_run:
        return tuple(_estimate(reader, writer, plan) for plan in plans)
    return at_a_moment_that_lasts(
        reader, {plan.thread for plan in plans}, lambda still: _copy_still(still, writer, plans, on_progress)
    )


def _copy_still(
    reader: Reader, writer: Writer, plans: Sequence[CopyPlan], on_progress: Progress | None
) -> tuple[CopyReport, ...]:
    progress = _Progress(sum(len(plan.picks) for plan in plans), on_progress)
    marks = marks_of(reader, plans) if writer.info.kind == "sqlite" else {}
    with origin_of(reader) as origin, _transaction(writer, origin) as transaction, origin.unmoved(transaction):
        for plan in plans:
            if transaction.has_thread(plan.as_thread):
                raise preflight.thread_exists(writer, plan.as_thread)
        with open_route(origin, transaction, marks) as route:
            for group in _groups(plans):
                _copy_group(route, transaction, group, progress)
        if isinstance(reader, StatedRows):
            for plan in plans:
                same_steps(reader, transaction.reader(), plan.thread, plan.as_thread, plan.picks)
        for plan in plans:
            _apply_changes(transaction, plan)
        return tuple(_report(reader, writer, plan, transaction.count(plan.as_thread)) for plan in plans)


def _copy_handed(reader: HandsOver, writer: Writer, plans: Sequence[CopyPlan]) -> tuple[CopyReport, ...]:
    """Copies what is handed over; the plans pick the same rows."""
    ((thread, picks),) = {(plan.thread, plan.picks) for plan in plans}
    with reader.picked(thread, picks) as handed:
        reports = copy(handed.reader, writer, plans)
    place = Place(reader.info.url, thread, profile=reader.info.profile)
    return tuple(
        replace(report, source=replace(place, id=report.source.id), warnings=handed.warnings) for report in reports
    )


def _transaction(
    writer: Writer, origin: Origin
) -> AbstractContextManager[SqliteTransaction] | AbstractContextManager[PostgresTransaction]:
    if writer.info.kind == "sqlite":
        return cast("SqliteWriter", writer).first_transaction()
    return cast("PostgresWriter", writer).transaction(origin.snapshot)


class _Progress:
    """Adds up what routes tell."""

    def __init__(self, n_total: int, tell: Progress | None) -> None:
        self._n_done = 0
        self._n_total = n_total
        self._tell = tell

    def add(self, n_rows: int) -> None:
        self._n_done += n_rows
        if self._tell is not None:
            self._tell(self._n_done, self._n_total)


def _groups(plans: Sequence[CopyPlan]) -> list[list[CopyPlan]]:
    """Returns the plans that pick the same rows together, in order."""
    groups: dict[tuple[str, tuple[RowPick, ...]], list[CopyPlan]] = {}
    for plan in plans:
        groups.setdefault((plan.thread, plan.picks), []).append(plan)
    return list(groups.values())


def _copy_group(
    route: Route,
    transaction: SqliteTransaction | PostgresTransaction,
    group: Sequence[CopyPlan],
    progress: _Progress,
) -> None:
    """Copies the rows once from the source and compares them with it; the other copies are made from that one."""
    first, *others = group
    route.load(first.thread, first.as_thread, first.picks, progress.add)
    _compare(route, transaction, first)
    for plan in others:
        route.clone(first.as_thread, plan.as_thread)
        route.verify_clone(first.as_thread, plan.as_thread, plan.picks)
        progress.add(len(plan.picks))


def _compare(route: Route, transaction: SqliteTransaction | PostgresTransaction, plan: CopyPlan) -> None:
    """Reads a copy back and compares it with its source."""
    verify.all_present(plan.picks, transaction.keys(plan.as_thread), plan.as_thread)
    route.verify(plan.thread, plan.as_thread, plan.picks)


def _apply_changes(transaction: SqliteTransaction | PostgresTransaction, plan: CopyPlan) -> None:
    for key, value in plan.edits.items():
        if not transaction.set_write(plan.as_thread, key, value):
            raise Refused(
                f"the plan edits write {key[3]} of task {key[2]} on checkpoint {key[1]}, which it does not copy"
            )
    for write in plan.extra_writes:
        value = write.value or Stored("null", b"")
        transaction.add_write(plan.as_thread, preflight.added(write), write.task_path or "", write.channel, value)
    newest = newest_root(plan)
    if plan.provenance and newest is not None and not isinstance(transaction, SqliteTransaction):
        transaction.merge_metadata(plan.as_thread, "", newest, plan.provenance)


def _report(
    reader: Reader, writer: Writer, plan: CopyPlan, counts: tuple[int, int, int, int], *, dry_run: bool = False
) -> CopyReport:
    newest = newest_root(plan)
    n_checkpoints, n_writes, n_blobs, n_bytes = counts
    return CopyReport(
        source=Place(reader.info.url, plan.thread, newest, reader.info.profile),
        target=Place(writer.info.url, plan.as_thread, newest, writer.info.profile),
        n_checkpoints=n_checkpoints,
        n_writes=n_writes,
        n_blobs=n_blobs,
        n_bytes=n_bytes,
        verified=not dry_run,
        masked=MASKED in plan.provenance,
        dry_run=dry_run,
        warnings=_warnings(reader, plan),
    )


def _warnings(reader: Reader, plan: CopyPlan) -> tuple[str, ...]:
    if not isinstance(reader, StatedRows):
        return ()
    return reader.warnings(plan.thread, [(pick.ns, pick.id) for pick in plan.picks])


def _estimate(reader: Reader, writer: Writer, plan: CopyPlan) -> CopyReport:
    """Counts what would be written, by reading it."""
    n_checkpoints = n_bytes = 0
    blobs: set[tuple[str, str, object]] = set()
    for checkpoint, values in picked_in_parts(reader, plan.thread, plan.picks):
        n_checkpoints += 1
        for channel, value in values.items():
            key = (checkpoint.row.ns, channel, checkpoint.channel_versions.get(channel))
            if key not in blobs or writer.info.kind == "sqlite":
                n_bytes += len(value.data)
            blobs.add(key)
    n_writes = 0
    for write in lean_writes(reader, plan.thread, plan.picks):
        n_writes += 1
        n_bytes += write.n_bytes
    n_blobs = 0 if writer.info.kind == "sqlite" else len(blobs)
    return _report(
        reader, writer, plan, (n_checkpoints, n_writes + len(plan.extra_writes), n_blobs, n_bytes), dry_run=True
    )
