"""Timing whole processes: wall time and peak memory, candidates alternating in one run, medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians of one command: wall seconds, peak resident megabytes, and how many lines it printed."""

    wall_s: float
    peak_mb: float
    n_lines: int


def run_once(command: Sequence[str], env: Mapping[str, str]) -> Timing:
    """Runs a command to its end.

    Raises:
        RuntimeError: it failed.
    """
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(env))
    out = process.stdout
    assert out is not None
    n_lines = 0
    while chunk := out.read(1 << 16):
        n_lines += chunk.count(b"\n")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began
    out.close()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Timing(wall_s, usage.ru_maxrss / 1024, n_lines)


def alternate(commands: Mapping[str, Sequence[str]], env: Mapping[str, str], n_runs: int) -> dict[str, Timing]:
    """Runs every command once uncounted, then all in turn `n_runs` times; returns medians by name."""
    for command in commands.values():
        run_once(command, env)
    runs: dict[str, list[Timing]] = {name: [] for name in commands}
    for _ in range(n_runs):
        for name, command in commands.items():
            runs[name].append(run_once(command, env))
    return {name: _median(timings) for name, timings in runs.items()}


def _median(timings: Sequence[Timing]) -> Timing:
    return Timing(
        statistics.median(timing.wall_s for timing in timings),
        statistics.median(timing.peak_mb for timing in timings),
        timings[0].n_lines,
    )
