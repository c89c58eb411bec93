"""The speed of agentctl beside the stock API, or beside bare SQL, in the same run: whole processes, medians.

Usage: python -m benchmarks.bench [--only WORDS]... [--quick] [--cpu] [--json FILE] [--list]
`--only` takes rows whose work or store holds the words, such as `--only 'history of 5,000'`. `--quick` takes threads
and rows of a tenth of the size, and has no goals. `--cpu` compares processor time, for machines that do other work
meanwhile.

Data is generated in a temporary folder and gone afterwards; how much disk it took is said. `agentctl` runs in an empty
folder, without a configuration. "Beyond start-up" takes each program's own start-up off: the stock one opens the store
and compiles its graph, `agentctl` lists a thread of 15 checkpoints in the same store.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import beside, copying, looking, running, whole_stores
from benchmarks.measure import Bench, Case
from benchmarks.stores import Stores
from benchmarks.table import NO_GOAL, Row, printed
from benchmarks.timing import Processes
from tests.support.postgres import running_postgres

CASES: tuple[Case, ...] = (*looking.CASES, *copying.CASES, *running.CASES, *whole_stores.CASES, *beside.CASES)


def main() -> None:
    """Prints the table, and writes it as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", default=[], metavar="WORDS")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.only or any(words in str(case) for words in options.only)]
    if options.list or not chosen:
        print("\n".join(map(str, chosen or CASES)))
        return
    _compile()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agentctl-bench-") as folder, running_postgres() as url:
        home = Path(folder) / "home"
        home.mkdir()
        env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home), "NO_COLOR": "1"}
        env["PYTHONPATH"] = os.pathsep.join((str(Path.cwd()), str(Path.cwd() / "src")))
        stores = Stores(Path(folder), url, 10 if options.quick else 1)
        bench = Bench(Processes(env, home, "cpu" if options.cpu else "wall"), stores)
        rows: list[Row] = []
        n_bytes = 0
        for row in printed(_measured(chosen, bench)):
            rows.append(row)
            n_bytes = max(n_bytes, stores.n_bytes())
    taken = f"{time.monotonic() - began:.0f} s; at most {n_bytes / 1e9:.1f} GB of disk in {tempfile.gettempdir()}"
    print(f"{taken}, gone now", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps([row.as_json() for row in rows], indent=2) + "\n")


def _compile() -> None:
    """Compiles the sources, as an installer does: elsewhere than in a wheel each start could do so again."""
    for folder in ("src", "benchmarks"):
        compileall.compile_dir(folder, quiet=1)


def _measured(cases: list[Case], bench: Bench) -> Iterator[Row]:
    for number, case in enumerate(cases):
        whole = bench.stores.shorter == 1
        began = time.monotonic()
        row = case.measure(bench, case if whole else replace(case, goal=NO_GOAL))
        print(f"{time.monotonic() - began:.0f} s with its data: {case}", file=sys.stderr)
        yield row
        if case.alone and all((other.kind, other.alone) != (case.kind, case.alone) for other in cases[number + 1 :]):
            bench.stores.drop(case.kind, case.alone)


if __name__ == "__main__":
    main()
