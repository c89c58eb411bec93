"""Chat messages and tool calls, recognised by shape in decoded state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Role = Literal["human", "ai", "tool", "system", "function", "remove", "other"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call in an AI message. `valid` is False for an entry of `invalid_tool_calls` (its `args` is then text)."""

    name: str
    id: str | None
    args: object
    position: int
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `text` is its content as plain text; `content` is as stored; `raw` is the whole inert value."""

    role: Role
    id: str | None
    content: object
    text: str
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    status: str | None = None
    raw: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class CallSite:
    """One occurrence of a tool call on a lineage, or in a namespace below it.

    Attributes:
        name: Tool name.
        id: Call id, '' where the model gave none.
        args: Decoded arguments.
        occurrence: 1-based count of this tool's calls from the lineage's start.
        ns: Namespace the call was made in.
        pending_at: Id of the checkpoint (in `ns`) where the call waits for its answer, or whose step made it: the one
            to fork.
        answered_at: Id of the first checkpoint (in `ns`) that holds the answer, or None.
        answer: The answering message, or None while it is open.
        position: Index of the call in its AI message.
        ai_message_id: Id of that AI message.
        task: Id of the task that made the call itself and stored it together with its answer; '' for a call that a
            model asked for and that waited for its answer.
    """

    name: str
    id: str
    args: object
    occurrence: int
    ns: str
    pending_at: str
    answered_at: str | None
    answer: Message | None
    position: int
    ai_message_id: str | None
    task: str = ""


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One line of a conversation: a message and the checkpoint that first held it.

    `answers` are those of an AI message's calls, in call order, None where a call is unanswered.
    """

    number: int
    message: Message
    checkpoint: str
    at: datetime | None
    answers: tuple[Message | None, ...] = ()
