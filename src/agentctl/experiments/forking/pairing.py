"""Whether a conversation can be sent to a model: every tool call answered once, right after it, in order.

Providers refuse anything else (an unanswered call, an answer without its call, two answers), and graphs store it
silently. So a fork's merged messages are checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentctl.records.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class Pair:
    """One call and its answers. `at` is the index of its AI message; `answers` are indexes of tool messages."""

    at: int
    call: ToolCall
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Every call of a conversation with its answers, and the tool messages that answer none."""

    pairs: tuple[Pair, ...]
    orphans: tuple[int, ...]

    def open_calls(self, at: int | None = None) -> tuple[Pair, ...]:
        """Returns unanswered calls, of one AI message or of all."""
        return tuple(pair for pair in self.pairs if not pair.answers and at in (None, pair.at))


def pair_messages(messages: Sequence[Message]) -> Pairing:
    """Pairs calls with answers inside each turn: an answer belongs to the last AI message before it that has its call.

    Calls with an equal id in one message are paired by position, and so are calls whose id is empty. Calls that the
    model malformed count too where they have an id: a provider wants them answered.
    """
    pairs: list[tuple[int, ToolCall, list[int]]] = []
    orphans: list[int] = []
    current: list[tuple[int, ToolCall, list[int]]] = []
    for index, message in enumerate(messages):
        if message.role == "ai":
            calls = [call for call in message.tool_calls if call.valid or call.id]
            if calls:
                current = [(index, call, []) for call in calls]
                pairs += current
        elif message.role == "tool":
            same = [entry for entry in current if (entry[1].id or "") == (message.tool_call_id or "")]
            free = [entry for entry in same if not entry[2]]
            if same:
                (free or same)[0][2].append(index)
            else:
                orphans.append(index)
    return Pairing(tuple(Pair(at, call, tuple(answers)) for at, call, answers in pairs), tuple(orphans))


def problems(messages: Sequence[Message]) -> tuple[str, ...]:
    """Returns what a provider would refuse about a conversation, one sentence each; empty where it is in order.

    Calls of a last AI message with nothing after it are not a problem: they are about to run.
    """
    pairing = pair_messages(messages)
    return (*_unanswered(messages, pairing), *_repeated(pairing), *_orphaned(messages, pairing), *_misplaced(messages))


def new_problems(before: Sequence[Message], after: Sequence[Message]) -> tuple[str, ...]:
    """Returns the problems of `after` that `before` did not have: what a change broke."""
    known = list(problems(before))
    fresh = []
    for problem in problems(after):
        if problem in known:
            known.remove(problem)
        else:
            fresh.append(problem)
    return tuple(fresh)


def describe(call: ToolCall) -> str:
    """Returns a call's name with its id."""
    return f"{call.name} ({call.id or 'no id'})"


def _unanswered(messages: Sequence[Message], pairing: Pairing) -> Iterator[str]:
    last = len(messages) - 1
    for pair in pairing.open_calls():
        if pair.at != last:
            yield f"{describe(pair.call)} has no answer"


def _repeated(pairing: Pairing) -> Iterator[str]:
    for pair in pairing.pairs:
        if len(pair.answers) > 1:
            yield f"{describe(pair.call)} is answered {len(pair.answers)} times"


def _orphaned(messages: Sequence[Message], pairing: Pairing) -> Iterator[str]:
    for index in pairing.orphans:
        yield f"a result of {messages[index].name or 'a tool'} ({messages[index].tool_call_id}) answers no call"


def _misplaced(messages: Sequence[Message]) -> Iterator[str]:
    """Yields results that do not stand directly after the AI message that made their call."""
    in_answers = False
    for message in messages:
        if message.role == "ai":
            in_answers = bool(message.tool_calls)
        elif message.role == "tool":
            if not in_answers:
                yield f"a result of {message.name or 'a tool'} ({message.tool_call_id}) does not follow its call"
        else:
            in_answers = False
