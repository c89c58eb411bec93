"""Where the user turns of a branch begin: one each time that a user wrote, whatever interrupts and retries it took.

A turn begins with an input checkpoint that brings a new human message (in threads where no human says anything: with
every input checkpoint) and ends where the next begins, or at the tip. Answering an interrupt, running again after a
failure and forking bring no new message, so they begin no turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow

MessagesAt = Callable[[int], tuple[Message, ...]]
"""Returns the messages that the checkpoint at a position of the branch holds."""

_FIRST_STEP: Final = -1
"""Step of the input that a thread begins with. Source: langgraph 1.2.24, pregel/_loop.py (`_first`)."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a turn begins.

    Attributes:
        at: Position of its first checkpoint.
        said: The conversation up to and with what the user said.
        n_earlier: How many of these messages were there before.
        has_input: Whether the first checkpoint holds what the graph was given, and that is still what was said.
    """

    at: int
    said: tuple[Message, ...] = ()
    n_earlier: int = 0
    has_input: bool = True


def openings(rows: Sequence[CheckpointRow], messages: MessagesAt) -> Iterator[Opening]:
    """Yields where the turns of a branch that keeps messages begin, oldest first; positions are asked for in order.

    Args:
        rows: The checkpoints of the branch, oldest first, with their metadata.
        messages: What each holds.
    """
    found = False
    for opening in _Finding(rows, messages).openings():
        found = True
        yield opening
    if not found:
        yield from _silent_openings(rows, messages)


def openings_without_messages(rows: Sequence[CheckpointRow], *, whole_runs: bool = False) -> Iterator[Opening]:
    """Yields the same for a branch that keeps no messages: each input begins a turn.

    Args:
        rows: The checkpoints of the branch, oldest first, with their metadata.
        whole_runs: Whether a checkpoint that is all that is kept of a run begins one too.
    """
    finding = _Finding(rows, lambda at: ())
    for at, row in enumerate(rows):
        if row.source == "input" or at == 0 or (whole_runs and finding.stands_for_a_run(at)):
            yield Opening(at, has_input=row.source == "input")


def may_open(rows: Sequence[CheckpointRow]) -> Iterator[int]:
    """Yields the positions at which turns may begin, by metadata alone: there are no others."""
    finding = _Finding(rows, lambda at: ())
    for at, row in enumerate(rows):
        if at == 0 or row.source in ("input", "update") or finding.stands_for_a_run(at):
            yield at


def n_user_messages(messages: Sequence[Message]) -> int:
    """Counts the turns in a conversation; several human messages in a row are one."""
    roles = [message.role for message in messages]
    return sum(role == "human" and (at == 0 or roles[at - 1] != "human") for at, role in enumerate(roles))


def new_messages(before: Sequence[Message], after: Sequence[Message]) -> tuple[Message, ...]:
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


def _silent_openings(rows: Sequence[CheckpointRow], messages: MessagesAt) -> Iterator[Opening]:
    """Where no human says anything in the input, each input opens a turn; its messages are the graph's own."""
    for opening in openings_without_messages(rows):
        held = messages(opening.at) if opening.has_input or rows[opening.at].parent else ()
        yield Opening(opening.at, held, len(held), has_input=opening.has_input)


@dataclass(frozen=True, slots=True)
class _Finding:
    """Finds the turns of one branch that keeps messages."""

    rows: Sequence[CheckpointRow]
    messages: MessagesAt

    def openings(self) -> Iterator[Opening]:
        for at, row in enumerate(self.rows):
            if row.source == "input":
                opening = self._of_input(at)
            elif at == 0:
                opening = self._in_the_middle() if row.parent else self._of_one_row(at)
            elif row.source == "update":
                opening = self._of_update(at)
            elif self.stands_for_a_run(at):
                opening = self._of_one_row(at)
            else:
                opening = None
            if opening is not None:
                yield opening

    def _of_input(self, at: int) -> Opening | None:
        """An input is applied by the step after it; updates made there before anything ran replace what was said."""
        before = self._before_input(at)
        applied, has_input = at, True
        if at + 1 < len(self.rows) and self.messages(at) == before and self.rows[at + 1].source != "input":
            applied = at + 1
        while applied + 1 < len(self.rows) and self.rows[applied + 1].source == "update":
            new = new_messages(self.messages(applied), self.messages(applied + 1))
            if any(message.role != "human" for message in new):
                break
            if self.messages(applied + 1) != self.messages(applied):
                has_input = False
            applied += 1
        said = self.messages(applied)
        new = new_messages(before, said)
        if not any(message.role == "human" for message in new):
            return None
        return Opening(at, said, len(said) - len(new), has_input)

    def _before_input(self, at: int) -> tuple[Message, ...]:
        """Returns the conversation before an input; where what came before is gone, the input's row still holds it."""
        if at:
            return self.messages(at - 1)
        return () if self.rows[at].step in (None, _FIRST_STEP) else self.messages(at)

    def _of_update(self, at: int) -> Opening | None:
        """A message that a person added by hand after an answer is a turn of its own."""
        before, said = self.messages(at - 1), self.messages(at)
        new = new_messages(before, said)
        answered = bool(before) and before[-1].role == "ai" and not before[-1].tool_calls
        if not answered or not new or any(message.role != "human" for message in new):
            return None
        return Opening(at, said, len(said) - len(new), has_input=False)

    def stands_for_a_run(self, at: int) -> bool:
        """With durability "exit" one row is all that is kept of a run: its step is not the one after its parent's."""
        if at == 0:
            return False
        row, before = self.rows[at], self.rows[at - 1]
        return row.source == "loop" and row.step is not None and before.step is not None and row.step > before.step + 1

    def _of_one_row(self, at: int) -> Opening | None:
        before, held = self.messages(at - 1) if at else (), self.messages(at)
        new = new_messages(before, held)
        n_said = next((n for n, message in enumerate(new) if message.role not in ("human", "system")), len(new))
        if not any(message.role == "human" for message in new[:n_said]):
            return None
        n_earlier = len(held) - len(new)
        return Opening(at, held[: n_earlier + n_said], n_earlier, has_input=False)

    def _in_the_middle(self) -> Opening | None:
        """A branch that begins in the middle of a turn: what its user said is the last that a human said."""
        held = self.messages(0)
        said = next((n for n in range(len(held), 0, -1) if held[n - 1].role == "human"), 0)
        if not said:
            return None
        n_earlier = said
        while n_earlier and held[n_earlier - 1].role == "human":
            n_earlier -= 1
        return Opening(0, held[:said], n_earlier, has_input=False)
