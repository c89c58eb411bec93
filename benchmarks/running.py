"""Many replays at once beside one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import N_RUNS, Bench, Case, agentctl, shared
from benchmarks.stores import KINDS
from benchmarks.table import Goal, Row

_N_REPLAYS = 20
_GRAPH = Path(__file__).with_name("waiting.py")
_IMPORTS = "import agentctl.cli.replay, agentctl.experiments.replay, benchmarks.waiting"


def replays(bench: Bench, case: Case) -> Row:
    """Compares the replays with one replay; start-up is the import of what both import."""
    store = shared(bench, case)
    subprocess.run([sys.executable, "-m", "benchmarks.waiting", store, "waiting"], check=True)
    graph = ("--graph", f"{_GRAPH}:graph", "--store", store)

    def replay(n: int) -> list[str]:
        return agentctl("replay", "waiting@before:model", "-n", str(n), *graph)

    timings = bench.processes.alternate(
        {"ours": replay(_N_REPLAYS), "one": replay(1), "start": [sys.executable, "-c", _IMPORTS]}, N_RUNS
    )
    ours, one, start = timings["ours"], timings["one"], timings["start"]
    return Row(
        case.work,
        case.kind,
        ours,
        case.goal,
        "one replay",
        one,
        ours.seconds - start.seconds,
        one.seconds - start.seconds,
    )


CASES = tuple(
    Case(f"{_N_REPLAYS} replays of a step that waits 100 ms", kind, replays, Goal(times_beyond=3)) for kind in KINDS
)
