"""Tool calls of a conversation: each answered once, right after it, in both directions.

Providers refuse anything else, and graphs store it silently. Calls and results are paired by position
(`agentctl.experiments.forking.pairing`), since ids repeat across turns and may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentctl.codec.messages import messages_in
from agentctl.experiments.forking.pairing import Pair, describe, pair_messages
from agentctl.records.messages import Message
from agentctl.revisions.heads import EDITS
from agentctl.upkeep.doctor.records import Finding, Findings, Head

CONVERSATION: Final = "messages"
NO_RESULT: Final = '"no result: the run was stopped"'


def unanswered(head: Head) -> Findings:
    """Calls without a result that nothing will give one: the conversation went on, or ended, without it."""
    for channel, messages in head.conversations.items():
        for pair in pair_messages(messages).open_calls():
            why = _why_for_good(head, messages, pair)
            if why is None:
                continue
            if pair.call.valid:
                yield _finding("call_unanswered", head, channel, messages, pair, f"has no result, and {why}")
            else:
                yield _finding(
                    "call_invalid", head, channel, messages, pair, f"was malformed, has no result, and {why}"
                )


def waiting(head: Head) -> Findings:
    """Calls that the thread stopped at: because a task raised, or for no reason that rows tell."""
    if not head.is_live or not head.step.tasks:
        return
    error = next((task.error for task in head.step.tasks if not task.finished and task.error), None)
    asks = any(task.interrupts for task in head.step.tasks if not task.finished)
    for channel, messages in head.conversations.items():
        for pair in pair_messages(messages).open_calls():
            if _why_for_good(head, messages, pair) is not None or _is_written(head, pair):
                continue
            if error is not None:
                yield _finding("call_failed", head, channel, messages, pair, f"has no result: {_short(error)}")
            elif not asks:
                cause = (
                    f"{describe(pair.call)} has no result yet: the thread stopped before {', '.join(head.step.next)}"
                )
                yield Finding("call_waiting", head.id, cause, head.site.show(head.id), _key(messages, pair))


def answered_twice(head: Head) -> Findings:
    """Calls with more than one result."""
    for channel, messages in head.conversations.items():
        for pair in pair_messages(messages).pairs:
            if len(pair.answers) > 1:
                extra = ", ".join(str(messages[at].id or f"number {at + 1}") for at in pair.answers[1:])
                cause = f"{describe(pair.call)} has {len(pair.answers)} results; drop message {extra}, which came later"
                yield _looked_at("call_answered_twice", head, channel, cause, pair.call.id, _key(messages, pair))


def orphaned(head: Head) -> Findings:
    """Results whose call is not there, in conversations; a list of nothing but results is none."""
    for channel, messages in head.conversations.items():
        if channel != CONVERSATION and not any(message.role == "ai" for message in messages):
            continue
        for at in pair_messages(messages).orphans:
            result = messages[at]
            cause = (
                f"a result of {result.name or 'a tool'} ({result.tool_call_id or 'no id'}) answers no call before it"
            )
            lost = head.lost_at.get((channel, at))
            if lost is None:
                yield _looked_at("call_orphaned", head, channel, cause, result.tool_call_id, (channel, at))
                continue
            cause += f"; the first checkpoint without the call is {lost}"
            yield Finding("call_orphaned", head.id, cause, head.site.show(lost), (channel, at))


def misordered(head: Head) -> Findings:
    """Results that something stands between and their call."""
    for channel, messages in head.conversations.items():
        for pair in pair_messages(messages).pairs:
            for at in pair.answers[:1]:
                between = next((m for m in messages[pair.at + 1 : at] if m.role != "tool"), None)
                if between is not None:
                    cause = (
                        f"the result of {describe(pair.call)} comes after a {between.role} message, not after its call"
                    )
                    yield _looked_at("call_misordered", head, channel, cause, pair.call.id, _key(messages, pair))


def without_id(head: Head) -> Findings:
    """Calls with an empty id."""
    for channel, messages in head.conversations.items():
        for pair in pair_messages(messages).pairs:
            if not pair.call.id:
                cause = f"a call of {pair.call.name} has no id: results are paired with it by position"
                yield Finding("call_without_id", head.id, cause, head.site.show(head.id, "--messages"), channel)


RULES: Final = (unanswered, waiting, answered_twice, orphaned, misordered, without_id)


def _why_for_good(head: Head, messages: Sequence[Message], pair: Pair) -> str | None:
    """Returns why an open call would stay without a result, None where it may still be about to run."""
    after = _goes_on_with(messages, pair)
    if after is not None:
        return f"{_a_message(messages[after])} came after it"
    if head.site.ns == "" and head.is_live and not head.step.tasks:
        return "the thread ended there"
    if head.step.row.source in EDITS and _is_half_answered(messages, pair):
        return "an edit answered only other calls of its message"
    return None


def _is_half_answered(messages: Sequence[Message], pair: Pair) -> bool:
    """Says whether other calls of the same message have results: those of a step arrive together."""
    return any(other.answers for other in pair_messages(messages).pairs if other.at == pair.at)


def _goes_on_with(messages: Sequence[Message], pair: Pair) -> int | None:
    """Returns where something else than results comes after a call."""
    return next((at for at in range(pair.at + 1, len(messages)) if messages[at].role != "tool"), None)


def _is_written(head: Head, pair: Pair) -> bool:
    """Says whether a finished task of the step has written the call's result already."""
    written = (value for task in head.step.tasks for _, value in task.result or ())
    return any(message.tool_call_id == pair.call.id for value in written for message in messages_in(value))


