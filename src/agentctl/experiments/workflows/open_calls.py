"""What to know of calls without a result before a thread goes on: those that input leaves behind, those that ask.

Source: langgraph-prebuilt 1.1.3, prebuilt/tool_node.py, and langgraph 1.2.24, types.py (`interrupt`). A ToolNode that
has all calls of a message in one task asks one question at a time; its answers are given in the order in which its
tools ask, and every answer runs all of its tools again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from agentctl.codec.messages import messages_in
from agentctl.experiments.forking.pairing import Pair, describe, pair_messages
from agentctl.experiments.runs.reports import message_channel
from agentctl.experiments.workflows.departures import Stand
from agentctl.sandbox.inert import inert
from agentctl.stores.reading.layout import PULL


def left_behind(stand: Stand) -> Iterator[str]:
    """Yields a warning where the conversation ends with calls that new input would leave without a result."""
    if open_ := _open_at_the_end(stand):
        calls = ", ".join(describe(pair.call) for pair in open_)
        have, them = ("have", "them") if len(open_) > 1 else ("has", "it")
        yield f"{calls} {have} no result, and new input leaves {them} so for good: models refuse such a conversation"


def asked_in_turn(stand: Stand, tool_nodes: Collection[str]) -> Iterator[str]:
    """Yields a warning for each tool node that waits with fewer questions than calls without a result.

    Args:
        stand: Where the thread stands.
        tool_nodes: Names of the nodes that answer calls.
    """
    open_ = _open_at_the_end(stand)
    for task in stand.snapshot.tasks if stand.snapshot is not None else ():
        n_questions = sum(question.id not in stand.answered for question in task.interrupts)
        if task.name in tool_nodes and task.path[0] == PULL and 0 < n_questions < len(open_):
            yield (
                f"{task.name} has {len(open_)} calls without a result and {n_questions}"
                f" question{'s' if n_questions > 1 else ''}: its tools ask in turn, answers are given in the order in"
                " which they ask, and all of them run again with each answer"
            )


def _open_at_the_end(stand: Stand) -> Sequence[Pair]:
    """Returns the calls without a result after which the conversation did not go on."""
    values = stand.snapshot.values if stand.snapshot is not None else {}
    held = inert(values)
    channel = message_channel(held) if isinstance(held, Mapping) else None
    if not isinstance(held, Mapping) or channel is None:
        return ()
    messages = messages_in(held[channel])
    last = max((at for at, message in enumerate(messages) if message.role != "tool"), default=-1)
    return pair_messages(messages).open_calls(last)
