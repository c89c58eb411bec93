"""Values between the one msgpack map of SQLite and the document with blobs of Postgres."""

from __future__ import annotations

import json
import math
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.codec.packed import split_map
from agentctl.records.rows import CheckpointRow, Stored, StoredCheckpoint
from agentctl.stores.copying.compare import same_value
from agentctl.stores.copying.convert import Unholdable, is_delta_snapshot, require_json, to_document, to_state

SNAPSHOT = ormsgpack.packb(ormsgpack.Ext(7, ormsgpack.packb(["a"])))


def a_set(*elements: str) -> Stored:
    return Stored("msgpack", ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("builtins", "set", elements)))))


def checkpoint(**values: Stored) -> StoredCheckpoint:
    row = CheckpointRow("t", "", "1f1ecbf0-0000-6000-8000-000000000000", None, {"step": 1})
    versions = dict.fromkeys(values, "00000000000000000000000000000002.0.5")
    return StoredCheckpoint(row, 4, versions, {"node": versions}, values, ("log",), ts="2026-11-30T14:00:00+00:00")


def packed(value: Any) -> Stored:
    return Stored("msgpack", ormsgpack.packb(value))


@pytest.mark.parametrize("value", [None, True, False, 0, -7, 2**63, 2**64 - 1, -(2**63), 0.5, 1e15, "", "naïve ☕"])
def test_scalars_lie_inline_in_the_document(value: Any) -> None:
    document = to_document(checkpoint(x=packed(value)))
    assert document.body["channel_values"] == {"x": value}
    assert document.blobs == {}
    assert json.loads(json.dumps(document.body)) == document.body


@pytest.mark.parametrize("value", [[], {}, [1, {"a": None}], {"deep": {"er": [-0.0, 1e300]}}])
def test_every_other_value_is_a_blob_of_the_same_bytes(value: Any) -> None:
    document = to_document(checkpoint(x=packed(value)))
    assert document.body["channel_values"] == {}
    assert document.blobs == {"x": packed(value)}
    assert document.versions == {"x": "00000000000000000000000000000002.0.5"}


def test_bytes_become_the_blob_that_the_saver_would_write() -> None:
    assert to_document(checkpoint(x=packed(b"\x00\xff"))).blobs == {"x": Stored("bytes", b"\x00\xff")}


def test_a_delta_snapshot_is_marked_inline_and_kept_as_a_blob() -> None:
    document = to_document(checkpoint(x=Stored("msgpack", SNAPSHOT)))
    assert document.body["channel_values"] == {"x": True}
    assert document.blobs == {"x": Stored("msgpack", SNAPSHOT)}


@pytest.mark.parametrize("size", [0, 1, 2, 4, 8, 16, 17, 300, 70_000])
def test_a_delta_snapshot_of_any_size_is_recognised(size: int) -> None:
    for code in (0, 7):
        data = ormsgpack.packb(ormsgpack.Ext(code, b"x" * size))
        assert is_delta_snapshot(Stored("msgpack", data)) == (code == 7)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a\x00b", "NUL"),
        (float("nan"), "not JSON"),
        (float("-inf"), "not JSON"),
        (1e16, "integer"),
        (-1e16, "integer"),
        (-0.0, "-0.0"),
    ],
)
def test_what_jsonb_would_bend_is_refused_inline_and_kept_inside_values(value: Any, reason: str) -> None:
    with pytest.raises(Unholdable, match=f"channel x: .*{reason}"):
        to_document(checkpoint(x=packed(value)))
    assert to_document(checkpoint(x=packed([value]))).blobs["x"] == packed([value])


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(Unholdable, match="channel x"):
        to_document(checkpoint(x=Stored("msgpack", b"\xa3\xed\xa0\x80")))


def test_an_integer_beyond_64_bits_has_no_msgpack_form() -> None:
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(Unholdable, match="64 bits"):
            to_state(checkpoint(x=Stored("json", json.dumps(value).encode())))


@pytest.mark.parametrize("type_", ["bytearray", "pickle", "msgpack+aes"])
def test_a_blob_without_an_equal_msgpack_form_is_refused(type_: str) -> None:
    with pytest.raises(Unholdable, match="channel x"):
        to_state(checkpoint(x=Stored(type_, b"abc")))