def _finding(code: str, head: Head, channel: str, messages: Sequence[Message], pair: Pair, said: str) -> Finding:
    """Returns a finding whose command answers the call on a copy, with every other open call of its message."""
    names = _names_of_open(head, messages, pair) if head.is_live and _is_forked(head, channel) else ()
    if names:
        answers = (word for name in names for word in ("--answer", f"{name}={NO_RESULT}"))
        helps = head.site.command("fork", head.site.at(head.id), *answers, "--no-run")
    else:
        helps = head.site.show(head.id, "--messages")
    return Finding(code, head.id, f"{describe(pair.call)} {said}", helps, _key(messages, pair))


def _is_forked(head: Head, channel: str) -> bool:
    """Says whether a fork's `--answer` is about the calls of a channel: the conversation, or the only one."""
    return channel == CONVERSATION or len(head.conversations) == 1


def _names_of_open(head: Head, messages: Sequence[Message], pair: Pair) -> Sequence[str]:
    """Returns what names each open call of a message in a fork of the head: its id, or its tool where it has none.

    Nothing where one of them cannot be told from another call of the conversation.
    """
    pairs = pair_messages(messages).pairs
    among = pairs if _goes_on_with(messages, pair) is not None else [one for one in pairs if one.at == pair.at]
    names: list[str] = []
    for one in among:
        if one.at != pair.at or one.answers or _is_written(head, one):
            continue
        name = one.call.id or one.call.name
        alike = [other for other in among if name in (other.call.id, other.call.name)]
        if len(alike) > 1 or not _can_be_named(name):
            return ()
        names.append(name)
    return names


def _looked_at(code: str, head: Head, channel: str, cause: str, call_id: str | None, key: object) -> Finding:
    path = f"[?tool_call_id=='{call_id}']" if call_id and "'" not in call_id else "[?type=='tool']"
    return Finding(code, head.id, cause, head.site.show(head.id, "--channel", channel, "--path", path), key)


def _a_message(message: Message) -> str:
    return f"{'an' if message.role in ('ai', 'other') else 'a'} {message.role} message"


def _key(messages: Sequence[Message], pair: Pair) -> object:
    return messages[pair.at].id, pair.at, pair.call.position


def _can_be_named(name: str) -> bool:
    """Says whether `--answer NAME=JSON` can be read."""
    return bool(name) and not set(name) & set("=[]")


def _short(error: str) -> str:
    first = error.splitlines()[0] if error else ""
    return first if len(first) <= 120 else first[:117] + "..."
