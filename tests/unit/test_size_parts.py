"""Cutting stored values into items and fields without decoding them."""

from __future__ import annotations

import json

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentctl.codec.parts import fields_of, may_be_message, parts_of
from agentctl.errors import DecodeError
from agentctl.records.rows import Stored

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SERDE = JsonPlusSerializer()
CALLS = AIMessage("looking", id="m-1", tool_calls=[{"name": "lookup_order", "args": {"order": "A1"}, "id": "c1"}])


def packed(value: object) -> Stored:
    return Stored("msgpack", ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS))


@given(st.lists(VALUES, max_size=40))
def test_a_list_is_cut_into_the_bytes_of_its_items(value: list[object]) -> None:
    parts = parts_of(packed(value))

    assert parts.is_list
    assert list(parts.items) == [packed(item) for item in value]


@given(VALUES)
def test_the_fields_of_an_item_add_up_to_it(value: object) -> None:
    item = packed(value)

    fields = fields_of(item)

    assert sum(fields.values()) == len(item.data)
    if isinstance(value, dict) and "" not in value:
        assert fields == {key: len(packed(key).data) + len(packed(value[key]).data) for key in value} | {"": fields[""]}


@pytest.mark.parametrize("message", [CALLS, HumanMessage("hello", id="m-2"), ToolMessage("{}", tool_call_id="c1")])
def test_a_message_has_the_fields_of_its_class_and_its_envelope(message: AIMessage) -> None:
    item = Stored(*SERDE.dumps_typed(message))

    fields = fields_of(item)

    assert may_be_message(item)
    assert fields.keys() == {*message.model_dump(exclude_none=False), ""} - {None}
    assert fields["content"] == len(packed("content").data) + len(packed(message.content).data)
    assert 20 < fields[""] < 80
    assert sum(fields.values()) == len(item.data)


def test_a_message_as_a_json_constructor_has_its_arguments_as_fields() -> None:
    document = {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "AIMessage"],
                "kwargs": {"content": "hi", "id": "m-1"}}  # fmt: skip
    value = Stored("json", json.dumps([document], separators=(",", ":")).encode())

    (item,) = parts_of(value).items

    assert may_be_message(item)
    assert fields_of(item) == {
        "content": len('"content":"hi"'),
        "id": len('"id":"m-1"'),
        "": len(item.data) - len('"content":"hi"') - len('"id":"m-1"'),
    }


def test_the_items_of_a_snapshot_are_those_it_holds() -> None:
    inner = ormsgpack.packb(["a", "bb"])
    snapshot = Stored("msgpack", ormsgpack.packb(ormsgpack.Ext(7, inner)))

    assert parts_of(snapshot) == parts_of(Stored("msgpack", inner))


@pytest.mark.parametrize("value", [Stored("null", b""), Stored("bytes", b"abc"), packed("text"), packed(3)])
def test_a_value_without_parts_is_one_item_and_one_field(value: Stored) -> None:
    (item,) = parts_of(value).items

    assert (item, fields_of(item)) == (value, {"": len(value.data)})
    assert not may_be_message(item)


def test_a_map_whose_keys_are_no_text_is_one_field() -> None:
    item = packed({1: "a", 2: "b"})

    assert fields_of(item) == {"": len(item.data)}


@given(st.sampled_from(["msgpack", "json", "null", "bytes", "msgpack+aes", "pickle"]), st.binary(max_size=60))
def test_random_bytes_are_cut_or_a_decode_error(type_: str, data: bytes) -> None:
    try:
        parts = parts_of(Stored(type_, data))
        for item in parts.items:
            assert sum(fields_of(item).values()) == len(item.data)
            may_be_message(item)
    except DecodeError:
        pass


@given(st.integers(-128, 127), st.binary(max_size=300))
def test_an_extension_of_any_kind_is_one_item_whose_fields_add_up(code: int, data: bytes) -> None:
    value = Stored("msgpack", bytes([0xC8, *len(data).to_bytes(2, "big"), code & 0xFF]) + data)
    try:
        parts = parts_of(value)
        assert sum(sum(fields_of(item).values()) for item in parts.items) == sum(len(i.data) for i in parts.items)
    except DecodeError:
        pass


@pytest.mark.parametrize("value", [Stored("msgpack", b"\x92\x01"), Stored("json", b"[1,"), Stored("msgpack+aes", b"x")])
def test_what_cannot_be_cut_is_a_decode_error(value: Stored) -> None:
    with pytest.raises(DecodeError):
        parts_of(value)
