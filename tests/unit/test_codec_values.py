from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.codec.tree import EMPTY, Opaque, Typed
from agentctl.codec.values import decode, pack, plain, unpack, unpack_last
from agentctl.errors import DecodeError, Refused
from agentctl.records.rows import Stored


def packed(value: object, **kwargs: object) -> Stored:
    return Stored("msgpack", ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS, **kwargs))


def ext(code: int, *parts: object) -> Stored:
    return Stored("msgpack", ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(list(parts)))))


@pytest.mark.parametrize("code", range(6))
def test_a_row_that_names_a_module_on_disk_imports_nothing(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "imported"
    (tmp_path / "forged_by_a_row.py").write_text(f"open({str(marker)!r}, 'w').close()\ndef call(*a, **k): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    forged = ext(code, "forged_by_a_row", "call", {"x": 1}, "call")

    tree = unpack(forged)
    shown = plain(tree)

    assert "forged_by_a_row" not in sys.modules
    assert not marker.exists()
    assert shown == {"$type": "forged_by_a_row.call", "x": 1}
    assert pack(tree) == forged


def test_a_json_constructor_imports_nothing_and_shows_its_type() -> None:
    stored = Stored("json", b'{"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]}')

    assert decode(stored) == {"$type": "os.system", "$value": "true"}
    assert pack(unpack(stored), type="json") == stored


def test_an_old_json_row_with_messages_shows_their_fields() -> None:
    row = {
        "messages": [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "HumanMessage"],
                "kwargs": {"content": "hi", "id": "m1"},
            }
        ],
        "kinds": {"lc": 2, "type": "constructor", "id": ["Set"], "method": None, "args": [["a"]], "kwargs": {}},
    }

    assert decode(Stored("json", json.dumps(row).encode())) == {
        "messages": [{"$type": "langchain.schema.messages.HumanMessage", "content": "hi", "id": "m1"}],
        "kinds": {"$type": "Set", "$value": ["a"]},
    }


def test_a_user_dict_shaped_like_a_constructor_stays_a_dict_in_msgpack() -> None:
    value = {"lc": 1, "type": "constructor", "id": ["langchain", "x"], "kwargs": {}}

    assert decode(packed(value)) == value


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (Stored("null", b""), None),
        (Stored("bytes", b"\x00\xff"), {"$base64": "AP8="}),
        (Stored("bytearray", b"ab"), {"$base64": "YWI="}),
        (Stored("empty", b""), {"$type": "empty"}),
    ],
)
def test_values_outside_msgpack_keep_their_kind(stored: Stored, shown: object) -> None:
    tree = unpack(stored)

    assert plain(tree) == shown
    assert pack(tree) == stored


def test_a_slice_that_holds_nil_packs_back_when_asked_for_msgpack() -> None:
    assert pack(unpack(Stored("msgpack", b"\xc0")), type="msgpack") == Stored("msgpack", b"\xc0")


def test_int_keys_do_not_become_text() -> None:
    assert decode(packed({1: "a", "b": 2})) == {"$map": [[1, "a"], ["b", 2]]}
    assert decode(packed({(1, "x"): True})) == {"$map": [[{"$tuple": [1, "x"]}, True]]}


def test_a_dict_that_uses_a_mark_as_a_key_cannot_be_taken_for_a_typed_value() -> None:
    assert decode(packed({"$type": "x"})) == {"$map": [["$type", "x"]]}
    assert decode(packed({"$ref": "#/x"})) == {"$ref": "#/x"}


def test_a_secret_is_not_shown() -> None:
    stored = ext(0, "pydantic.types", "SecretStr", "hunter2")

    assert decode(stored) == {"$type": "pydantic.types.SecretStr", "$value": "**********"}
    assert pack(unpack(stored)) == stored


def test_an_unknown_extension_is_kept_byte_for_byte() -> None:
    stored = Stored("msgpack", ormsgpack.packb([ormsgpack.Ext(99, b"\x01\x02")]))

    assert unpack(stored) == [Opaque(99, b"\x01\x02")]
    assert decode(stored) == [{"$type": "msgpack.ext99", "$base64": "AQI="}]
    assert pack(unpack(stored)) == stored


def test_a_known_extension_with_other_contents_is_kept_byte_for_byte() -> None:
    stored = ext(5, "only two", "parts")

    assert isinstance(unpack(stored), Opaque)
    assert pack(unpack(stored)) == stored


