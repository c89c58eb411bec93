"""Stores that are large as a whole: a gigabyte, a hundred thousand checkpoints, one row of 80 megabytes."""

from __future__ import annotations

from functools import partial

from benchmarks.measure import N_RUNS, Bench, Case, agentctl, ours_alone, stock
from benchmarks.stores import KINDS, Kind
from benchmarks.table import Goal, Row
from benchmarks.timing import Timing, median_of

_N_GIGABYTE = 34
"""How many threads of 1,000 checkpoints of `chat`, with their writes, take a gigabyte."""
_N_THREADS = 1000
_N_CHECKPOINTS = 100
_ROW_MB = 80

_FLAT = Goal(megabytes=80)
_SOON = Goal(seconds=2, megabytes=80)


def gigabyte(bench: Bench, case: Case, *, arguments: tuple[str, ...], against_stock: bool) -> Row:
    """Measures a command on a store of a gigabyte; `size` beside listing and packing by the stock API."""
    store = bench.stores.place(case.kind, case.alone)
    source = bench.stores.thread(store, "chat", 1000)
    bench.stores.write(store, "multiply", source, _N_GIGABYTE - 1)
    ours = agentctl(*arguments, "--store", store)
    if not against_stock:
        return ours_alone(bench, case, ours, store)
    reference = [*stock(store, "chat", source), "--sizes"]
    timings = bench.processes.alternate({"ours": ours, "theirs": reference}, N_RUNS, slow=["theirs"])
    if timings["ours"].n_lines != timings["theirs"].n_lines:
        raise RuntimeError(f"{store}: {timings['ours'].n_lines} threads measured, not {timings['theirs'].n_lines}")
    return Row(case.work, case.kind, timings["ours"], case.goal, "list and pack", timings["theirs"])


def many(bench: Bench, case: Case, *, arguments: tuple[str, ...]) -> Row:
    """Measures a command on a store of many short threads."""
    store = bench.stores.place(case.kind, case.alone)
    bench.stores.write(store, "make", "short", "short", _N_CHECKPOINTS)
    bench.stores.write(store, "multiply", "short", max(_N_THREADS // bench.stores.shorter, 2) - 1)
    return ours_alone(bench, case, agentctl(*arguments, "--store", store), store)


def heavy(bench: Bench, case: Case, *, arguments: tuple[str, ...]) -> Row:
    """Measures a command on a thread in which one row is far larger than the others."""
    store = bench.stores.place(case.kind, case.alone)
    bench.stores.write(store, "heavy", "heavy", _ROW_MB // bench.stores.shorter)
    return ours_alone(bench, case, agentctl(*arguments, "--store", store), store)


def heavy_copy(bench: Bench, case: Case, *, into: Kind | None) -> Row:
    """Measures a copy of that thread into a store that is new each time; None for the store itself."""
    store = bench.stores.place(case.kind, case.alone)
    bench.stores.write(store, "heavy", "heavy", _ROW_MB // bench.stores.shorter)
    timings: list[Timing] = []
    for number in range(N_RUNS + 1):
        name = f"{case.kind}_copy_{number}".lower()
        target = store if into is None else bench.stores.place(into, name)
        words = ("copy", "heavy", "--only", "all", "--store", store, "--to", target, "--as", f"heavy-{number}")
        timings.append(bench.processes.run_once(agentctl(*words)))
        if into is not None:
            bench.stores.drop(into, name)
    return Row(case.work, case.kind, median_of(timings[1:]), case.goal)


_DIRECTIONS: tuple[tuple[str, Kind, Kind | None], ...] = (
    ("between files", "SQLite", "SQLite"),
    ("into Postgres", "SQLite", "Postgres"),
    ("in one Postgres", "Postgres", None),
    ("between databases", "Postgres", "Postgres"),
    ("into a file", "Postgres", "SQLite"),
)

CASES = (
    *(
        Case(
            f"{arguments[0]} of 1 GB",
            kind,
            partial(gigabyte, arguments=arguments, against_stock=stock_too),
            goal,
            "gigabyte",
        )
        for kind in KINDS
        for arguments, stock_too, goal in (
            (("threads", "--limit", "0"), False, _SOON),
            (("size", "--top", "0"), True, _FLAT),
        )
    ),
    *(
        Case(
            f"{arguments[0]} of 100,000 checkpoints in 1,000 threads",
            kind,
            partial(many, arguments=arguments),
            goal,
            "many",
        )
        for kind in KINDS
        for arguments, goal in ((("threads", "--limit", "0"), _SOON), (("size", "--top", "0"), _FLAT))
    ),
    *(
        Case(f"{name} beside a row of {_ROW_MB} MB", kind, partial(heavy, arguments=arguments), _FLAT, "heavy")
        for kind in KINDS
        for name, arguments in (
            ("threads", ("threads",)),
            ("threads --grep", ("threads", "--grep", "no such text")),
            ("history", ("history", "heavy")),
            ("show", ("show", "heavy")),
            ("size", ("size", "heavy")),
            ("size --by message", ("size", "heavy", "--by", "message")),
            ("size --by field", ("size", "heavy", "--by", "field")),
            ("doctor", ("doctor", "heavy")),
            ("diff", ("diff", "heavy", "heavy@root")),
        )
    ),
    *(
        Case(f"copy {where} beside a row of {_ROW_MB} MB", kind, partial(heavy_copy, into=into), _FLAT, "heavy")
        for where, kind, into in _DIRECTIONS
    ),
)
