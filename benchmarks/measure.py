"""What a measurement is, and what several share.

Nothing that measures imports langgraph: a child's peak memory counts from that of the process that starts it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.stores import Kind, Stores
from benchmarks.table import NO_GOAL, Goal, Row
from benchmarks.timing import Processes

N_RUNS = 3
TELLING_S = 0.03
"""Less than this beyond start-up is lost in the noise of two starts."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What measurements work with."""

    processes: Processes
    stores: Stores


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table to be measured.

    Attributes:
        work: What is done.
        kind: The kind of store.
        measure: Makes the data it needs and measures.
        goal: What is to be reached.
        alone: Name of a store that is removed after the last case that names it; '' for the shared one.
    """

    work: str
    kind: Kind
    measure: Callable[[Bench, Case], Row]
    goal: Goal = NO_GOAL
    alone: str = ""

    def __str__(self) -> str:
        return f"{self.work} ({self.kind})"


def shared(bench: Bench, case: Case) -> str:
    """Returns the store that most measurements of a kind share."""
    return bench.stores.place(case.kind, "bench")


def agentctl(*arguments: str) -> list[str]:
    """Returns the command line of agentctl."""
    return [sys.executable, "-m", "agentctl", *arguments]


def stock(store: str, kind: str, thread: str) -> list[str]:
    """Returns the command line of the stock API's process."""
    return [sys.executable, "-m", "benchmarks.stock", store, kind, thread]


def small_history(store: str) -> list[str]:
    """Returns the command that stands for agentctl's start-up."""
    return agentctl("history", "small", "--store", store)


def ours_alone(bench: Bench, case: Case, command: list[str], store: str) -> Row:
    """Measures a command without a reference, and its start-up."""
    timings = bench.processes.alternate({"ours": command, "start": small_history(store)}, N_RUNS)
    ours = timings["ours"]
    beyond = max(ours.seconds - timings["start"].seconds, 0.0)
    return Row(case.work, case.kind, ours, case.goal, ours_beyond_s=beyond)
