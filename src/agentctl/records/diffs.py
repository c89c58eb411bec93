"""The difference between two checkpoints, usually the ends of two branches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentctl.records.absent import ABSENT as ABSENT
from agentctl.records.copies import Place
from agentctl.records.messages import Message, ToolCall
from agentctl.records.views import ViewChange

Side = Literal["left", "right", "both"]


@dataclass(frozen=True, slots=True)
class Change:
    """One path whose value differs; the missing side is `ABSENT`."""

    path: str
    left: object
    right: object


@dataclass(frozen=True, slots=True)
class MessageDiff:
    """One message after the common ancestor: only left, only right, changed (both, `changes` not empty) or equal."""

    side: Side
    left: Message | None
    right: Message | None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCallDiff:
    """One tool call of either side, aligned by name and order; `changes` are by argument path."""

    side: Side
    left: ToolCall | None
    right: ToolCall | None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Diff:
    """Everything that differs. `reply` is None where both final replies are equal; lists hold differences only.

    `view` says it in the workflow's words, where it has a view; `view_problems` what the view could not read.
    """

    left: Place
    right: Place
    common: str | None
    equal: bool
    messages: tuple[MessageDiff, ...]
    tool_calls: tuple[ToolCallDiff, ...]
    reply: Change | None
    state: tuple[Change, ...]
    interrupts: tuple[Change, ...]
    n_common_messages: int = 0
    view: tuple[ViewChange, ...] = ()
    view_problems: tuple[str, ...] = ()
