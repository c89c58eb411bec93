"""What a tour of incidents walks and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentctl.records.runs import SideEffects


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident of a project: a thread that went wrong, and how it is diagnosed.

    Attributes:
        name: Its name.
        title: One line.
        story: What happened.
        user_id: The customer, as checkpoint metadata has it.
        thread: The thread that went wrong.
        revision: Appended to the thread's id in the diagnosis (`@before:triage`), '' for its default.
        options: The rest of the command line after `agentctl diagnose TARGET`.
        expected: `verdict`, and where it must name them the `call` and the `fields`.
    """

    name: str
    title: str
    story: str
    user_id: str
    thread: str
    revision: str
    options: tuple[str, ...]
    expected: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TourItem:
    """One incident walked.

    Attributes:
        workflow: Whose it is.
        incident: Its name.
        store: The production store, by profile or address without password.
        n: Replays.
        n_failed: How many of them failed.
        fork_n: Runs of the fork, 0 where there was none.
        fork_n_failed: How many of those failed, None without a fork.
        verdict: What the diagnosis said, '' where it gave none.
        expected: What the incident was written for.
        escaped: Tool calls that ran for real.
        problem: What is not as it must be, '' where all is.
    """

    workflow: str
    incident: str
    store: str
    n: int
    n_failed: int
    fork_n: int
    fork_n_failed: int | None
    verdict: str
    expected: str
    escaped: int
    problem: str


@dataclass(frozen=True, slots=True)
class TourReport:
    """A whole tour. `changed` names what moved in the production store meanwhile: files, or tables."""

    store: str
    items: tuple[TourItem, ...]
    side_effects: SideEffects
    backoffice_unchanged: bool
    changed: tuple[str, ...]
    next: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def store_unchanged(self) -> bool:
        """Whether the production store is byte for byte what it was before anyone looked."""
        return not self.changed

    @property
    def as_expected(self) -> bool:
        """Whether every verdict is the expected one, nothing escaped and nothing moved."""
        return self.store_unchanged and self.backoffice_unchanged and not any(item.problem for item in self.items)
