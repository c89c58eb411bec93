"""Copies beside the same rows moved by bare SQL: one process each, only the moving timed, verification shown apart."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from functools import partial

from benchmarks.measure import N_RUNS, Bench, Case, shared
from benchmarks.stores import Kind
from benchmarks.table import Goal, Row
from benchmarks.timing import Timing

_LENGTH = 1000
_COPIES = "copies"


def copy(bench: Bench, case: Case, *, kind: str, elsewhere: bool) -> Row:
    """Compares a copy of a whole thread with bare SQL."""
    source = shared(bench, case)
    thread = bench.stores.thread(source, kind, _LENGTH)
    target = bench.stores.place(case.kind, case.alone) if elsewhere else source
    told: dict[str, list[dict[str, float]]] = {"agentctl": [], "bare": []}
    for round_ in range(N_RUNS + 1):
        for way, runs in told.items():
            command = [sys.executable, "-m", "benchmarks.copies", way, source, target, thread]
            out = subprocess.run(
                command, check=True, capture_output=True, text=True, env=dict(bench.processes.env)
            ).stdout
            if round_:
                runs.append(json.loads(out))
    ours, bare = _median(told["agentctl"]), _median(told["bare"])
    verify_s = statistics.median(run["verify_s"] for run in told["agentctl"])
    return Row(case.work, case.kind, ours, case.goal, "bare SQL", bare, note=f"and {verify_s:.2f} s to verify")


def _median(runs: list[dict[str, float]]) -> Timing:
    return Timing(
        statistics.median(run["seconds"] for run in runs), statistics.median(run["peak_mb"] for run in runs), 0
    )


_ROUTES: tuple[tuple[str, Kind, bool, Goal], ...] = (
    ("in one Postgres", "Postgres", False, Goal(times=1.3)),
    ("between Postgres databases", "Postgres", True, Goal(times=2)),
    ("between SQLite files", "SQLite", True, Goal(times=2)),
)

CASES = tuple(
    Case(
        f"copy of {_LENGTH:,} {kind} {where}",
        store,
        partial(copy, kind=kind, elsewhere=elsewhere),
        goal,
        _COPIES if elsewhere else "",
    )
    for where, store, elsewhere, goal in _ROUTES
    for kind in ("chat", "growing")
)
