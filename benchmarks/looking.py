"""Histories, one checkpoint, one page, a difference: beside the stock API, and by themselves."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from benchmarks.measure import N_RUNS, TELLING_S, Bench, Case, agentctl, ours_alone, shared, small_history, stock
from benchmarks.stores import KINDS, N_SMALL
from benchmarks.table import Goal, Row

_LONG = 20_000
_RUN = 1000
"""Longest thread of `chat` that is made by running the graph: all of its later rows are alike."""
_HISTORIES = (
    ("chat", 1000, Goal(faster=5, faster_beyond=30)),
    ("chat", 5000, Goal(faster=15, faster_beyond=30)),
    ("growing", 1000, Goal(faster=20, faster_beyond=100)),
    ("growing", 2400, Goal(faster=80, faster_beyond=100)),
)
_PAGES = (1000, 5000, _LONG)


def start_up(bench: Bench, case: Case, *, arguments: tuple[str, ...]) -> Row:
    """Compares the least that any command costs with the import of what prints it."""
    store = shared(bench, case)
    ours = agentctl(*arguments, *(("--store", store) if arguments[0] == "history" else ()))
    imports = [sys.executable, "-c", "import typer, rich.console"]
    timings = bench.processes.alternate({"ours": ours, "theirs": imports}, N_RUNS * 3)
    return Row(case.work, case.kind, timings["ours"], case.goal, "import typer, rich", timings["theirs"])


def history(bench: Bench, case: Case, *, kind: str, length: int) -> Row:
    """Compares a whole history with `get_state_history`."""
    store = shared(bench, case)
    thread = _thread_of(bench, store, kind, length)
    reference = stock(store, kind, thread)
    timings = bench.processes.alternate(
        {
            "ours": agentctl("history", thread, "--store", store),
            "theirs": reference,
            "ours alone": small_history(store),
            "theirs alone": [*reference, "--start-up"],
        },
        N_RUNS,
        slow=["theirs"],
    )
    ours, theirs = timings["ours"], timings["theirs"]
    if ours.n_lines != theirs.n_lines:
        raise RuntimeError(f"{thread}: {ours.n_lines} rows listed, the stock API lists {theirs.n_lines}")
    ours_beyond = ours.seconds - timings["ours alone"].seconds
    return Row(
        case.work,
        case.kind,
        ours,
        case.goal,
        "get_state_history",
        theirs,
        ours_beyond if ours_beyond > TELLING_S else None,
        theirs.seconds - timings["theirs alone"].seconds,
    )


def long_history(bench: Bench, case: Case, *, form: tuple[str, ...]) -> Row:
    """Measures the memory of a long history."""
    store = shared(bench, case)
    return ours_alone(
        bench, case, agentctl("history", _thread_of(bench, store, "chat", _LONG), *form, "--store", store), store
    )


def page(bench: Bench, case: Case, *, length: int) -> Row:
    """Compares the newest 50 of a long thread with the whole of a short one."""
    store = shared(bench, case)
    ours = agentctl("history", _thread_of(bench, store, "chat", length), "--limit", "50", "--store", store)
    timings = bench.processes.alternate({"ours": ours, "theirs": small_history(store)}, N_RUNS)
    return Row(case.work, case.kind, timings["ours"], case.goal, f"history of {N_SMALL}", timings["theirs"])


def show(bench: Bench, case: Case) -> Row:
    """Compares the oldest checkpoint but 50 of a long thread with `get_state` by its id."""
    store = shared(bench, case)
    thread = _thread_of(bench, store, "chat", 5000)
    newest = agentctl("history", thread, "--limit", "50", "--store", store)
    listed = subprocess.run(newest, check=True, capture_output=True, text=True, env=dict(bench.processes.env)).stdout
    checkpoint_id = listed.splitlines()[-1].partition("\t")[0]
    ours = agentctl("show", f"{thread}@{checkpoint_id}", "--store", store)
    theirs = [*stock(store, "chat", thread), "--checkpoint", checkpoint_id]
    timings = bench.processes.alternate({"ours": ours, "theirs": theirs}, N_RUNS)
    return Row(case.work, case.kind, timings["ours"], case.goal, "get_state", timings["theirs"])


def diff(bench: Bench, case: Case, *, length: int) -> Row:
    """Measures the difference of two branches that part in the middle."""
    store = shared(bench, case)
    n_messages = bench.stores.length(length)
    thread = f"branches-{length}"
    left, right = bench.stores.write(store, "branches", thread, n_messages).split()
    return ours_alone(bench, case, agentctl("diff", f"{thread}@{left}", f"{thread}@{right}", "--store", store), store)


def _thread_of(bench: Bench, store: str, kind: str, length: int) -> str:
    """Returns a thread of a kind and length; a long one of `chat` is made of the rows of a shorter one."""
    if kind != "chat" or length <= _RUN:
        return bench.stores.thread(store, kind, length)
    source = bench.stores.thread(store, kind, _RUN)
    bench.stores.write(store, "lengthen", source, f"{kind}-{length}", length // _RUN)
    return f"{kind}-{length}"


CASES = (
    Case("--help", "SQLite", partial(start_up, arguments=("--help",)), Goal(times=2.5)),
    Case(f"history of {N_SMALL}", "SQLite", partial(start_up, arguments=("history", "small")), Goal(times=2.5)),
    *(
        Case(f"history of {length:,}, {kind}", store, partial(history, kind=kind, length=length), goal)
        for store in KINDS
        for kind, length, goal in _HISTORIES
    ),
    *(
        Case(f"first 50 of {length:,}", store, partial(page, length=length), Goal(times=1.5))
        for store in KINDS
        for length in _PAGES
    ),
    *(
        Case(
            f"history of {_LONG:,}{', JSON' if form else ''}",
            store,
            partial(long_history, form=form),
            Goal(megabytes=80),
        )
        for store in KINDS
        for form in ((), ("--json",))
    ),
    *(Case("show, 1 of 5,000", store, show, Goal(faster=1)) for store in KINDS),
    *(
        Case(f"diff, 2 branches of {length:,}", store, partial(diff, length=length), goal)
        for store in KINDS
        for length, goal in ((2500, Goal()), (5000, Goal(seconds_beyond=0.5)))
    ),
)
