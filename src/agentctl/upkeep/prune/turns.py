"""The user turns of a branch that is kept in part, by what was written rather than by every state."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentctl.errors import DecodeError
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow, Lineage
from agentctl.stores.base import Reader
from agentctl.stores.reading.messages import MessageLog, read_log
from agentctl.stores.reading.turns import (
    Opening,
    may_open,
    n_user_messages,
    openings,
    openings_without_messages,
)


@dataclass(frozen=True, slots=True)
class BranchTurn:
    """One user turn of a branch: its number, what was said, and its checkpoints, oldest first."""

    number: int
    text: str
    rows: tuple[CheckpointRow, ...]


@dataclass(frozen=True, slots=True)
class BranchTurns:
    """The turns of a branch; `note` says why they may not be those that its user would count."""

    turns: tuple[BranchTurn, ...]
    note: str = ""


def has_at_most(rows: Sequence[CheckpointRow], n_turns: int) -> bool:
    """Says from metadata alone that a branch has no more than so many turns; False where that cannot be told."""
    return sum(1 for _ in may_open(rows)) <= n_turns


def read_turns(reader: Reader, lineage: Lineage) -> BranchTurns:
    """Reads the turns of a branch, oldest first."""
    try:
        log = read_log(reader, lineage)
    except DecodeError as error:
        return BranchTurns(
            _inputs(lineage), f"every input counts as a turn, since messages cannot be read: {error.message}"
        )
    if not log.channel or log.channel.startswith("__"):
        return BranchTurns(_inputs(lineage))
    return BranchTurns(_numbered(list(openings(lineage.rows, _Held(log).messages)), lineage.rows))


def _inputs(lineage: Lineage) -> tuple[BranchTurn, ...]:
    return _numbered(list(openings_without_messages(lineage.rows, whole_runs=True)), lineage.rows)


def _numbered(found: Sequence[Opening], rows: Sequence[CheckpointRow]) -> tuple[BranchTurn, ...]:
    n_before = n_user_messages(found[0].said[: found[0].n_earlier]) if found else 0
    ends = [*found, Opening(len(rows))]
    return tuple(
        BranchTurn(n_before + number, _text(opening), tuple(rows[opening.at : end.at]))
        for number, (opening, end) in enumerate(pairwise(ends), 1)
    )


def _text(opening: Opening) -> str:
    said = (message.text for message in reversed(opening.said[opening.n_earlier :]) if message.role == "human")
    return next(said, "")


class _Held:
    """What a branch had said by each of its checkpoints, messages that it has dropped since included."""

    def __init__(self, log: MessageLog) -> None:
        logged = sorted((*log.tip, *log.gone), key=lambda one: one.held)
        self._messages = tuple(one.message for one in logged)
        self._held = [one.held for one in logged]

    def messages(self, at: int) -> tuple[Message, ...]:
        return self._messages[: bisect_right(self._held, at)]
