"""A branch that is exported, put together from where it lies and where it was copied from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow, Lineage
from agentctl.stores.base import Reader
from agentctl.stores.reading.lineage import read_lineage, read_tree
from agentctl.stores.reading.messages import MessageLog, read_log, tip_messages
from agentctl.stores.reading.state import Values, read_values

ORIGIN, OP = "agentctl_origin", "agentctl_op"
NOT_CORRECTED = ("replay", "copy", "rerun")
"""First words of operations whose outcome nobody made right."""


@dataclass(frozen=True)
class Branch:
    """One branch of a thread.

    A debug thread may begin with the copy of one checkpoint in the middle of a turn: what came before it is read from
    `origin`, which ends at that checkpoint, or at its parent where the fork made a checkpoint of its own.

    Attributes:
        reader: Where the branch lies.
        lineage: Its checkpoints.
        origin: Where it was copied from; None where it is whole, or where that cannot be read.
    """

    reader: Reader
    lineage: Lineage
    origin: Branch | None = None

    @property
    def thread(self) -> str:
        """Thread id."""
        return self.lineage.tip.thread

    @property
    def ns(self) -> str:
        """Namespace."""
        return self.lineage.tip.ns

    @property
    def parts(self) -> tuple[Branch, ...]:
        """The branch and where it was copied from, the oldest first."""
        return (*(self.origin.parts if self.origin else ()), self)

    @cached_property
    def rows(self) -> tuple[CheckpointRow, ...]:
        """All checkpoints, oldest first; a copied one is the copy."""
        return tuple({row.id: row for part in self.parts for row in part.lineage.rows}.values())

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Position in `rows` by id."""
        return {row.id: position for position, row in enumerate(self.rows)}

    @cached_property
    def channel(self) -> str:
        """The channel that holds the messages, '' where none does."""
        channel, _ = tip_messages(self.reader, self.lineage)
        return "" if channel.startswith("__") else channel

    @cached_property
    def _owners(self) -> Mapping[str, Branch]:
        return {row.id: part for part in self.parts for row in part.lineage.rows}

    def owner(self, checkpoint_id: str) -> Branch:
        """Returns the part that a checkpoint is read from."""
        return self._owners[checkpoint_id]

    def values(self, checkpoint_id: str) -> Values:
        """Returns the channel values of one of its checkpoints."""
        part = self.owner(checkpoint_id)
        return read_values(part.reader, part.thread, part.ns, checkpoint_id)

    @cached_property
    def gone(self) -> tuple[tuple[str, Message], ...]:
        """Messages that the branch held once and has dropped, each with the checkpoint that first held it."""
        if not self.channel:
            return ()
        found = []
        for part in self.parts:
            log: MessageLog = read_log(part.reader, part.lineage)
            found += [(part.lineage.rows[logged.held].id, logged.message) for logged in log.gone]
        return tuple(found)

    def metadata(self, key: str) -> str:
        """Returns a text of the newest checkpoint's metadata that has it, '' where none has."""
        found = (row.metadata.get(key) for row in reversed(self.lineage.rows))
        return next((value for value in found if isinstance(value, str) and value), "")

    @property
    def is_correction(self) -> bool:
        """Whether it is a fork that was made to be right."""
        op = self.metadata(OP)
        return bool(op) and not op.startswith(NOT_CORRECTED)


def is_cut(lineage: Lineage) -> bool:
    """Returns whether a lineage begins in the middle: its first checkpoint's parent is not stored."""
    return lineage.dangling is not None


def origin_lineage(reader: Reader, thread: str, branch: Lineage) -> Lineage | None:
    """Returns the lineage in another thread that a cut branch goes on from, None where that thread lacks it."""
    tree = read_tree(reader, thread, branch.tip.ns)
    for checkpoint_id in _joints(branch):
        if checkpoint_id in tree.parents:
            return read_lineage(reader, thread, branch.tip.ns, checkpoint_id)
    return None


def _joints(branch: Lineage) -> Iterator[str]:
    yield branch.rows[0].id
    if branch.dangling is not None:
        yield branch.dangling