def test_a_pickle_is_refused() -> None:
    with pytest.raises(DecodeError, match="pickle"):
        unpack(Stored("pickle", b"cos\nsystem\n(S'true'\ntR."))


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(DecodeError, match="'yaml'"):
        unpack(Stored("yaml", b"a: 1"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x91",
        b"\xa5abc",
        b"\xa2\xff\xfe",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff\x01",
        b"\xc1",
        b"\x91" * 100_000,
        b"\xc7\x01\x02\xc1",
    ],
    ids=["empty", "cut list", "cut text", "not utf-8", "huge list", "huge map", "reserved", "deep", "damaged inside"],
)
def test_damaged_msgpack_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError, match="damaged"):
        unpack(Stored("msgpack", data))


def test_extensions_nested_without_end_are_a_decode_error() -> None:
    data = ormsgpack.packb(1)
    for _ in range(3_000):
        data = ormsgpack.packb(ormsgpack.Ext(0, data))

    with pytest.raises(DecodeError):
        decode(Stored("msgpack", data))


def test_damaged_or_deep_json_is_a_decode_error() -> None:
    for data in (b"{", b"[" * 100_000, b"\xff"):
        with pytest.raises(DecodeError, match="damaged"):
            unpack(Stored("json", data))


@pytest.mark.parametrize("value", [2**64, "\ud800", object(), [{"x": {1, 2}}]])
def test_what_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(Refused, match="cannot be stored"):
        pack(value)


def test_a_json_constructor_is_packed_as_json_and_has_no_msgpack_form() -> None:
    stored = Stored("json", b'[{"lc": 1, "type": "constructor", "id": ["a", "B"], "kwargs": {}}]')

    assert pack(unpack(stored)) == stored
    with pytest.raises(Refused):
        pack(unpack(stored), type="msgpack")


def test_what_only_javascript_has_shows_its_name_and_packs_back() -> None:
    stored = Stored("json", b'[{"lc": 2, "type": "undefined"}, {"lc": 2, "type": "delta_snapshot", "value": [1]}]')

    snapshot = "langgraph.checkpoint.serde.types._DeltaSnapshot"
    assert decode(stored) == [{"$type": "undefined"}, {"$type": snapshot, "$value": [1]}]
    assert pack(unpack(stored)) == stored


def test_an_encrypted_value_without_a_key_says_which_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)

    with pytest.raises(DecodeError, match="LANGGRAPH_AES_KEY") as caught:
        unpack(Stored("msgpack+aes", b"x" * 64))
    assert caught.value.hint is not None


def test_an_encrypted_value_with_a_key_of_the_wrong_length_says_so() -> None:
    with pytest.raises(DecodeError, match="16, 24 or 32 bytes"):
        unpack(Stored("msgpack+aes", b"x" * 64), key=b"short")


def test_another_cipher_is_named() -> None:
    with pytest.raises(DecodeError, match="'rot13'"):
        unpack(Stored("msgpack+rot13", b"x"), key=b"k" * 16)


def test_the_empty_mark_is_one_object() -> None:
    assert unpack(Stored("empty", b"")) is EMPTY


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_a_decode_error(data: bytes) -> None:
    for kind in ("msgpack", "json"):
        with contextlib.suppress(DecodeError):
            decode(Stored(kind, data))


@given(st.data())
def test_a_damaged_message_is_a_value_or_a_decode_error(data: st.DataObject) -> None:
    whole = ext(5, "langchain_core.messages.human", "HumanMessage", {"content": "hi", "id": "1", "type": "human"}).data
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]

    with contextlib.suppress(DecodeError):
        decode(Stored("msgpack", damaged))


@pytest.mark.parametrize("last", ["text", None, {"a": [1]}, Typed(5, "app", "Report", {"n": 1}), Opaque(99, b"x")])
def test_the_last_of_a_list_is_unpacked_as_in_the_whole_list(last: object) -> None:
    items = [Typed(5, "app", "Report", {"n": 0}), last]
    assert unpack_last(pack(items).data) == (2, last)


@pytest.mark.parametrize("data", [b"", b"\x90", b"\x01", b"\x92\x01", ormsgpack.packb({"a": 1})])
def test_what_is_no_list_with_items_has_no_last_one(data: bytes) -> None:
    with pytest.raises(DecodeError):
        unpack_last(data)
