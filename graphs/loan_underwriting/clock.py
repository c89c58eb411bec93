"""The time of a run: what its configuration says, else the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from graphs.loan_underwriting.state import AuditEvent, Settings

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Returns the present time, UTC."""
    return datetime.now(UTC)


def time_of(settings: Settings, clock: Clock) -> datetime:
    """Returns the time of a run, UTC.

    A caller that puts `now` into `configurable` has it kept with the checkpoints, so that a replay judges by the same
    day as the run that it repeats.
    """
    return clock() if settings.now is None else datetime.fromisoformat(settings.now).astimezone(UTC)


def audit(event: str, at: datetime, detail: str = "") -> AuditEvent:
    """Returns an audit event."""
    return AuditEvent(event=event, at=at.isoformat(), detail=detail)
