"""The speed of looking, beside the stock API in the same run.

Usage: python -m benchmarks.bench [--quick] [--json FILE]
Data is generated in a temporary folder and gone afterwards; the whole takes some minutes. `--quick` takes threads of a
tenth of the length.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from benchmarks.stock import open_saver
from benchmarks.threads import make_thread
from benchmarks.timing import Timing, alternate
from tests.support.postgres import running_postgres

N_RUNS = 3
LENGTHS = {"chat": (1000, 5000), "growing": (1000, 2400)}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Ratios are reference over ours; `beyond` has each program's own start-up taken off."""

    work: str
    store: str
    ours_s: float
    ours_mb: float
    reference: str
    reference_s: float
    reference_mb: float
    ratio: float
    beyond: float | None
    goal: str


def main() -> None:
    """Prints the table, and writes it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agentctl-bench-") as folder, running_postgres() as url:
        env = {**os.environ, "HOME": folder, "XDG_STATE_HOME": folder, "PYTHONPATH": str(Path.cwd()), "NO_COLOR": "1"}
        rows = list(_rows(Path(folder), url, env, 10 if options.quick else 1))
    _print(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def _rows(folder: Path, postgres: str, env: dict[str, str], shorter: int) -> Iterator[Row]:
    yield from _start_up(folder, env)
    for store in (str(folder / "bench.sqlite"), postgres):
        for kind, lengths in LENGTHS.items():
            for length in lengths:
                yield _history(store, kind, max(length // shorter, 20), env)


def _start_up(folder: Path, env: dict[str, str]) -> Iterator[Row]:
    store = str(folder / "small.sqlite")
    with open_saver(store) as saver:
        make_thread(saver, "chat", "small", 15)
    imports = [sys.executable, "-c", "import typer, rich.console"]
    for work, command in (
        ("--help", _agentctl("--help")),
        ("history of 15 rows", _agentctl("history", "small", "--store", store)),
    ):
        timings = alternate({"ours": command, "reference": imports}, env, N_RUNS * 3)
        ours, reference = timings["ours"], timings["reference"]
        yield _row(work, "SQLite", ours, "import typer, rich", reference, None, "ours <= 2.5x of it")


def _history(store: str, kind: str, length: int, env: dict[str, str]) -> Row:
    thread = f"{kind}-{length}"
    with _saver(store) as saver:
        make_thread(saver, kind, thread, length)
    stock = [sys.executable, "-m", "benchmarks.stock", store, kind, thread]
    timings = alternate(
        {
            "ours": _agentctl("history", thread, "--store", store),
            "reference": stock,
            "ours alone": _agentctl("--version"),
            "reference alone": [*stock, "--start-up"],
        },
        env,
        N_RUNS,
    )
    ours, reference = timings["ours"], timings["reference"]
    if ours.n_lines != reference.n_lines:
        raise RuntimeError(f"{thread}: {ours.n_lines} rows listed, the stock API lists {reference.n_lines}")
    beyond = (reference.wall_s - timings["reference alone"].wall_s) / max(
        ours.wall_s - timings["ours alone"].wall_s, 1e-3
    )
    goals = {
        ("chat", 1000): ">= 5x, beyond 30x",
        ("chat", 5000): ">= 15x, beyond 30x",
        ("growing", 1000): ">= 20x, beyond 100x",
    }
    goal = goals.get((kind, length), ">= 80x, beyond 100x" if kind == "growing" else "")
    name = "Postgres" if store.startswith("postgresql") else "SQLite"
    return _row(f"history of {ours.n_lines:,}, {kind}", name, ours, "get_state_history", reference, beyond, goal)


@contextmanager
def _saver(store: str) -> Iterator[BaseCheckpointSaver[Any]]:
    with open_saver(store) as saver:
        saver.setup()
        yield saver


def _row(work: str, store: str, ours: Timing, named: str, reference: Timing, beyond: float | None, goal: str) -> Row:
    ratio = reference.wall_s / ours.wall_s
    return Row(work, store, ours.wall_s, ours.peak_mb, named, reference.wall_s, reference.peak_mb, ratio, beyond, goal)


def _agentctl(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agentctl", *arguments]


def _print(rows: Sequence[Row]) -> None:
    print("| work | store | agentctl | reference | ratio | beyond start-up | goal |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        ratio = f"{row.ratio:.1f}x" if row.ratio >= 1 else f"1 / {1 / row.ratio:.1f}"
        beyond = "" if row.beyond is None else f"{row.beyond:.0f}x"
        ours = f"{row.ours_s:.2f} s, {row.ours_mb:.0f} MB"
        reference = f"{row.reference}: {row.reference_s:.2f} s, {row.reference_mb:.0f} MB"
        print(f"| {row.work} | {row.store} | {ours} | {reference} | {ratio} | {beyond} | {row.goal} |")


if __name__ == "__main__":
    main()
