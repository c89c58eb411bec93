"""A line of the benchmarks' table: what was measured, the goal, and whether it is met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.timing import Timing

_TITLES = ("work", "store", "agentctl", "reference", "ratio", "beyond start-up", "goal", "met")


@dataclass(frozen=True, slots=True)
class Goal:
    """What a measurement is to reach; None where nothing is asked.

    Attributes:
        faster: Reference over ours, at least.
        faster_beyond: The same with each program's own start-up taken off.
        times: Ours over the reference, at most.
        times_beyond: The same with start-up taken off.
        seconds: At most.
        seconds_beyond: At most, with start-up taken off.
        megabytes: Peak resident memory, at most.
    """

    faster: float | None = None
    faster_beyond: float | None = None
    times: float | None = None
    times_beyond: float | None = None
    seconds: float | None = None
    seconds_beyond: float | None = None
    megabytes: float | None = None

    def __str__(self) -> str:
        parts = (
            (self.faster, ">= {:g}x"),
            (self.faster_beyond, "beyond >= {:g}x"),
            (self.times, "<= {:g}x its time"),
            (self.times_beyond, "beyond <= {:g}x its time"),
            (self.seconds, "<= {:g} s"),
            (self.seconds_beyond, "beyond <= {:g} s"),
            (self.megabytes, "<= {:g} MB"),
        )
        return ", ".join(form.format(value) for value, form in parts if value is not None)


NO_GOAL = Goal()


@dataclass(frozen=True, slots=True)
class Row:
    """One line. Ratios are reference over ours.

    Attributes:
        work: What was done.
        store: `SQLite` or `Postgres`.
        ours: agentctl's medians.
        goal: What is to be reached.
        reference: What it is compared with, '' for nothing.
        theirs: The reference's medians.
        ours_beyond_s: Seconds without start-up, None where not measured or too little to tell.
        theirs_beyond_s: The same of the reference.
        note: A figure shown apart.
    """

    work: str
    store: str
    ours: Timing
    goal: Goal = NO_GOAL
    reference: str = ""
    theirs: Timing | None = None
    ours_beyond_s: float | None = None
    theirs_beyond_s: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times faster than the reference."""
        return None if self.theirs is None else self.theirs.seconds / self.ours.seconds

    @property
    def beyond(self) -> float | None:
        """How many times faster than the reference beyond start-up."""
        if not self.ours_beyond_s or self.theirs_beyond_s is None:
            return None
        return self.theirs_beyond_s / self.ours_beyond_s

    @property
    def unmet(self) -> tuple[str, ...]:
        """The parts of the goal that are not met."""
        goal, ratio, beyond = self.goal, self.ratio, self.beyond
        checks = (
            ("ratio", goal.faster, ratio is None or goal.faster is None or ratio >= goal.faster),
            (
                "beyond",
                goal.faster_beyond,
                beyond is None or goal.faster_beyond is None or beyond >= goal.faster_beyond,
            ),
            ("ratio", goal.times, ratio is None or goal.times is None or ratio * goal.times >= 1),
            (
                "beyond",
                goal.times_beyond,
                beyond is None or goal.times_beyond is None or beyond * goal.times_beyond >= 1,
            ),
            ("seconds", goal.seconds, goal.seconds is None or self.ours.seconds <= goal.seconds),
            (
                "beyond",
                goal.seconds_beyond,
                goal.seconds_beyond is None or self.ours_beyond_s is None or self.ours_beyond_s <= goal.seconds_beyond,
            ),
            ("memory", goal.megabytes, goal.megabytes is None or self.ours.peak_mb <= goal.megabytes),
        )
        return tuple(name for name, wanted, met in checks if wanted is not None and not met)

    @property
    def met(self) -> str:
        """`met`, `not met: ...`, or '' without a goal."""
        if not str(self.goal):
            return ""
        return f"not met: {', '.join(self.unmet)}" if self.unmet else "met"

    def as_json(self) -> dict[str, object]:
        """Returns the line as JSON values; seconds and megabytes as numbers."""
        return {
            "work": self.work,
            "store": self.store,
            "ours_s": self.ours.seconds,
            "ours_mb": self.ours.peak_mb,
            "reference": self.reference,
            "reference_s": self.theirs.seconds if self.theirs else None,
            "reference_mb": self.theirs.peak_mb if self.theirs else None,
            "ratio": self.ratio,
            "beyond": self.beyond,
            "ours_beyond_s": self.ours_beyond_s,
            "goal": str(self.goal),
            "met": not self.unmet if str(self.goal) else None,
            "note": self.note,
        }

    def cells(self) -> tuple[str, ...]:
        """Returns the line as text, a cell a column."""
        theirs = f"{self.reference}: {_timed(self.theirs)}" if self.theirs else self.reference
        ours = f"{_timed(self.ours)}; {self.note}" if self.note else _timed(self.ours)
        beyond = _times(self.beyond)
        if not beyond and self.ours_beyond_s is not None:
            beyond = f"{self.ours_beyond_s:.2f} s"
        return (self.work, self.store, ours, theirs, _times(self.ratio), beyond, str(self.goal), self.met)


def printed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the rows on, each printed as soon as it is measured."""
    print(_line(_TITLES))
    print("|" + "---|" * len(_TITLES), flush=True)
    for row in rows:
        print(_line(row.cells()), flush=True)
        yield row


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _timed(timing: Timing) -> str:
    return f"{timing.seconds:.2f} s, {timing.peak_mb:.0f} MB"


def _times(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.1f}x" if ratio >= 1 else f"1 / {1 / ratio:.1f}"
