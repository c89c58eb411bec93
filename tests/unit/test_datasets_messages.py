"""Messages and other values through an example's JSON and back, every field kept."""

from __future__ import annotations

import enum
import json
from collections import deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from pydantic import BaseModel

from agentctl.codec.jsontext import dumps
from agentctl.codec.messages import messages_in
from agentctl.datasets.messages import is_message_dict, message_dicts, portable, revive
from agentctl.errors import DecodeError
from tests.support.stock import inert


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    name: str
    at: datetime


@dataclass
class Point:
    x: int
    y: int


MESSAGES: list[BaseMessage] = [
    SystemMessage("Be kind.", id="s-1"),
    HumanMessage(
        [{"type": "text", "text": "what is this?"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}],
        id="h-1",
        name="ada",
        additional_kwargs={"locale": "de"},
    ),
    AIMessage(
        [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Let me look.", "annotations": []}],
        id="ai-1",
        tool_calls=[{"name": "look", "args": {"deep": [1, {"x": None}]}, "id": "c1", "type": "tool_call"}],
        invalid_tool_calls=[{"name": "pay", "args": "{oops", "id": "c2", "error": "bad", "type": "invalid_tool_call"}],
        usage_metadata={
            "input_tokens": 10,
            "output_tokens": 2,
            "total_tokens": 12,
            "input_token_details": {"cache_read": 4},
        },
        response_metadata={"model_name": "m", "finish_reason": "tool_calls", "logprobs": None},
        additional_kwargs={"refusal": None},
    ),
    ToolMessage(
        "not found",
        tool_call_id="c1",
        id="t-1",
        name="look",
        status="error",
        artifact={"raw": b"\x00\xff", "at": datetime(2026, 11, 30, tzinfo=UTC), "rows": [(1, 2)]},
    ),
    ToolMessage([{"type": "text", "text": "blocks"}], tool_call_id="c2", id="t-2"),
    AIMessageChunk("streamed", id="ai-2", chunk_position="last"),
    ChatMessage("aside", role="critic", id="x-1"),
    RemoveMessage(id="gone"),
]


def through_json(value: object) -> Any:
    return json.loads(dumps(value))


def test_every_message_field_survives_the_round_trip() -> None:
    written = through_json(message_dicts(messages_in(inert(MESSAGES))))
    assert [revive(entry) for entry in written] == [_as_stored(message) for message in MESSAGES]


def _as_stored(message: BaseMessage) -> BaseMessage:
    """Msgpack has no tuples: the artifact's comes back from a store as a list."""
    if not isinstance(message, ToolMessage) or not message.artifact:
        return message
    return message.model_copy(update={"artifact": {**message.artifact, "rows": [[1, 2]]}})


def test_langchain_itself_reads_them_without_us() -> None:
    plain = [message for message in MESSAGES if not getattr(message, "artifact", None)]
    assert messages_from_dict(through_json(message_dicts(messages_in(inert(plain))))) == plain


def test_messages_are_found_however_deep_they_lie() -> None:
    value = portable(inert({"notes": [{"last": HumanMessage("hi", id="h")}], "n": 1}))
    assert is_message_dict(value["notes"][0]["last"])  # type: ignore[index]
    assert revive(through_json(value)) == {"notes": [{"last": HumanMessage("hi", id="h")}], "n": 1}


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        {"plain": [1, 2.5, "x", None]},
        {1: "int key", (1, 2): "tuple key"},
        {"$type": "a key of the user's own"},
        b"\x00bytes",
        float("inf"),
        UUID("12345678-1234-5678-1234-567812345678"),
        Decimal("12.50"),
        datetime(2026, 11, 30, 14, 5, tzinfo=UTC),
        date(2026, 11, 30),
        time(14, 5, 6),
        timedelta(hours=1, seconds=2),
        {1, 2},
        frozenset({"a"}),
        deque([1, 2]),
        Path("/tmp/x"),
        Colour.RED,
        Point(1, 2),
        Model(name="a", at=datetime(2026, 11, 30, tzinfo=UTC)),
        [HumanMessage("hi", id="h")],
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_state_value_comes_back_as_what_it_was(value: object) -> None:
    assert revive(through_json(portable(inert(value)))) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_json_like_value_comes_back_equal(value: object) -> None:
    assert revive(through_json(portable(inert(value)))) == value


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "builtins.exec", "not_loaded_anywhere.Model"])
def test_a_value_never_makes_anything_but_data_classes_that_are_loaded(name: str) -> None:
    with pytest.raises(DecodeError, match="cannot be made again"):
        revive({"$type": name, "$value": "true"})


def test_a_value_that_its_class_refuses_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match=r"decimal\.Decimal cannot be made again"):
        revive({"$type": "decimal.Decimal", "$value": "not a number"})
