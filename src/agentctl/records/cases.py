"""What a case holds: the evidence of one investigation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from agentctl.records.copies import Place

CaseState = Literal["open", "closed"]
CaseEventKind = Literal["opened", "reopened", "closed"]


@dataclass(frozen=True, slots=True)
class CaseEvent:
    """One turn of a case's life. `text` is the reason it was opened with, or its conclusion."""

    kind: CaseEventKind
    at: datetime
    text: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A case and where its files are.

    Attributes:
        name: Folder name, safe in a path.
        folder: Absolute.
        state: Whether runs may be added.
        events: From its opening on, oldest first.
        source: The thread it was opened for by itself; None where a person named the case.
    """

    name: str
    folder: Path
    state: CaseState
    events: tuple[CaseEvent, ...]
    source: Place | None = None

    @property
    def opened_at(self) -> datetime:
        """When it was first opened, UTC."""
        return self.events[0].at

    @property
    def closed_at(self) -> datetime | None:
        """When it was closed, None while it is open."""
        return self.events[-1].at if self.state == "closed" else None

    @property
    def reason(self) -> str:
        """The last reason given for opening it."""
        return next((event.text for event in reversed(self.events) if event.kind != "closed" and event.text), "")

    @property
    def conclusion(self) -> str:
        """What was concluded when it was last closed, '' before."""
        return next((event.text for event in reversed(self.events) if event.kind == "closed"), "")


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """One case of a list. `n_escaped` counts tool calls that ran for real; the target is zero."""

    case: Case
    n_runs: int
    n_calls: int
    n_escaped: int
    n_threads: int


@dataclass(frozen=True, slots=True)
class DebugThread:
    """A debug thread that was made for a case. `store` has no password; `deleted_at` is set once it is gone."""

    store: str
    thread: str
    profile: str
    kind: str
    at: datetime
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CaseView:
    """A case in full. `runs` and `calls` are lines of its ledger as they were written, oldest first.

    `n_damaged` counts ledger lines that cannot be read, such as one cut by a crash.
    """

    summary: CaseSummary
    threads: tuple[DebugThread, ...]
    runs: tuple[Mapping[str, object], ...]
    calls: tuple[Mapping[str, object], ...]
    reports: tuple[Path, ...]
    n_damaged: int = 0
