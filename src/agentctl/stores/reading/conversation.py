"""A branch as a conversation: its tip's messages, the checkpoint that first held each, calls beside their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from agentctl.records.messages import ConversationTurn, Message, ToolCall
from agentctl.records.rows import Lineage
from agentctl.records.threads import Conversation
from agentctl.stores.base import Reader
from agentctl.stores.reading.messages import read_log

Answers = Mapping[tuple[int, int], int]
"""Place of a call's answer among the messages, by (place of its AI message, position of the call in it)."""


def read_conversation(
    reader: Reader, lineage: Lineage, *, last: int | None = None, grep: str | None = None
) -> Conversation:
    """Reads the messages of a lineage's tip, oldest first.

    Args:
        reader: Where the thread lives.
        lineage: The branch; its tip's messages are shown.
        last: Only the last so many turns (of those that `grep` leaves).
        grep: Only turns with this text in the message or in its calls, whatever the case.

    Raises:
        DecodeError: The tip, or its messages channel, cannot be read.
    """
    log = read_log(reader, lineage)
    messages = [logged.message for logged in log.tip]
    answers = pair_answers(messages)
    turns: list[ConversationTurn] = []
    for place, logged in enumerate(log.tip):
        row = lineage.rows[logged.held]
        found = tuple(answers.get((place, call.position)) for call in logged.message.tool_calls)
        turns.append(
            ConversationTurn(
                number=place + 1,
                message=logged.message,
                checkpoint=row.id,
                at=row.at,
                answers=tuple(None if at is None else messages[at] for at in found),
            )
        )
    if grep:
        turns = [turn for turn in turns if matches(turn.message, grep)]
    if last is not None:
        turns = turns[-last:] if last > 0 else []
    tip = lineage.tip
    return Conversation(
        store=str(reader.info),
        thread=tip.thread,
        ns=tip.ns,
        tip=tip.id,
        channel=log.channel,
        turns=tuple(turns),
        n_total=len(messages),
    )


def pair_answers(messages: Sequence[Message]) -> Answers:
    """Pairs calls with their answers by position, since call ids repeat across turns and may be empty.

    An answer belongs to the nearest AI message before it that has an open call with its id; of calls that share an id
    (such as '') the answers come in the order of the calls, one with the call's own tool name first. A second answer to
    a call pairs with nothing.
    """
    answers: dict[tuple[int, int], int] = {}
    open_calls: list[tuple[int, ToolCall]] = []
    for place, message in enumerate(messages):
        open_calls += [(place, call) for call in message.tool_calls]
        if message.role != "tool":
            continue
        found = _owner(open_calls, message)
        if found is not None:
            answers[found[0], found[1].position] = place
            open_calls.remove(found)
    return answers


def matches(message: Message, text: str) -> bool:
    """Returns whether a message or one of its calls holds a text, whatever the case."""
    wanted = text.casefold()
    return any(wanted in part.casefold() for part in searchable(message))


def searchable(message: Message) -> list[str]:
    """Returns the texts of a message that a search looks through: what it says, and its calls."""
    return [message.text, *(f"{call.name}({_compact(call.args)})" for call in message.tool_calls)]


def _owner(open_calls: Sequence[tuple[int, ToolCall]], answer: Message) -> tuple[int, ToolCall] | None:
    wanted = answer.tool_call_id or ""
    same = [(place, call) for place, call in open_calls if (call.id or "") == wanted]
    if not same:
        return None
    nearest = [(place, call) for place, call in same if place == same[-1][0]]
    return next((owner for owner in nearest if answer.name in (None, owner[1].name)), nearest[0])


def _compact(args: object) -> str:
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, default=str)
