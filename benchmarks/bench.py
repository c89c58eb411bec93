"""The speed of looking, beside the stock API in the same run.

Usage: python -m benchmarks.bench [--quick] [--cpu] [--json FILE]
Data is generated in a temporary folder and gone afterwards; the whole takes some minutes. `--quick` takes threads of a
tenth of the length. `--cpu` compares processor time, for machines that do other work meanwhile. `agentctl` runs in an
empty folder, without a configuration.

"Beyond start-up" takes each program's own start-up off: the stock one opens the store and compiles its graph,
`agentctl` lists a thread of 15 checkpoints in the same store.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.timing import Processes, Timing
from tests.support.postgres import running_postgres

N_RUNS = 3
N_SMALL = 15
N_GIGABYTE = 34
"""How many threads of 1,000 checkpoints of `chat`, with their writes, take a gigabyte."""
_TELLING_S = 0.05
LENGTHS = {"chat": (1000, 5000), "growing": (1000, 2400)}
GOALS = {
    ("chat", 1000): ">= 5x, beyond 30x",
    ("chat", 5000): ">= 15x, beyond 30x",
    ("growing", 1000): ">= 20x, beyond 100x",
    ("growing", 2400): ">= 80x, beyond 100x",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Ratios are reference over ours; `beyond` has each program's own start-up taken off."""

    work: str
    store: str
    ours_s: float
    ours_mb: float
    reference: str
    reference_s: float | None
    reference_mb: float | None
    ratio: float | None
    beyond: float | None
    goal: str


