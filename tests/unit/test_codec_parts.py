from __future__ import annotations

import datetime
import decimal
import uuid

import ormsgpack
import pytest
from hypothesis import HealthCheck, given, settings
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentctl.codec.parts import fields_of
from agentctl.errors import DecodeError
from agentctl.records.rows import Large, Stored
from agentctl.stores.large import Chunks
from tests.unit.test_codec_windows import VALUES


def fields(value: Stored | Large) -> object:
    try:
        return fields_of(value)
    except DecodeError as error:
        return type(error)


def check_same(data: bytes) -> None:
    in_chunks = Chunks(len(data), lambda start, n_bytes: data[start : start + n_bytes])

    assert fields(Stored("msgpack", data)) == fields(Large("msgpack", in_chunks))


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])  # of making values, on a busy machine
@given(VALUES)
def test_fields_of_a_held_value_are_those_of_the_same_value_in_parts(value: object) -> None:
    check_same(ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS))


@pytest.mark.parametrize(
    "value",
    [
        HumanMessage("x", id="a"),
        AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": "b"}]),
        {"a": 1, 2: 3},
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        decimal.Decimal(1),
        uuid.UUID(int=1),
        {1, 2},
    ],
)
def test_fields_of_a_held_object_are_those_of_the_same_object_in_parts(value: object) -> None:
    check_same(JsonPlusSerializer().dumps_typed(value)[1])


def test_fields_of_a_message_are_named_and_add_up() -> None:
    data = JsonPlusSerializer().dumps_typed(HumanMessage("x" * 300, id="a"))[1]

    found = fields_of(Stored("msgpack", data))

    assert found["content"] > 300
    assert {"content", "id", ""} <= found.keys()
    assert sum(found.values()) == len(data)
