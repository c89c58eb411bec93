"""The user turns of a branch as examples take them: what was said, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from agentctl.codec.messages import messages_in
from agentctl.datasets.branch import Branch
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow
from agentctl.stores.reading.turns import (
    Opening,
    n_user_messages,
    new_messages,
    openings,
    openings_without_messages,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One user turn.

    Attributes:
        number: 1-based.
        rows: Its checkpoints, oldest first.
        said: The conversation up to and with what the user said.
        n_earlier: How many of these messages were there before.
        added: Messages that came afterwards, those included that the turn dropped again.
        has_input: Whether the first checkpoint holds what the graph was given, and that is still what was said.
    """

    number: int
    rows: tuple[CheckpointRow, ...]
    said: tuple[Message, ...] = ()
    n_earlier: int = 0
    added: tuple[Message, ...] = ()
    has_input: bool = True

    @property
    def first(self) -> str:
        """Id of its first checkpoint."""
        return self.rows[0].id

    @property
    def last(self) -> str:
        """Id of the checkpoint that ends it."""
        return self.rows[-1].id


def find_turns(branch: Branch) -> tuple[Turn, ...]:
    """Returns the turns of a branch, oldest first."""
    rows = branch.rows
    if not branch.channel:
        found = [*openings_without_messages(rows), Opening(len(rows))]
        return tuple(
            Turn(number, rows[opening.at : end.at], has_input=opening.has_input)
            for number, (opening, end) in enumerate(pairwise(found), 1)
        )
    held = _Held(branch)
    found = [*openings(rows, held.messages), Opening(len(rows))]
    n_before = n_user_messages(found[0].said[: found[0].n_earlier])
    return tuple(
        Turn(
            number=n_before + number,
            rows=rows[opening.at : end.at],
            said=opening.said,
            n_earlier=opening.n_earlier,
            added=held.added(opening, end.at),
            has_input=opening.has_input,
        )
        for number, (opening, end) in enumerate(pairwise(found), 1)
    )


class _Held:
    """The messages of one branch, each checkpoint read once."""

    def __init__(self, branch: Branch) -> None:
        self._branch = branch
        self._rows = branch.rows
        self._read: dict[int, tuple[Message, ...]] = {}

    def messages(self, at: int) -> tuple[Message, ...]:
        if at not in self._read:
            values = self._branch.values(self._rows[at].id).values
            self._read[at] = messages_in(values.get(self._branch.channel))
        return self._read[at]

    def added(self, opening: Opening, end: int) -> tuple[Message, ...]:
        """Returns what came after what was said: at the turn's end, and what was held in it and dropped before it."""
        held = new_messages(opening.said, self.messages(end - 1))
        ids = {row.id for row in self._rows[opening.at : end]}
        known = {message.id for message in (*opening.said, *held) if message.id is not None}
        dropped = [
            message
            for checkpoint, message in self._branch.gone
            if checkpoint in ids and message.id not in known and message.role in ("ai", "tool")
        ]
        return (*dropped, *held)
