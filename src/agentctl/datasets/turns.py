"""The user turns of a branch: one each time that a user wrote, whatever interrupts, retries and forks it went through.

A turn begins with an input checkpoint that brings a new human message (in threads where no human says anything: with
every input checkpoint) and ends where the next begins, or at the tip. Answering an interrupt, running again after a
failure and forking bring no new message, so they add no turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentctl.codec.messages import messages_in
from agentctl.datasets.branch import Branch
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow


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
    return _Finding(branch).turns() if branch.channel else _turns_without_messages(branch)


def _turns_without_messages(branch: Branch) -> tuple[Turn, ...]:
    rows = branch.rows
    starts = [at for at, row in enumerate(rows) if row.source == "input"]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    ends = [*starts[1:], len(rows)]
    return tuple(
        Turn(number, rows[start:end], has_input=rows[start].source == "input")
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    )


@dataclass(frozen=True, slots=True)
class _Opening:
    """Where a turn begins: its first row, the conversation with what was said, and how much of it was there before."""

    at: int
    said: tuple[Message, ...]
    n_earlier: int
    has_input: bool


class _Finding:
    """Finds the turns of one branch that keeps messages."""

    def __init__(self, branch: Branch) -> None:
        self._branch = branch
        self._rows = branch.rows
        self._read: dict[int, tuple[Message, ...]] = {}

    def turns(self) -> tuple[Turn, ...]:
        openings = list(self._openings()) or list(self._silent_openings())
        ends = [*(opening.at for opening in openings[1:]), len(self._rows)]
        n_before = _n_user_messages(openings[0].said[: openings[0].n_earlier])
        return tuple(
            Turn(
                number=n_before + number,
                rows=self._rows[opening.at : end],
                said=opening.said,
                n_earlier=opening.n_earlier,
                added=self._added(opening, end),
                has_input=opening.has_input,
            )
            for number, (opening, end) in enumerate(zip(openings, ends, strict=True), 1)
        )

    def _openings(self) -> Iterator[_Opening]:
        for at, row in enumerate(self._rows):
            if row.source == "input":
                opening = self._of_input(at)
            elif at == 0:
                opening = self._in_the_middle() if row.parent else self._of_one_row(at)
            elif row.source == "update":
                opening = self._of_update(at)
            elif self._stands_for_a_run(at):
                opening = self._of_one_row(at)
            else:
                opening = None
            if opening is not None:
                yield opening

    def _silent_openings(self) -> Iterator[_Opening]:
        """Where no human says anything in the input, each input opens a turn; its messages are the graph's own."""
        for at, row in enumerate(self._rows):
            if row.source == "input" or at == 0:
                held = self._messages(at) if row.source == "input" or row.parent else ()
                yield _Opening(at, held, len(held), has_input=row.source == "input")

    def _of_input(self, at: int) -> _Opening | None:
        """An input is applied by the step after it; updates made there before anything ran replace what was said."""
        before = self._messages(at - 1) if at else ()
        applied, has_input = at, True
        if at + 1 < len(self._rows) and self._messages(at) == before and self._rows[at + 1].source != "input":
            applied = at + 1
        while applied + 1 < len(self._rows) and self._rows[applied + 1].source == "update":
            new = _new(self._messages(applied), self._messages(applied + 1))
            if any(message.role != "human" for message in new):
                break
            if self._messages(applied + 1) != self._messages(applied):
                has_input = False
            applied += 1
        said = self._messages(applied)
        new = _new(before, said)
        if not any(message.role == "human" for message in new):
            return None
        return _Opening(at, said, len(said) - len(new), has_input)

    def _of_update(self, at: int) -> _Opening | None:
        """A message that a person added by hand after an answer is a turn of its own."""
        before, said = self._messages(at - 1), self._messages(at)
        new = _new(before, said)
        answered = bool(before) and before[-1].role == "ai" and not before[-1].tool_calls
        if not answered or not new or any(message.role != "human" for message in new):
            return None
        return _Opening(at, said, len(said) - len(new), has_input=False)

    def _stands_for_a_run(self, at: int) -> bool:
        """With durability "exit" one row is all that is kept of a run: its step is not the one after its parent's."""
        row, before = self._rows[at], self._rows[at - 1]
        return row.source == "loop" and row.step is not None and before.step is not None and row.step > before.step + 1

    def _of_one_row(self, at: int) -> _Opening | None:
        before, held = self._messages(at - 1) if at else (), self._messages(at)
        new = _new(before, held)
        n_said = next((n for n, message in enumerate(new) if message.role not in ("human", "system")), len(new))
        if not any(message.role == "human" for message in new[:n_said]):
            return None
        n_earlier = len(held) - len(new)
        return _Opening(at, held[: n_earlier + n_said], n_earlier, has_input=False)

    def _in_the_middle(self) -> _Opening | None:
        """A branch that begins in the middle of a turn: what its user said is the last that a human said."""
        held = self._messages(0)
        said = next((n for n in range(len(held), 0, -1) if held[n - 1].role == "human"), 0)
        if not said:
            return None
        n_earlier = said
        while n_earlier and held[n_earlier - 1].role == "human":
            n_earlier -= 1
        return _Opening(0, held[:said], n_earlier, has_input=False)

    def _added(self, opening: _Opening, end: int) -> tuple[Message, ...]:
        """Returns what came after what was said: at the turn's end, and what was held in it and dropped before it."""
        held = _new(opening.said, self._messages(end - 1))
        ids = {row.id for row in self._rows[opening.at : end]}
        known = {message.id for message in (*opening.said, *held) if message.id is not None}
        dropped = [
            message
            for checkpoint, message in self._branch.gone
            if checkpoint in ids and message.id not in known and message.role in ("ai", "tool")
        ]
        return (*dropped, *held)

    def _messages(self, at: int) -> tuple[Message, ...]:
        if at not in self._read:
            values = self._branch.values(self._rows[at].id).values
            self._read[at] = messages_in(values.get(self._branch.channel))
        return self._read[at]


def _new(before: Sequence[Message], after: Sequence[Message]) -> tuple[Message, ...]:
    """Returns the messages of `after` that `before` lacks: by id, and those without one by position."""
    known = {message.id for message in before if message.id is not None}
    unnamed = sum(message.id is None for message in before)
    new = []
    for message in after:
        if message.id is None and unnamed:
            unnamed -= 1
        elif message.id is None or message.id not in known:
            new.append(message)
    return tuple(new)


def _n_user_messages(messages: Sequence[Message]) -> int:
    """Counts the turns in a conversation; several human messages in a row are one."""
    roles = [message.role for message in messages]
    return sum(role == "human" and (at == 0 or roles[at - 1] != "human") for at, role in enumerate(roles))