def test_plain_json_becomes_msgpack_for_sqlite_and_stays_a_blob_for_postgres() -> None:
    stored = Stored("json", b'{"a":[1,null,"\\u00e9"]}')
    state = to_state(checkpoint(x=stored, y=Stored("json", b"0.5")))
    assert state.type == "msgpack"
    assert split_map(split_map(state.data)["channel_values"]) == {
        "x": packed({"a": [1, None, "é"]}).data,
        "y": packed(0.5).data,
    }
    document = to_document(checkpoint(x=stored, y=Stored("json", b"0.5")))
    assert (document.body["channel_values"], document.blobs["y"]) == ({}, Stored("json", b"0.5"))


def test_json_that_names_a_class_makes_the_whole_row_json() -> None:
    message = {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "HumanMessage"], "kwargs": {}}
    values = {"x": Stored("json", json.dumps(message).encode()), "n": packed(3), "nothing": Stored("null", b"")}
    state = to_state(checkpoint(**values))
    assert state.type == "json"
    assert json.loads(state.data)["channel_values"] == {"x": message, "n": 3, "nothing": None}
    for beside in (packed([1]), packed(float("nan")), Stored("bytes", b"a")):
        with pytest.raises(Unholdable, match="channel y: value of type"):
            to_state(checkpoint(**values, y=beside))


def test_a_snapshot_of_langgraph_js_is_not_marked_inline() -> None:
    snapshot = Stored("json", b'{"lc":2,"type":"delta_snapshot","value":[]}')
    document = to_document(checkpoint(x=snapshot))
    assert (document.body["channel_values"], document.blobs) == ({}, {"x": snapshot})
    assert is_delta_snapshot(snapshot)


def test_a_row_that_cannot_be_taken_apart_is_refused() -> None:
    row = CheckpointRow("t", "", "1f0", None, {})
    for convert in (to_document, to_state):
        with pytest.raises(Unholdable, match="taken apart"):
            convert(StoredCheckpoint(row, 0, {}, {}, {}, damage="encrypted"))


def test_pending_sends_of_an_old_format_are_refused() -> None:
    row = CheckpointRow("t", "", "1f0", None, {})
    old = StoredCheckpoint(row, 3, {}, {}, {"__pregel_tasks": packed([])})
    with pytest.raises(Unholdable, match="format 3"):
        to_document(old)


SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(st.dictionaries(st.text(min_size=1), TREES, max_size=4))
def test_what_goes_to_postgres_and_back_is_the_same_bytes(values: dict[str, Any]) -> None:
    original = checkpoint(**{name: packed(value) for name, value in values.items()})
    try:
        document = to_document(original)
    except Unholdable:
        return
    inline = {name: packed(value) for name, value in json.loads(json.dumps(document.body))["channel_values"].items()}
    back = to_state(checkpoint(**inline | dict(document.blobs)))
    slices = split_map(split_map(back.data)["channel_values"])
    assert slices == {name: stored.data for name, stored in original.values.items()}


@given(TREES)
def test_metadata_that_is_let_through_comes_back_equal(value: Any) -> None:
    try:
        require_json({"key": value}, "metadata")
    except Unholdable:
        return
    assert json.loads(json.dumps(value)) == value
    assert not any(isinstance(leaf, float) and (math.isnan(leaf) or abs(leaf) >= 1e16) for leaf in leaves(value))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    return [leaf for inner in value for leaf in leaves(inner)] if isinstance(value, list) else [value]


def test_sets_are_the_same_in_any_order_and_lists_are_not() -> None:
    assert same_value(a_set("a", "b"), a_set("b", "a"))
    assert not same_value(a_set("a", "b"), a_set("a", "c"))
    assert not same_value(packed(["a", "b"]), packed(["b", "a"]))


def test_a_value_is_the_same_in_the_form_of_either_store() -> None:
    assert same_value(Stored("null", b""), packed(None))
    assert same_value(Stored("bytes", b"ab"), packed(b"ab"))
    assert same_value(Stored("json", b"7"), packed(7))
    assert not same_value(packed(1), packed(1.0))
    assert not same_value(packed(True), packed(1))
