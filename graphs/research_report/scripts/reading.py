"""What a scripted model reads in its messages: the prompt, calls with their answers, files, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

_HEADER = re.compile(r"^@@ .* @@\n")


@dataclass(frozen=True, slots=True)
class Answered:
    """A call and what came back; `text` is '' while nothing has."""

    call: ToolCall
    text: str
    failed: bool
    is_answered: bool

    @property
    def args(self) -> dict[str, Any]:
        """The call's arguments."""
        return dict(self.call["args"])


def calls(messages: Sequence[BaseMessage], *names: str) -> list[Answered]:
    """Returns the calls of these tools in a conversation, with their answers, oldest first."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    return [
        _answered(call, answers.get(str(call["id"])))
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["name"] in names
    ]


def given(answered: Sequence[Answered]) -> Iterator[tuple[Answered, dict[str, Any]]]:
    """Yields the calls that were answered with a JSON object, and the object."""
    for each in answered:
        document = None if each.failed else document_in(each.text)
        if document is not None:
            yield each, document


def document_in(text: str) -> dict[str, Any] | None:
    """Reads the JSON object that a text holds, a file's header before it or not; None where there is none."""
    try:
        found = json.loads(_HEADER.sub("", text))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def system_text(messages: Sequence[BaseMessage]) -> str:
    """Returns the system prompt."""
    return "\n".join(message.text for message in messages if isinstance(message, SystemMessage))


def human_texts(messages: Sequence[BaseMessage]) -> list[str]:
    """Returns what people, or the agent above, have written."""
    return [message.text for message in messages if isinstance(message, HumanMessage)]


def number_in(text: str, pattern: str, otherwise: int) -> int:
    """Returns the number that a pattern's group finds in a prompt."""
    found = re.search(pattern, text)
    return int(found[1]) if found else otherwise


def _answered(call: ToolCall, answer: ToolMessage | None) -> Answered:
    if answer is None:
        return Answered(call, "", failed=False, is_answered=False)
    return Answered(call, answer.text, failed=answer.status == "error", is_answered=True)
