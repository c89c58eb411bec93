"""What a conversation says: order numbers, the customer's reason, and each tool call beside its result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

_ORDER_ID = re.compile(r"\b[A-Z]\d{3,8}\b")
_TOPICS: Mapping[str, re.Pattern[str]] = {
    "cancelled": re.compile(r"cancel", re.IGNORECASE),
    "damaged": re.compile(r"damaged|broken|cracked|scratched", re.IGNORECASE),
    "lost": re.compile(r"never arrived|not arrived|never came|lost|missing|where is my parcel", re.IGNORECASE),
    "return": re.compile(r"return|send (it|them|this) back|sent back|does not fit|changed my mind", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call with its answer, None while it has none."""

    id: str
    name: str
    args: Mapping[str, Any]
    answer: ToolMessage | None

    @property
    def failed(self) -> bool:
        """Tells whether the tool answered with an error."""
        return self.answer is not None and self.answer.status == "error"

    @property
    def result(self) -> dict[str, Any] | None:
        """The parsed result; None for an error, a missing answer or text that is not a JSON object."""
        if self.answer is None or self.failed:
            return None
        try:
            parsed = json.loads(str(self.answer.content))
        except ValueError:
            return None
        return parsed if isinstance(parsed, dict) else None


@dataclass(frozen=True, slots=True)
class Facts:
    """The customer's latest message and what was done since."""

    text: str
    order_ids: tuple[str, ...]
    topic: str | None
    calls: tuple[Call, ...] = field(default=())

    def of(self, name: str, **args: object) -> list[Call]:
        """Returns the calls of a tool whose arguments include these."""
        wanted = args.items()
        return [call for call in self.calls if call.name == name and all(call.args.get(k) == v for k, v in wanted)]

    def latest(self, name: str, **args: object) -> dict[str, Any] | None:
        """Returns the latest usable result of such a call."""
        results = [call.result for call in self.of(name, **args)]
        return next((result for result in reversed(results) if result is not None), None)


def facts_of(messages: Sequence[BaseMessage]) -> Facts:
    """Reads the facts. An order number or reason missing from the latest message is taken from the one before it."""
    humans = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    texts = [str(messages[index].content) for index in humans]
    start = humans[-1] if humans else 0
    found = (tuple(dict.fromkeys(_ORDER_ID.findall(text))) for text in reversed(texts))
    topics = (topic_of(text) for text in reversed(texts))
    return Facts(
        text=texts[-1] if texts else "",
        order_ids=next((ids for ids in found if ids), ()),
        topic=next((topic for topic in topics if topic), None),
        calls=calls_of(messages[start:]),
    )


def topic_of(text: str) -> str | None:
    """Returns the reason that a customer's text gives, in the policy's words."""
    return next((topic for topic, pattern in _TOPICS.items() if pattern.search(text)), None)


def calls_of(messages: Sequence[BaseMessage]) -> tuple[Call, ...]:
    """Pairs every tool call with its answer, in order."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    return tuple(
        Call(str(call["id"]), call["name"], call["args"], answers.get(str(call["id"])))
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    )


def order_in(messages: Sequence[AnyMessage], order_id: str) -> dict[str, Any] | None:
    """Returns the latest record of an order that the conversation holds."""
    calls = [
        call for call in calls_of(messages) if call.name == "lookup_order" and call.args.get("order_id") == order_id
    ]
    return next((call.result for call in reversed(calls) if call.result is not None), None)
