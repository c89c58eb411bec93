"""What stands at a target: its tasks, its messages, the calls that wait, and the rows they have left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctl.codec.messages import is_message_list, messages_in
from agentctl.errors import DecodeError, NotFound
from agentctl.experiments.experiment import Target
from agentctl.experiments.forking.pairing import Pair, Pairing, pair_messages
from agentctl.experiments.runs.reports import message_channel
from agentctl.records.copies import command
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow, WriteRow
from agentctl.records.threads import Task
from agentctl.stores.base import Reader
from agentctl.stores.reading.conversation import pair_answers
from agentctl.stores.reading.lineage import no_checkpoint
from agentctl.stores.reading.owncalls import StoredPair, made_calls, pair_key, stored_pairs, subgraph_tasks
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import StepReader


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call that a task of the step made by itself; its pair of messages is among the task's writes.

    `task` is None where the rows do not tell the node that ran.
    """

    stored: StoredPair
    task: Task | None


@dataclass(frozen=True, slots=True)
class Point:
    """A checkpoint with what is needed to run or to change it.

    Attributes:
        target: Which checkpoint.
        row: Its row.
        tasks: Tasks of the step that runs from it, finished ones included.
        writes: Writes stored on it, with their values.
        values: Its inert channel values, as far as they can be read.
        channel: The channel that holds the conversation, or None.
        messages: The conversation as the checkpoint has it.
        pairing: Its calls with their answers.
        made: Calls that the tasks of its step made by themselves, in the order of the tasks.
    """

    target: Target
    row: CheckpointRow
    tasks: tuple[Task, ...]
    writes: tuple[WriteRow, ...]
    values: Mapping[str, object]
    channel: str | None
    messages: tuple[Message, ...]
    pairing: Pairing
    made: tuple[OwnCall, ...] = ()

    @property
    def next(self) -> tuple[str, ...]:
        """Names of the nodes that run from it, with multiplicity, finished or not."""
        return tuple(task.name for task in self.tasks)

    @property
    def unfinished(self) -> tuple[Task, ...]:
        """Tasks without a stored result."""
        return tuple(task for task in self.tasks if not task.finished)

    @property
    def open_pairs(self) -> tuple[Pair, ...]:
        """Calls that the conversation ends with and does not answer."""
        return tuple(pair for pair in self._last_pairs() if not pair.answers)

    @property
    def just_answered(self) -> tuple[Pair, ...]:
        """Calls that the conversation ends with and answers."""
        return tuple(pair for pair in self._last_pairs() if pair.answers)

    def is_left_open(self, pair: Pair) -> bool:
        """Tells whether no task of the step will answer an open call.

        Nothing is due; or other calls of its message have results in the state, and those of a step arrive together.
        """
        return not self.tasks or any(other.answers for other in self.pairing.pairs if other.at == pair.at)

    def _last_pairs(self) -> tuple[Pair, ...]:
        """Returns the calls of the last AI message with calls, where nothing but results came after it."""
        calling = max((pair.at for pair in self.pairing.pairs), default=None)
        if calling is None or any(message.role != "tool" for message in self.messages[calling + 1 :]):
            return ()
        return tuple(pair for pair in self.pairing.pairs if pair.at == calling)


def read_point(reader: Reader, target: Target) -> Point:
    """Reads a target from its rows, without the graph.

    Raises:
        NotFound: There is no such checkpoint.
    """
    step = next(iter(StepReader(reader, target.thread, target.ns).steps([target.id])), None)
    if step is None:
        raise _missing(reader, target)
    try:
        values = read_values(reader, target.thread, target.ns, target.id).values
    except DecodeError:
        values = {}
    channel = message_channel(values)
    messages = messages_in(values[channel]) if channel else ()
    writes = tuple(reader.writes(target.thread, target.ns, [target.id]))
    return Point(
        target=target,
        row=step.row,
        tasks=step.tasks,
        writes=writes,
        values=values,
        channel=channel,
        messages=messages,
        pairing=pair_messages(messages),
        made=() if step.row.source == "input" else tuple(_made(reader, target, step.tasks, writes, values)),
    )


def _made(
    reader: Reader,
    target: Target,
    tasks: Sequence[Task],
    writes: Sequence[WriteRow],
    values: Mapping[str, object],
) -> Iterator[OwnCall]:
    pairs = stored_pairs(writes)
    if not pairs:
        return
    by_id = {task.id: task for task in tasks}
    subgraphs = subgraph_tasks(reader.namespaces(target.thread))
    for pair in made_calls(pairs, _known(values), subgraphs):
        yield OwnCall(pair, by_id.get(pair.task))


def _known(values: Mapping[str, object]) -> dict[str, Message]:
    """Returns the answers that a checkpoint holds, by what their calls are known by."""
    known: dict[str, Message] = {}
    for value in values.values():
        messages = messages_in(value) if is_message_list(value) else ()
        for (place, position), at in pair_answers(messages).items():
            call = next(call for call in messages[place].tool_calls if call.position == position)
            known[pair_key(messages[place], call)] = messages[at]
    return known


def _missing(reader: Reader, target: Target) -> NotFound:
    namespaces = reader.namespaces(target.thread)
    if target.ns not in namespaces and namespaces:
        return NotFound(
            f"thread {target.thread} has no namespace {target.ns!r}",
            hint=command("history", reader.info.target(target.thread), "--all"),
            candidates=[{"ns": ns} for ns in namespaces],
        )
    return no_checkpoint(reader, target.thread, target.ns, target.id)
