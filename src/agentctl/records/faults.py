"""What `doctor` reads of a store beside its checkpoints, and what it reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["fault", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("fault", "warning", "info")
"""Worst first. Only a fault makes `doctor` exit with 1."""

StoredTable = Literal["checkpoints", "blobs", "writes"]


class OrphanRows(NamedTuple):
    """Rows of a thread that belong to no checkpoint of it.

    `checkpoint` is the id that the rows name, None for blobs, which name a channel and a version. `n_newer` of those
    have a version after all that the checkpoints of their namespace name.
    """

    table: StoredTable
    ns: str
    checkpoint: str | None
    channel: str | None
    n_rows: int
    n_newer: int = 0


class TypeCount(NamedTuple):
    """How many rows of one table and namespace have a serialization type, and a checkpoint that has one (or '')."""

    table: StoredTable
    ns: str
    type: str
    n_rows: int
    checkpoint: str


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """How the tables of a store differ from those that LangGraph's savers make.

    Attributes:
        migration: The layout's number, None where the store keeps none (SQLite).
        known_migration: The newest number that this version knows, None likewise.
        has_task_path: Whether pending writes say which task made them.
        extra_columns: Columns, as `table.column`, that no saver makes.
        lacking_keys: Tables whose primary key is not there, so that rows can be there twice.
    """

    migration: int | None = None
    known_migration: int | None = None
    has_task_path: bool = True
    extra_columns: tuple[str, ...] = ()
    lacking_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that `doctor` found.

    Attributes:
        code: Which rule; docs/doctor.md has the table.
        severity: Of the code, unless a command line option made it worse.
        thread: Thread id, None for what concerns the whole store.
        ns: Namespace, '' for the root graph.
        checkpoint: The checkpoint it was found at, the first one where there are several; None where no checkpoint is.
        cause: One sentence.
        command: What helps, as it can be pasted into a shell.
        n_found: How often the same was found in that namespace.
    """

    code: str
    severity: Severity
    thread: str | None
    ns: str
    checkpoint: str | None
    cause: str
    command: str
    n_found: int = 1


@dataclass(frozen=True, slots=True)
class Examined:
    """One thread, or the store itself (`thread` None), with all that was found, worst first."""

    thread: str | None
    n_checkpoints: int
    faults: tuple[Fault, ...]
    ids: tuple[str, ...] = ()


@dataclass(slots=True)
class Tally:
    """How much was looked at, and how many of each severity were found."""

    n_threads: int = 0
    n_faults: int = 0
    n_warnings: int = 0
    n_infos: int = 0

    @property
    def n_total(self) -> int:
        """All that was found."""
        return self.n_faults + self.n_warnings + self.n_infos

    def add(self, examined: Examined) -> None:
        """Counts one thread, or the store itself."""
        self.n_threads += examined.thread is not None
        self.n_faults += count(examined.faults, "fault")
        self.n_warnings += count(examined.faults, "warning")
        self.n_infos += count(examined.faults, "info")


def count(faults: Iterable[Fault], severity: Severity) -> int:
    """Returns how many are of a severity."""
    return sum(fault.severity == severity for fault in faults)


def worst_first(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Returns faults before warnings before infos, in the order in which they were found."""
    return tuple(sorted(faults, key=lambda fault: SEVERITIES.index(fault.severity)))
