"""Times as people type them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from agentctl.errors import UsageError

TIME_FORMS = (
    "2026-11-30, 2026-11-30T14:05, 2026-11-30T14:05:30Z, 2026-11-30T14:05+02:00, 14:05, or an age: 90s 15m 2h 3d 1w"
)

_DATE = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<minute>\d{2}:\d{2})(?P<second>:\d{2})?(?P<fraction>\.\d+)?(?P<zone>Z|[+-]\d{2}:\d{2})?)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?P<minute>\d{2}:\d{2})(?P<second>:\d{2})?")
_AGE = re.compile(r"(?:\d+[smhdw])+")
_AGE_PART = re.compile(r"(\d+)([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TICK = timedelta(microseconds=1)


def parse_time(text: str, now: datetime, *, end: bool = False) -> datetime:
    """Returns the UTC time that `text` names.

    A time without an offset is UTC. A bare clock time is the last one that has come: today's, or yesterday's where
    today's is still ahead. A date names its whole day, `14:05` its whole minute, `14:05:30` its whole second.

    Args:
        text: One of TIME_FORMS.
        now: The clock, aware.
        end: True for the last microsecond of what is named, False for the first. An age is one instant.

    Raises:
        UsageError: none of the forms, or a time that does not exist.
    """
    try:
        found = _parse(text, now.astimezone(UTC), end=end)
    except (ValueError, OverflowError, UsageError) as exc:
        raise _bad(text) from exc
    if found is None:
        raise _bad(text)
    return found


def _parse(text: str, now: datetime, *, end: bool) -> datetime | None:
    if match := _DATE.fullmatch(text):
        start = datetime.fromisoformat(text.upper())
        start = start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)
        return start + _width(match) - _TICK if end else start
    if match := _CLOCK.fullmatch(text):
        start = datetime.combine(now.date(), time.fromisoformat(text), UTC)
        if start > now:
            start -= timedelta(days=1)
        return start + _width(match) - _TICK if end else start
    if _AGE.fullmatch(text):
        return now - parse_age(text)
    return None


def parse_age(text: str) -> timedelta:
    """Returns an age such as `90s`, `2h`, `1h30m` or `3d`.

    Raises:
        UsageError: not an age, or longer than can be held.
    """
    if not _AGE.fullmatch(text):
        raise UsageError(f"{text!r} is not an age", hint="ages are numbers with a unit: 90s 15m 2h 3d 1w, or 1h30m")
    try:
        return sum((timedelta(**{_UNITS[unit]: int(n)}) for n, unit in _AGE_PART.findall(text)), timedelta())
    except OverflowError as exc:
        raise UsageError(f"the age {text} is too long") from exc


def _width(match: re.Match[str]) -> timedelta:
    groups = match.groupdict()
    if groups.get("fraction"):
        return _TICK
    if groups["second"]:
        return timedelta(seconds=1)
    return timedelta(minutes=1) if groups["minute"] else timedelta(days=1)


def _bad(text: str) -> UsageError:
    return UsageError(f"{text!r} is not a time", hint=f"times are UTC: {TIME_FORMS}")
