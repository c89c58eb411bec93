"""A branch as dataset examples, one a user turn."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from agentctl.codec.secrets import without_secrets
from agentctl.codec.values import decode
from agentctl.datasets.branch import Branch
from agentctl.datasets.messages import message_dicts, portable
from agentctl.datasets.recorded import answers_of, calls_until, recorded_calls, resume_writes
from agentctl.datasets.steps import read_steps
from agentctl.datasets.turns import Turn, find_turns
from agentctl.errors import DecodeError, NotFound
from agentctl.experiments.experiment import recorded_configurable
from agentctl.records.copies import command
from agentctl.records.datasets import Example, ExampleCall, ExampleSource, Reference
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow, WriteRow
from agentctl.stores.reading.layout import PREVIOUS, START

_NAMES = uuid.uuid5(uuid.NAMESPACE_URL, "agentctl:example")


def read_examples(branch: Branch, *, split: str = "test") -> tuple[Example, ...]:
    """Returns the branch's user turns as examples, oldest first, without references.

    Args:
        branch: The branch that is exported, with where it was copied from.
        split: Split of every example.

    Raises:
        NotFound: no user turn can be found in it.
    """
    turns = find_turns(branch)
    if not turns:
        raise NotFound(f"no user turn in {branch.thread}", hint=f"agentctl history {branch.thread}")
    calls, steps, answers = recorded_calls(branch), read_steps(branch), resume_writes(branch)
    return tuple(_example(branch, turn, calls, steps, answers, split) for turn in turns)


def example_id(thread: str, ns: str, checkpoint: str, *, branch: str = "") -> str:
    """Returns the id of a turn: the same for the same turn, however often and from wherever it is exported.

    Args:
        thread: The thread that the turn was first made in.
        ns: Namespace.
        checkpoint: The turn's first checkpoint.
        branch: Tip of a branch, to tell two outcomes of one turn from each other.
    """
    return str(uuid.uuid5(_NAMES, "\0".join((thread, ns, checkpoint, *([branch] if branch else [])))))


def _example(
    branch: Branch,
    turn: Turn,
    calls: Sequence[tuple[str, ExampleCall]],
    steps: Mapping[str, tuple[str, ...]],
    answers: Sequence[Sequence[WriteRow]],
    split: str,
) -> Example:
    first = branch.parts[0]
    ids = [row.id for row in turn.rows]
    after = branch.rows[branch.position[turn.last] + 1 :]
    inputs: dict[str, object] = {
        "input": _raw_input(branch, turn.first) if turn.has_input else None,
        "state": _state_before(branch, turn),
    }
    outputs: dict[str, object] = {"reply": reply_of(turn.added), "state": _state(branch, turn.last)}
    if branch.channel:
        inputs["messages"] = message_dicts(turn.said)
        outputs["messages"] = message_dicts(turn.added)
    return Example(
        id=example_id(first.thread, first.ns, turn.first),
        inputs=inputs,
        outputs=outputs,
        reference=Reference(),
        source=ExampleSource(branch.reader.info.url, branch.thread, turn.last, branch.lineage.tip.id),
        steps=tuple(name for checkpoint in ids for name in steps.get(checkpoint, ())),
        tool_calls=calls_until(calls, turn.first, turn.last),
        configurable=_configurable(turn.rows),
        split=split,
        turn=turn.number,
        n_earlier=turn.n_earlier,
        channel=branch.channel,
        answers=answers_of(branch, answers, ids, after[0].id if after else None),
    )


def reply_of(messages: Sequence[Message]) -> str | None:
    """Returns the text of the last AI message that has text, or None."""
    said = (message.text for message in reversed(messages) if message.role == "ai" and message.text.strip())
    return next(said, None)


def _configurable(rows: Sequence[CheckpointRow]) -> dict[str, object]:
    """What the turn began with, and what came with later runs of it, such as who answered an interrupt.

    Secrets are left out: an example is kept in a repository and sent to others.
    """
    merged: dict[str, object] = {}
    for row in rows:
        merged = {**recorded_configurable(row.metadata), **merged}
    return without_secrets(merged)


def _raw_input(branch: Branch, checkpoint: str) -> object:
    """Returns what the graph was given, None where the store does not hold it."""
    return portable(_stored(branch, checkpoint, START))


def _state_before(branch: Branch, turn: Turn) -> dict[str, object]:
    """Returns the other channels before the turn; for an entrypoint, what it saved as its previous result."""
    row = turn.rows[0]
    if row.source == "input":
        previous = portable(_stored(branch, row.id, PREVIOUS))
        return _state(branch, row.id) | ({PREVIOUS: previous} if previous is not None else {})
    if row.parent is not None and row.parent in branch.position:
        return _state(branch, row.parent)
    return {}


def _state(branch: Branch, checkpoint: str) -> dict[str, object]:
    found = branch.values(checkpoint)
    for channel, reason in found.unreadable.items():
        raise _unreadable(branch, checkpoint, channel, reason)
    return {name: portable(value) for name, value in found.values.items() if name != branch.channel}


def _stored(branch: Branch, checkpoint: str, channel: str) -> object:
    part = branch.owner(checkpoint)
    for stored in part.reader.stored(part.thread, part.ns, [checkpoint], channels=[channel]):
        if channel in stored.values:
            try:
                return decode(stored.values[channel])
            except DecodeError as error:
                raise _unreadable(branch, checkpoint, channel, error.message) from error
    return None


def _unreadable(branch: Branch, checkpoint: str, channel: str, reason: str) -> DecodeError:
    """Returns the error for a value without which an example would be another one."""
    return DecodeError(
        f"channel {channel} of checkpoint {checkpoint} cannot be read, so it cannot be exported: {reason}",
        hint=command("doctor", branch.owner(checkpoint).reader.info.target(branch.thread)),
    )
