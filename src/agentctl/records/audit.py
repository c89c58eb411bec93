"""Who looked at what, and why: entries of the audit log, and what checking the log found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

Use = Literal["read", "write"]
FaultKind = Literal["edited", "damaged", "gap", "order", "cut", "uncovered", "missing", "anchor"]


@dataclass(frozen=True, slots=True)
class Why:
    """What a person gave as the cause of a read. Each is '' where it was not given."""

    ticket: str = ""
    reason: str = ""

    @property
    def given(self) -> bool:
        """Whether there is any cause."""
        return bool(self.ticket.strip() or self.reason.strip())


@dataclass(frozen=True, slots=True)
class Person:
    """Who gives a command: the login of the process's own user id, and the machine."""

    user: str
    host: str


@dataclass(frozen=True, slots=True)
class Touched:
    """What was read of a store.

    Attributes:
        threads: Threads of which rows were read by their id, the first ones.
        checkpoints: Full ids of checkpoints whose state was read, the first ones.
        n_threads: How many threads in all.
        n_checkpoints: How many checkpoints in all.
        n_rows: Rows that were handed over, by kind.
    """

    threads: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    n_threads: int = 0
    n_checkpoints: int = 0
    n_rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of a profile, from its opening entry and, where it ended, its closing one.

    Attributes:
        n: Number of the opening entry in the log, from 1.
        at: When it was logged, UTC; what was asked for was shown after that.
        who: Who gave the command.
        command: The command line's words, secrets replaced.
        profile: The profile's name.
        store: Store text, its password replaced.
        use: Whether the store was opened for writing.
        why: Ticket and reason.
        touched: What was read, None where the command was cut off before it could say.
        ended_at: When it ended, None where it was cut off.
    """

    n: int
    at: datetime
    who: Person
    command: tuple[str, ...]
    profile: str
    store: str
    use: Use
    why: Why
    touched: Touched | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditListing:
    """Entries of a log, newest first. `n_damaged` lines cannot be read."""

    folder: Path
    items: tuple[Access, ...]
    n_total: int
    n_damaged: int


@dataclass(frozen=True, slots=True)
class AuditFault:
    """One thing that is wrong with a log. `line` counts from 1; None where it is about no line."""

    kind: FaultKind
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What checking a log found.

    Attributes:
        folder: Where the log is.
        n_entries: Lines of the log.
        head: Hash of the last line, '' for an empty log.
        faults: In the order of the lines.
    """

    folder: Path
    n_entries: int
    head: str
    faults: tuple[AuditFault, ...]

    @property
    def anchor(self) -> str:
        """What, kept elsewhere, lets a later check notice that the log was cut or written anew; '' for no whole log."""
        return f"{self.n_entries}:{self.head}" if self.head and not self.faults else ""


@dataclass(frozen=True, slots=True)
class CaseEffects:
    """How the tool calls of one case were answered. `other` counts calls that fit none of the rest."""

    case: str
    n_calls: int
    recorded: int
    stubbed: int
    live: int
    blocked: int
    escaped: int
    other: int
    n_damaged: int
