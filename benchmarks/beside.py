"""What an application's puts take while agentctl looks at its store and copies from it, and without that.

Usage: python -m benchmarks.beside STORE TARGET N_TURNS
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

from benchmarks.measure import Bench, Case, agentctl
from benchmarks.stores import Kind
from benchmarks.table import Goal, Row
from benchmarks.timing import Timing

_N_TURNS = 60
_WORK = "puts of an application while agentctl looks and copies"


def _measure(bench: Bench, case: Case) -> Row:
    store = bench.stores.place(case.kind, "beside")
    with tempfile.TemporaryDirectory() as folder:
        n_turns = bench.stores.length(_N_TURNS)
        command = [sys.executable, "-m", "benchmarks.beside", store, f"{folder}/copies.sqlite", str(n_turns)]
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            env=dict(bench.processes.env),
            cwd=bench.processes.cwd,
        )
    told = json.loads(done.stdout)
    beside, alone = told["beside_ms"], told["alone_ms"]
    return Row(
        case.work,
        case.kind,
        Timing(statistics.median(beside) / 1000, 0.0, told["n_commands"]),
        case.goal,
        "the same puts alone",
        Timing(statistics.median(alone) / 1000, 0.0, 0),
        note=f"slowest {max(beside):.0f} ms, alone {max(alone):.0f} ms",
    )


CASES: tuple[Case, ...] = tuple(Case(_WORK, kind, _measure, Goal(times=2.0), "beside") for kind in get_args(Kind))


def main() -> None:
    """Lets an application write turns, first alone and then beside commands, and prints what its puts took."""
    from tests.support.stores import saver_at
    from tests.support.writing import THREAD, writing

    store, target, turns = sys.argv[1:]
    n_turns = int(turns)
    with saver_at(store) as saver:
        saver.setup()
    commands = itertools.cycle(
        agentctl(*words, "--store", store)
        for words in (
            ("history", THREAD, "--all"),
            ("doctor", THREAD),
            ("size", THREAD),
            ("copy", THREAD, "--only", "all", "--to", target),
        )
    )
    with tempfile.TemporaryDirectory() as folder, writing(store, Path(folder)) as writer:
        writer.goes_on(n_turns)
        n_alone, n_commands = len(writer.lines()), 0
        while len(writer.lines()) < n_alone + n_turns:
            subprocess.run(next(commands), check=True, stdout=subprocess.DEVNULL)
            n_commands += 1
        lines = writer.lines()
    alone, beside = ([ms for line in part for ms in line["puts_ms"]] for part in (lines[:n_alone], lines[n_alone:]))
    print(json.dumps({"alone_ms": alone, "beside_ms": beside, "n_commands": n_commands}))


if __name__ == "__main__":
    main()
