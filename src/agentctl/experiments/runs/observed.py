"""What a run showed, and the question a check asks of it: the seam between running and judging."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentctl.records.runs import RunStatus, ToolCallReport


@dataclass(frozen=True, slots=True)
class Observed:
    """What can be said about one run when it stops.

    Attributes:
        status: How the run stopped. Only `done` is an end of its own; after any other status only clauses about
            calls can be settled.
        reply: Text of the last AI message that has text and answers the user, or None where there is none.
        tool_calls: Every tool call of the run in the order it was made, blocked ones included.
        values: Final channel values as inert values (`agentctl.codec`), by channel.
        next: Nodes that would run next, with multiplicity; empty after `done`.
        interrupts: What was asked and not answered: `{"id", "node", "value"}` each, inert.
        forced_end: True where the branch ended because `--goto` named its end, not because the graph decided so; such
            a run settles no check.
    """

    status: RunStatus
    reply: str | None
    tool_calls: tuple[ToolCallReport, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    next: tuple[str, ...] = ()
    interrupts: tuple[Mapping[str, object], ...] = ()
    forced_end: bool = False


class Check(Protocol):
    """What failing means."""

    @property
    def text(self) -> str:
        """The check as the user wrote it, on one line."""
        ...

    def settle(self, observed: Observed) -> bool | None:
        """Returns True where the run failed, False where it did not, None where that cannot be said."""
        ...
