"""Timing whole processes: seconds and peak memory, candidates alternating in one run, medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Clock = Literal["wall", "cpu"]
"""`cpu` is user plus system time of the process, for machines that do other work meanwhile."""

SLOW_S = 20.0
"""A command that takes longer is run once more at most: warmth of files and caches is nothing beside it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians of one command: seconds, peak resident megabytes, and how many lines it printed."""

    seconds: float
    peak_mb: float
    n_lines: int


@dataclass(frozen=True, slots=True)
class Processes:
    """Runs commands as processes of their own.

    Attributes:
        env: Their environment.
        cwd: The folder they run in.
        clock: What is measured.
    """

    env: Mapping[str, str]
    cwd: Path
    clock: Clock

    def run_once(self, command: Sequence[str]) -> Timing:
        """Runs a command to its end.

        Raises:
            RuntimeError: it failed.
        """
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(self.env), cwd=self.cwd
        )
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
        seconds = wall_s if self.clock == "wall" else usage.ru_utime + usage.ru_stime
        return Timing(seconds, usage.ru_maxrss / 1024, n_lines)

    def alternate(
        self, commands: Mapping[str, Sequence[str]], n_runs: int, *, slow: Collection[str] = ()
    ) -> dict[str, Timing]:
        """Runs every command once uncounted, then all in turn `n_runs` times; returns medians by name.

        Those named in `slow` run once in all. Another that turns out to take longer than `SLOW_S` uncounted counts with
        one run more: the warming of files and caches is nothing beside what they take.
        """
        runs: dict[str, list[Timing]] = {name: [] for name in commands}
        once = set(slow)
        for name, command in commands.items():
            if name not in slow and self.run_once(command).seconds > SLOW_S:
                once.add(name)
        for round_ in range(n_runs):
            for name, command in commands.items():
                if name not in once or round_ == 0:
                    runs[name].append(self.run_once(command))
        return {name: median_of(timings) for name, timings in runs.items()}


def median_of(timings: Sequence[Timing]) -> Timing:
    """Returns the median of each figure."""
    return Timing(
        statistics.median(timing.seconds for timing in timings),
        statistics.median(timing.peak_mb for timing in timings),
        timings[0].n_lines,
    )
