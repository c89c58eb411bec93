"""Targets: `[PROFILE::]THREAD[@REV]`, where thread ids may themselves hold `::`, `@`, spaces and `~`."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from agentctl.errors import Ambiguous, ConfigError, NotFound, Refused, RevisionSyntaxError, StoreError, UsageError
from agentctl.revisions.grammar import HEAD, Range, Revision, parse_expression, parse_revision

IsThread = Callable[[str, str], bool]
"""(profile, thread) -> whether that thread has checkpoints there; profile '' is the default store."""

FindRun = Callable[[str, str], Sequence[str]]
"""(profile, run id) -> the threads that hold a run or trace of that id."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a command line argument points at.

    Attributes:
        profile: Name before `::`, or '' for the default store.
        thread: Exact thread id.
        rev: One revision, or a range where the command allows one.
        explicit: Whether a revision was typed; without one `rev` is the head.
    """

    profile: str
    thread: str
    rev: Revision | Range
    explicit: bool = True

    @property
    def one(self) -> Revision:
        """The single revision.

        Raises:
            UsageError: the target is a range.
        """
        if isinstance(self.rev, Range):
            raise UsageError(f"one checkpoint is wanted here, not the range {self.rev}")
        return self.rev

    def __str__(self) -> str:
        place = f"{self.profile}::{self.thread}" if self.profile else self.thread
        return f"{place}@{self.rev}" if self.explicit else place


def parse_target(
    text: str,
    is_thread: IsThread,
    *,
    profiles: Collection[str] = (),
    profile: str = "",
    literal: bool = False,
    ranges: bool = False,
    find_run: FindRun | None = None,
) -> Target:
    """Returns the one reading of `text` that names a real thread.

    Every `@` is tried as the place where the thread ends. `PROFILE::` is taken off where PROFILE is configured, and
    then no other store is asked, unless that one has no such thread.

    Args:
        text: What the user typed.
        is_thread: Asked for each possible reading.
        profiles: Configured profile names.
        profile: Where a target without `PROFILE::` is; '' for the default store.
        literal: Take the whole text as a thread id there, at its head (`--literal`).
        ranges: Whether `A..B` and `A...B` are allowed.
        find_run: Used to name the thread when a run or trace id was given instead.

    Raises:
        RevisionSyntaxError: a real thread, followed by something that is no revision.
        NotFound: no reading names a thread.
        Ambiguous: more than one does; the candidates are spellings with one reading each.
    """
    if not text:
        raise UsageError("the target is empty", hint="a target is [PROFILE::]THREAD[@REVISION]")
    places = [(profile, text)] if literal else list(_places(text, profiles, profile))
    if literal:
        if is_thread(profile, text):
            return Target(profile, text, HEAD, explicit=False)
        raise _no_thread(text, places, profiles, find_run)
    grammar = _Grammar(is_thread, profiles, profile, ranges)
    readings, fault = _readings(text, grammar)
    if len(readings) > 1:
        raise _two_readings(text, readings, grammar)
    if readings:
        return readings[0]
    if fault is not None:
        raise fault
    raise _no_thread(text, places, profiles, find_run)


def _places(text: str, profiles: Collection[str], default: str) -> Iterator[tuple[str, str]]:
    """Yields (profile, rest): with the profile taken off where it is one, and the whole text in the default place."""
    profile, colons, rest = text.partition("::")
    if colons and rest and profile in profiles:
        yield profile, rest
    yield default, text


@dataclass(frozen=True, slots=True)
class _Grammar:
    """What decides how a text can be read."""

    is_thread: IsThread
    profiles: Collection[str]
    default: str
    ranges: bool


def _readings(text: str, grammar: _Grammar) -> tuple[list[Target], RevisionSyntaxError | None]:
    """Returns all readings that name a real thread, and the fault of the longest thread whose revision is none.

    The default place is asked after a named profile only where that has no such thread, and may then be missing.
    """
    places = list(_places(text, grammar.profiles, grammar.default))
    readings, fault = _readings_in(*places[0], text, grammar)
    if readings or fault or len(places) == 1:
        return readings, fault
    try:
        return _readings_in(*places[1], text, grammar)
    except (ConfigError, StoreError, Refused):
        return [], None


def _readings_in(
    profile: str, rest: str, text: str, grammar: _Grammar
) -> tuple[list[Target], RevisionSyntaxError | None]:
    readings: list[Target] = []
    fault: RevisionSyntaxError | None = None
    offset = len(text) - len(rest)
    for end in range(len(rest), 0, -1):
        if end < len(rest) and rest[end] != "@":
            continue
        thread = rest[:end]
        try:
            rev = _rev(text, offset + end + 1, ranges=grammar.ranges) if end < len(rest) else HEAD
        except RevisionSyntaxError as exc:
            if fault is None and grammar.is_thread(profile, thread):
                fault = exc
            continue
        if grammar.is_thread(profile, thread):
            readings.append(Target(profile, thread, rev, explicit=end < len(rest)))
    return readings, fault


def _rev(text: str, start: int, *, ranges: bool) -> Revision | Range:
    return parse_expression(text, start=start) if ranges else parse_revision(text, start=start)


def _two_readings(text: str, readings: Sequence[Target], grammar: _Grammar) -> Ambiguous:
    candidates = [
        {
            "profile": reading.profile,
            "thread": reading.thread,
            "revision": str(reading.rev),
            "write": _unmistakable(reading, grammar),
        }
        for reading in readings
    ]
    return Ambiguous(
        f"{text} can be read in {len(readings)} ways",
        hint="write it as one of:  " + "   ".join(str(candidate["write"]) for candidate in candidates),
        candidates=candidates,
    )


def _unmistakable(reading: Target, grammar: _Grammar) -> str:
    """Returns a spelling of the reading that has no other, found by trying, else the flag that takes it literally."""
    place = f"{reading.profile}::{reading.thread}" if reading.profile else reading.thread
    for suffix in ("", "~0", "~0~0"):
        spelling = f"{place}@{reading.rev}{suffix}"
        again, _ = _readings(spelling, grammar)
        if len(again) == 1 and (again[0].profile, again[0].thread) == (reading.profile, reading.thread):
            return spelling
    return f"--literal {shlex.quote(reading.thread)}"


def _no_thread(
    text: str, places: Sequence[tuple[str, str]], profiles: Collection[str], find_run: FindRun | None
) -> NotFound:
    profile, rest = places[0]
    thread = _likely_thread(rest)
    where = f" in {profile}" if profile else ""
    for run_id in dict.fromkeys((rest, thread)) if find_run else ():
        if find_run and (owners := find_run(profile, run_id)):
            prefix = f"{profile}::" if profile else ""
            return NotFound(
                f"{run_id} is a run, not a thread: it ran on thread {', '.join(owners)}",
                hint=f"agentctl history {shlex.quote(prefix + owners[0])}",
                candidates=[{"thread": owner} for owner in owners],
            )
    unknown, colons, tail = text.partition("::")
    if colons and not profile:
        near = difflib.get_close_matches(unknown, list(profiles), n=1)
        known = f"profiles are {', '.join(sorted(profiles))}" if profiles else "no profiles are configured"
        hint = f"{unknown} is no profile; " + (f"did you mean {near[0]}::{tail}?" if near else known)
        return NotFound(f"there is no thread {thread}", hint=hint)
    listing = f"agentctl threads {profile}::" if profile else "agentctl threads"
    return NotFound(f"there is no thread {thread}{where}", hint=listing)


def _likely_thread(rest: str) -> str:
    """Returns the thread that was probably meant: what stands before the last `@` that a revision follows."""
    at = rest.rfind("@")
    if at > 0:
        try:
            parse_expression(rest, start=at + 1)
        except RevisionSyntaxError:
            return rest
        return rest[:at]
    return rest