def main() -> None:
    """Prints the table, and writes it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agentctl-bench-") as folder, running_postgres() as url:
        home = Path(folder) / "home"
        home.mkdir()
        env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home), "NO_COLOR": "1"}
        env["PYTHONPATH"] = os.pathsep.join((str(Path.cwd()), str(Path.cwd() / "src")))
        bench = Bench(Processes(env, home, "cpu" if options.cpu else "wall"), 10 if options.quick else 1)
        rows = list(_printed(_all_rows(bench, folder, url)))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def _all_rows(bench: Bench, folder: str, postgres: str) -> Iterator[Row]:
    yield from bench.start_up(f"{folder}/small.sqlite")
    for store in (f"{folder}/bench.sqlite", postgres):
        yield from bench.histories(store)
        yield from bench.single(store)
    yield from bench.long(f"{folder}/bench.sqlite")
    for store in (f"{folder}/large.sqlite", postgres):
        yield from bench.large(store)


@dataclass(frozen=True, slots=True)
class Bench:
    """The measurements. `shorter` divides the length of threads."""

    processes: Processes
    shorter: int

    def start_up(self, store: str) -> Iterator[Row]:
        """Compares the least that any command costs."""
        _write(store, "make", "chat", "small", N_SMALL)
        imports = [sys.executable, "-c", "import typer, rich.console"]
        for work, command in (
            ("--help", _agentctl("--help")),
            (f"history of {N_SMALL} rows", _agentctl("history", "small", "--store", store)),
        ):
            timings = self.processes.alternate({"ours": command, "reference": imports}, N_RUNS * 3)
            yield _row(work, store, timings["ours"], "import typer, rich", timings["reference"], "ours <= 2.5x of it")

    def histories(self, store: str) -> Iterator[Row]:
        """Compares whole histories; the threads stay in the store."""
        _write(store, "make", "chat", "small", N_SMALL)
        for kind, lengths in LENGTHS.items():
            for length in lengths:
                _write(store, "make", kind, f"{kind}-{length}", max(length // self.shorter, 20))
                yield self._history(store, kind, length)

    def single(self, store: str) -> Iterator[Row]:
        """Compares one checkpoint, one page, one difference, and a list of threads."""
        in_store = ("--store", store)
        page = _agentctl("history", "chat-5000", "--limit", "50", *in_store)
        yield self._ours("first 50 of 5,000", store, page, "as of 15 rows")
        listed = subprocess.run(page, check=True, capture_output=True, text=True).stdout
        checkpoint_id = listed.splitlines()[-1].partition("\t")[0]
        show = _agentctl("show", f"chat-5000@{checkpoint_id}", *in_store)
        stock = [*_stock(store, "chat", "chat-5000"), "--checkpoint", checkpoint_id]
        timings = self.processes.alternate({"ours": show, "reference": stock}, N_RUNS)
        yield _row("show, 1 of 5,000", store, timings["ours"], "get_state", timings["reference"], ">= 1x")
        n_messages = 5000 // self.shorter
        left, right = _write(store, "branches", "branches", n_messages).split()
        diff = _agentctl("diff", f"branches@{left}", f"branches@{right}", *in_store)
        yield self._ours(f"diff, 2 branches of {n_messages:,}", store, diff, "<= 0.5 s beyond start-up, linear")
        yield self._ours("threads", store, _agentctl("threads", *in_store), "no state read, <= 2 s")

    def long(self, path: str) -> Iterator[Row]:
        """Measures the memory of a long history, in a SQLite file that has `chat-5000`."""
        _write(path, "lengthen", "chat-5000", "chat-20000", 4)
        command = _agentctl("history", "chat-20000", "--store", path)
        yield self._ours("history of 20,000", path, command, "<= 80 MB")

    def large(self, store: str) -> Iterator[Row]:
        """Measures a whole store; on Postgres the threads of the other measurements are in it too."""
        _write(store, "make", "chat", "large", max(1000 // self.shorter, 20))
        _write(store, "multiply", "large", N_GIGABYTE - 1)
        what = "1 GB" if self.shorter == 1 else f"{1000 // self.shorter} MB"
        threads = _agentctl("threads", "--limit", "0", "--store", store)
        yield self._ours(f"threads of {what}", store, threads, "no state read, <= 2 s")
        commands = {
            "ours": _agentctl("size", "--top", "0", "--store", store),
            "reference": [*_stock(store, "chat", "large"), "--sizes"],
        }
        timings = self.processes.alternate(commands, N_RUNS, slow=["reference"])
        ours, reference = timings["ours"], timings["reference"]
        if ours.n_lines != reference.n_lines:
            raise RuntimeError(f"{store}: {ours.n_lines} threads measured, the stock API has {reference.n_lines}")
        yield _row(f"size of {what}", store, ours, "list and pack", reference, "no state read, memory flat")

    def _history(self, store: str, kind: str, length: int) -> Row:
        thread = f"{kind}-{length}"
        stock = _stock(store, kind, thread)
        timings = self.processes.alternate(
            {
                "ours": _agentctl("history", thread, "--store", store),
                "reference": stock,
                "ours alone": _agentctl("history", "small", "--store", store),
                "reference alone": [*stock, "--start-up"],
            },
            N_RUNS,
            slow=["reference"],
        )
        ours, reference = timings["ours"], timings["reference"]
        if ours.n_lines != reference.n_lines:
            raise RuntimeError(f"{thread}: {ours.n_lines} rows listed, the stock API lists {reference.n_lines}")
        ours_beyond = ours.seconds - timings["ours alone"].seconds
        # Less than this is lost in the noise of two starts.
        beyond = (
            (reference.seconds - timings["reference alone"].seconds) / ours_beyond if ours_beyond > _TELLING_S else None
        )
        goal = GOALS[kind, length] if self.shorter == 1 else ""
        work = f"history of {ours.n_lines:,}, {kind}"
        return _row(work, store, ours, "get_state_history", reference, goal, beyond)

    def _ours(self, work: str, store: str, command: Sequence[str], goal: str) -> Row:
        return _row(work, store, self.processes.alternate({"ours": command}, N_RUNS)["ours"], "", None, goal)


def _write(store: str, *arguments: object) -> str:
    """Writes threads by `benchmarks.threads`; returns what it prints."""
    command = [sys.executable, "-m", "benchmarks.threads", store, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _row(
    work: str, store: str, ours: Timing, named: str, reference: Timing | None, goal: str, beyond: float | None = None
) -> Row:
    name = "Postgres" if store.startswith("postgresql") else "SQLite"
    if reference is None:
        return Row(work, name, ours.seconds, ours.peak_mb, named, None, None, None, beyond, goal)
    ratio = reference.seconds / ours.seconds
    return Row(work, name, ours.seconds, ours.peak_mb, named, reference.seconds, reference.peak_mb, ratio, beyond, goal)


def _agentctl(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agentctl", *arguments]


def _stock(store: str, kind: str, thread: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.stock", store, kind, thread]


def _printed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the rows on, each printed as soon as it is measured."""
    print("| work | store | agentctl | reference | ratio | beyond start-up | goal |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.1f}x" if row.ratio >= 1 else f"1 / {1 / row.ratio:.1f}"
        beyond = "" if row.beyond is None else f"{row.beyond:.0f}x"
        ours = f"{row.ours_s:.2f} s, {row.ours_mb:.0f} MB"
        reference = f"{row.reference}: {row.reference_s:.2f} s, {row.reference_mb:.0f} MB" if row.reference else ""
        print(f"| {row.work} | {row.store} | {ours} | {reference} | {ratio} | {beyond} | {row.goal} |", flush=True)
        yield row


if __name__ == "__main__":
    main()
