"""Reading a copy back, inside the transaction that made it, and comparing it with its source value by value.

A difference ends the transaction, so that a copy which could mislead is never left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

from agentctl.codec.large import whole
from agentctl.errors import StoreError
from agentctl.records.rows import Large, Stored, StoredCheckpoint, WriteRow
from agentctl.stores.base import Reader, RowPick
from agentctl.stores.copying import sqlite_rows
from agentctl.stores.copying.compare import same_value
from agentctl.stores.copying.convert import Unholdable, is_delta_snapshot, packed_form
from agentctl.stores.copying.converted_rows import (
    Picked,
    lean_writes,
    opened,
    picked_in_parts,
    sha256_of,
    written,
)
from agentctl.stores.copying.marks import Mark, marked
from agentctl.stores.sqlite.keys import ThreadKeys
from agentctl.stores.sqlite.opening import Readable
from agentctl.stores.sqlite.writer import SqliteTransaction

N_KEY_COLUMNS = {"checkpoints": 2, "checkpoint_blobs": 3, "checkpoint_writes": 5}
"""How many columns after the thread id tell a row of a Postgres table from the others."""


def same_columns(
    source: Readable,
    target: SqliteTransaction,
    thread: str,
    as_thread: str,
    picks: Sequence[RowPick],
    mark: Mark | None,
    keys: ThreadKeys | None = None,
) -> None:
    """Compares every column of every picked row between two SQLite files.

    Args:
        source: The one.
        target: The other.
        thread: The thread in the source.
        as_thread: The thread in the target.
        picks: Which rows.
        mark: What one row has in the target alone.
        keys: The rows of the source that were to be copied; None for all.

    Raises:
        StoreError: A row is missing or differs; the message names it.
    """
    for expected, found in chain(
        zip_longest(
            marked(sqlite_rows.read_checkpoints(source, thread, picks), mark),
            sqlite_rows.read_checkpoints(target, as_thread, picks),
        ),
        zip_longest(
            sqlite_rows.read_writes(source, thread, picks, keys), sqlite_rows.read_writes(target, as_thread, picks)
        ),
    ):
        if expected != found:
            row = expected or found
            raise _differs(as_thread, f"checkpoint {row[1]}" if row else "a row")


def same_digests(
    source: Mapping[str, Sequence[tuple[Any, ...]]], target: Mapping[str, Sequence[tuple[Any, ...]]], as_thread: str
) -> None:
    """Compares rows of two Postgres databases by their keys, short columns and the SHA-256 of their values.

    Raises:
        StoreError: A row is missing, one too many, or differs; the message names it.
    """
    for table, rows in source.items():
        for expected, found in zip_longest(rows, target[table]):
            if expected != found:
                row = expected or found or ()
                raise _differs(as_thread, f"{table} {row[: N_KEY_COLUMNS[table]]}")


def none_different(found: tuple[str, tuple[Any, ...]] | None, as_thread: str) -> None:
    """Raises StoreError where a row was found that differs, given by table and key."""
    if found is not None:
        raise _differs(as_thread, f"{found[0]} {found[1]}")


def same_values(
    reader: Reader, copy: Reader, thread: str, as_thread: str, picks: Sequence[RowPick], mark: Mark | None = None
) -> None:
    """Compares checkpoints and writes of two stores of any kind as their readers give them.

    Args:
        reader: The source.
        copy: The target.
        thread: The thread in the source.
        as_thread: The thread in the target.
        picks: Which rows.
        mark: What one row has in the target alone.

    Raises:
        StoreError: A row is missing or differs; the message names it.
    """
    checkpoints = zip_longest(picked_in_parts(reader, thread, picks), picked_in_parts(copy, as_thread, picks))
    for expected, found in checkpoints:
        if expected is None or found is None:
            raise _differs(as_thread, f"checkpoint {(expected or found).checkpoint.row.id}")
        what = _difference(_with_mark(opened(expected), mark), opened(found))
        if what is not None:
            raise _differs(as_thread, f"{what} of checkpoint {expected.checkpoint.row.id}")
    writes = zip_longest(lean_writes(reader, thread, picks), lean_writes(copy, as_thread, picks))
    for wrote, copied in writes:
        if (
            wrote is None
            or copied is None
            or _key(wrote) != _key(copied)
            or not _is_equal(written(reader, thread, wrote), written(copy, as_thread, copied))
        ):
            one = wrote or copied
            raise _differs(as_thread, f"write {one.idx} of task {one.task_id} on checkpoint {one.checkpoint_id}")


def all_present(picks: Sequence[RowPick], found: Iterable[tuple[str, str]], as_thread: str) -> None:
    """Raises StoreError where a picked row is there neither as a checkpoint nor with writes.

    Args:
        picks: What was to be copied.
        found: (namespace, checkpoint id) of what is there.
        as_thread: The copy.
    """
    missing = {(pick.ns, pick.id) for pick in picks} - set(found)
    if missing:
        raise _differs(as_thread, f"checkpoint {min(missing)[1]}")


def _with_mark(found: Picked, mark: Mark | None) -> Picked:
    row = found.checkpoint.row
    if mark is None or row.ns != "" or row.id != mark.id:
        return found
    return found._replace(checkpoint=replace(found.checkpoint, row=row._replace(metadata=mark.metadata)))


def _difference(one: Picked, other: Picked) -> str | None:
    """Returns the name of what differs between two checkpoints, or None."""
    expected, found = one.checkpoint, other.checkpoint
    for name, first, second in (
        ("parent", expected.row.parent, found.row.parent),
        ("metadata", expected.row.metadata, found.row.metadata),
        ("format", expected.format, found.format),
        ("time", expected.ts, found.ts if expected.ts is not None else None),
        ("channel versions", expected.channel_versions, found.channel_versions),
        ("versions seen", expected.versions_seen, found.versions_seen),
        ("updated channels", expected.updated_channels, found.updated_channels),
    ):
        if first != second:
            return name
    expected_values, found_values = _present(one.values), _present(other.values)
    for channel in expected_values.keys() ^ found_values.keys():
        if channel in expected_values or not _may_gain(channel, expected, found_values[channel]):
            return f"channel {channel}"
    for channel, value in expected_values.items():
        if not _is_same(value, found_values[channel]):
            return f"channel {channel}"
    return None


def _is_same(first: Stored | Large, second: Stored | Large) -> bool:
    """Tells whether two values read back equal; of large ones, that are packed the same, without holding them."""
    if isinstance(first, Large) and isinstance(second, Large):
        try:
            if sha256_of(packed_form(first)) == sha256_of(packed_form(second)):
                return True
        except Unholdable:
            return _is_equal(first, second)
    return same_value(whole(first), whole(second))


def _is_equal(first: Stored | Large, second: Stored | Large) -> bool:
    """Tells whether two values are the same byte for byte."""
    return first.type == second.type and sha256_of(first.data) == sha256_of(second.data)


def _may_gain(channel: str, expected: StoredCheckpoint, found: Stored | Large) -> bool:
    """Tells whether a checkpoint may read back with a value that its source row does not hold.

    Postgres finds the snapshot of a delta channel by its version, so also from later checkpoints of the same version.
    """
    return is_delta_snapshot(found) and channel in expected.channel_versions


def _present(values: Mapping[str, Stored | Large]) -> dict[str, Stored | Large]:
    return {channel: value for channel, value in values.items() if value.type != "empty"}


def _key(write: WriteRow) -> tuple[object, ...]:
    return write.ns, write.checkpoint_id, write.task_id, write.task_path or "", write.idx, write.channel


def _differs(as_thread: str, what: str) -> StoreError:
    return StoreError(
        f"the copy {as_thread} was taken back: {what} did not read back as the source has it",
        hint="the source may have changed meanwhile; run the command again",
    )
