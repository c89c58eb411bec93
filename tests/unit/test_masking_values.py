"""Values of every stored form: what is personal is replaced, and every other byte is as it was."""

from __future__ import annotations

import base64
import json
import math
import struct
import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote

import msgpack  # type: ignore[import-untyped]
import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt, Send
from pydantic import BaseModel, SecretStr

from agentctl.codec.encryption import decrypted, sealed
from agentctl.errors import DecodeError
from agentctl.masking.keys import Key
from agentctl.masking.masker import Masker
from agentctl.masking.rules import rules_of
from agentctl.records.masking import FieldRule, MaskSettings, PatternRule, ValuePlace
from agentctl.records.rows import Stored

STATE = ValuePlace("channel", "state")
MAIL = "ana.souza@acme.com"
SERIALIZER = JsonPlusSerializer()


class Address(BaseModel):
    street: str
    city: str


class Customer(BaseModel):
    full_name: str
    address: Address
    pin: SecretStr


@dataclass
class Trip:
    passenger_name: str
    seats: int


class Contact(NamedTuple):
    email: str
    phone: int


def masker(**settings: Any) -> Masker:
    return Masker(rules_of(MaskSettings(**settings)), Key(b"k" * 32))


def through(value: object, **settings: Any) -> Any:
    """A value as it is after it was stored, learned from, masked, and loaded by LangGraph."""
    one = masker(**settings)
    stored = Stored(*SERIALIZER.dumps_typed(value))
    one.learn(stored, STATE)
    return SERIALIZER.loads_typed(one.stored(stored, STATE))


PERSONAL = st.sampled_from([MAIL, "call +49 171 2345678", "4539 5787 6362 1486", "DE89370400440532013000"])
KEYS = st.sampled_from(["note", "items", "full_name", "phone", "n", "7", "päck"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=12)
    | st.binary(max_size=8)
    | PERSONAL,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | PERSONAL, inner, max_size=4),
    max_leaves=14,
)


def same_structure(one: object, other: object) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and all(
            (key == new or key in PLANTED) and same_structure(value, changed)
            for (key, value), (new, changed) in zip(one.items(), other.items(), strict=True)
        )
    if isinstance(one, list):
        return isinstance(other, list) and all(same_structure(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float):
        return struct.pack(">d", one) == struct.pack(">d", other)  # type: ignore[arg-type]
    return type(one) is type(other) and (isinstance(one, str | int) or one == other)


PLANTED = frozenset({MAIL, "call +49 171 2345678", "4539 5787 6362 1486", "DE89370400440532013000"})


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_masking_keeps_structure_types_and_order_of_any_value(value: object) -> None:
    data = ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)
    one = masker()
    stored = Stored("msgpack", data)
    one.learn(stored, STATE)

    out = one.stored(stored, STATE)

    assert same_structure(value, ormsgpack.unpackb(out.data, option=ormsgpack.OPT_NON_STR_KEYS))
    assert one.stored(stored, STATE) == out
    assert (out is stored) == (out.data == data)
    assert not any(text.encode() in out.data for text in PLANTED - {"DE89370400440532013000"})


@given(VALUES)
@settings(max_examples=30, deadline=None)
def test_a_value_masked_twice_has_the_same_shape_and_is_stable(value: object) -> None:
    one = masker()
    once = one.plain(value, STATE)
    twice = one.plain(once, STATE)

    assert one.plain(value, STATE) == once or value != value or "nan" in repr(value)
    assert len(json.dumps(twice, default=repr)) >= len(json.dumps(once, default=repr)) * 0.5


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            msgpack.packb({"a": 1.5, "b": 2**63, "c": float("nan")}, use_single_float=True), id="short floats"
        ),
        pytest.param(b"\xd9\x03abc", id="a text with a longer head than it needs"),
        pytest.param(b"\xcd\x00\x05", id="an integer wider than it needs"),
        pytest.param(b"\x82\xa1a\x01\xa1a\x02", id="a key twice"),
        pytest.param(b"\xc7\x03\x55abc", id="an extension of somebody else"),
        pytest.param(ormsgpack.packb([b"\x00\xff", -1, None, True, "x" * 300]), id="all the rest"),
    ],
)
def test_bytes_beside_what_is_masked_stay_as_another_writer_wrote_them(data: bytes) -> None:
    one = masker()
    stored = Stored("msgpack", b"\x92" + data + ormsgpack.packb(MAIL))

    out = one.stored(stored, STATE).data

    assert out[: 1 + len(data)] == b"\x92" + data
    assert MAIL.encode() not in out and ormsgpack.unpackb(out[1 + len(data) :]).endswith(".example.com")
    assert one.stored(Stored("msgpack", data), STATE).data is data


@pytest.mark.parametrize("length", [10, 31, 32, 255, 256, 65_535, 65_536])
def test_lengths_of_texts_and_of_what_holds_them_are_written_anew(length: int) -> None:
    value = HumanMessage(f"{MAIL} " + "x" * (length - len(MAIL)), id="m1")
    out = through([value, value])

    assert out[0].content.endswith("x" * (length - len(MAIL))) and MAIL not in out[0].content
    assert out[0] == out[1] and out[0].id == "m1"


def test_ids_names_of_tools_and_calls_pair_as_before() -> None:
    call = {"name": "lookup_order", "args": {"email": MAIL, "order_id": "A1"}, "id": "call_1", "type": "tool_call"}
    out = through(
        [
            HumanMessage(f"I am {MAIL}", id="m1"),
            AIMessage("", id="m2", tool_calls=[call]),
            ToolMessage(
                json.dumps({"email": MAIL, "total": 1234.5}), tool_call_id="call_1", id="m3", name="lookup_order"
            ),
        ]
    )

    made = out[1].tool_calls[0]
    assert [message.id for message in out] == ["m1", "m2", "m3"]
    assert (made["name"], made["id"], made["args"]["order_id"]) == ("lookup_order", "call_1", "A1")
    assert (out[2].tool_call_id, out[2].name) == ("call_1", "lookup_order")
    assert out[0].content == f"I am {made['args']['email']}"
    assert json.loads(out[2].content) == {"email": made["args"]["email"], "total": 1234.5}


def test_a_name_that_a_field_told_is_masked_in_every_text() -> None:
    out = through({"customer": {"full_name": "Zoe Quill"}, "messages": ["zoe quill", "Zoe, hi", "QUILL", "Ms Quill's"]})

    first, last = out["customer"]["full_name"].split()
    assert out["messages"] == [f"{first} {last}".lower(), f"{first}, hi", last.upper(), f"Ms {last}'s"]


def test_short_names_and_ordinary_words_do_not_eat_a_text() -> None:
    text = "Al Will mark it on 1 May; also, the bill may be Young. all"
    value = {"full_name": "Al May", "other": {"full_name": "Will Young"}, "text": text}

    assert through(value)["text"] == text


def test_an_ordinary_word_is_masked_where_the_whole_name_stands() -> None:
    assert "may" not in through({"full_name": "Al May", "text": "it was al may!"})["text"]


@pytest.mark.parametrize(
    "value",
    [
        Trip("Zoe Quill", 2),
        Contact(MAIL, 4915112345678),
        Customer(full_name="Zoe Quill", address=Address(street="12 Mill Lane", city="Leeds"), pin=SecretStr("4711")),
        deque([MAIL]),
        {MAIL, "x"},
        Interrupt({"question": f"send to {MAIL}?"}, id="i1"),
        Send("lookup", {"email": MAIL}),
        [HumanMessage([{"type": "text", "text": MAIL}, {"type": "image_url", "image_url": {"url": "data:,"}}])],
    ],
)
def test_typed_values_stay_loadable_without_their_class_being_imported_to_mask(value: object) -> None:
    out = through(value)

    assert type(out) is type(value)
    dumped = SERIALIZER.dumps_typed(out)[1]
    assert not any(text in dumped for text in (b"Quill", b"ana.souza", b"4711", b"Mill Lane", b"Leeds"))


def test_what_is_kept_for_machines_is_untouched() -> None:
    value = {
        "id": uuid.uuid4(),
        "at": datetime(2026, 11, 30, tzinfo=UTC),
        "day": date(2026, 11, 30),
        "price": Decimal("1234.50"),
        "n": 9876543210,
        "send": Send("ask_ana", {"n": 1}),
    }
    stored = Stored(*SERIALIZER.dumps_typed(value))

    assert masker().stored(stored, STATE) is stored


def test_a_birth_date_stays_a_date() -> None:
    out = through({"birth_date": date(1988, 3, 4), "dob": datetime(1988, 3, 4, tzinfo=UTC), "at": date(1988, 3, 4)})

    assert type(out["birth_date"]) is date and out["birth_date"].year == 1988
    assert out["birth_date"] == out["dob"].date() != date(1988, 3, 4) == out["at"]


def test_json_text_inside_a_text_keeps_its_style() -> None:
    rest = ',\n\t"n": 1.50, "t": "caf\\u00e9 \\/ x", "big": 123456789012345678901234567890, "n": 1e3}'
    text = '{ "e-mail" : "ana@acme.com"' + rest
    out = through({"result": text})["result"]

    assert out.startswith('{ "e-mail" : "') and out.endswith(rest)
    assert "ana@" not in out


def test_json_rows_keep_their_style_too() -> None:
    stored = Stored("json", '{"email":"ana@acme.com", "é": [1.0, NaN], "lc": {"lc":1,"type":"constructor"}}'.encode())
    out = masker().stored(stored, STATE)

    assert out.type == "json" and out.data.endswith(stored.data[stored.data.index(b", ") :])
    assert b"ana@" not in out.data


@pytest.mark.parametrize(
    "text",
    [
        f'Result: {{"contact": "{MAIL}"}} and more',
        f"https://x.test/?q=1&mail={quote(MAIL)}&n=2",
        f"token {base64.b64encode(MAIL.encode()).decode()} end",
        base64.urlsafe_b64encode(f'{{"email":"{MAIL}"}}'.encode()).decode().rstrip("="),
        json.dumps(json.dumps({"inner": json.dumps([MAIL])})),
        f"line one\\n{MAIL}\\tline two",
        f"{{'email': '{MAIL}'}}",
    ],
)
def test_personal_data_in_encoded_text_is_masked_and_encoded_again(text: str) -> None:
    out = through({"text": text})["text"]

    forms = (MAIL, quote(MAIL), base64.b64encode(MAIL.encode()).decode()[:16])
    assert out != text and not any(form in out for form in forms)
    head, tail = text[:6], text[-6:]
    assert ".example.com" in out or out[:2] == text[:2] or (head in out and tail in out)


def test_a_key_by_which_something_is_looked_up_is_the_same_token_as_the_value() -> None:
    out = through({"by_mail": {MAIL: {"n": 1}}, "current": MAIL})

    assert list(out["by_mail"]) == [out["current"]] != [MAIL]


def test_bytes_are_left_alone_and_reported_by_place() -> None:
    one = masker()
    value = {"scan": b"%PDF " + MAIL.encode(), "image": base64.b64encode(bytes(range(256)) * 4).decode()}
    stored = Stored("msgpack", ormsgpack.packb(value))

    assert one.stored(stored, STATE) is stored
    assert one.stored(Stored("bytes", b"123"), ValuePlace("channel", "raw")).data == b"123"
    places = {entry.place: (entry.n_values, entry.n_bytes) for entry in one.report().unmasked}
    assert places == {"channel raw": (1, 3), "channel state": (2, len(value["scan"]) + len(value["image"]))}


def test_the_report_counts_what_comes_again() -> None:
    one = masker()
    stored = Stored(*SERIALIZER.dumps_typed([HumanMessage(MAIL, id="m1"), HumanMessage("bob@acme.com", id="m2")]))
    for _ in range(3):
        one.stored(stored, STATE)
    one.metadata({"step": 1, "user": MAIL})

    report = one.report()
    assert (report.counts, report.n_distinct) == ({"email": 7}, {"email": 2})
    assert report.n_values_changed == 4


def test_an_encrypted_value_is_opened_masked_and_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "0123456789abcdef")
    one = masker()
    plain = Stored("msgpack", ormsgpack.packb({"email": MAIL}))
    clean = sealed(Stored("msgpack", ormsgpack.packb({"n": 1})), "aes")

    out = one.stored(sealed(plain, "aes"), STATE)

    assert out.type == "msgpack+aes" and decrypted(out) == one.stored(plain, STATE)
    assert one.stored(clean, STATE) is clean


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (Stored("pickle", b"x"), "pickle"),
        (Stored("zip", b"x"), "zip"),
        (Stored("msgpack", b"\x92\x01"), "cut short"),
        (Stored("msgpack", b"\xa5\xff\xff\xff\xff\xff"), "damaged"),
        (Stored("msgpack", b"\x01\x02"), "damaged"),
        (Stored("msgpack", b"\xc1"), "damaged"),
        (Stored("msgpack", b"\x91" * 5000 + b"\x01"), "deeply"),
        (Stored("json", b'{"a": '), "damaged"),
        (Stored("json", b"\xff"), "damaged"),
        (Stored("msgpack+aes", b"x"), "encrypted"),
    ],
)
def test_what_cannot_be_read_is_an_error_and_never_passes(
    stored: Stored, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)
    for method in (masker().stored, masker().learn):
        with pytest.raises(DecodeError, match=said):
            method(stored, STATE)


def test_python_values_that_are_nested_too_deeply_are_an_error() -> None:
    value: list[object] = []
    for _ in range(5_000):
        value = [value]
    one = masker()
    for method in (one.plain, one.learn_plain):
        with pytest.raises(DecodeError, match="deeply"):
            method(value, STATE)
    assert one.plain({"email": MAIL}, STATE) != {"email": MAIL}


def test_threads_that_mask_with_one_masker_count_every_value_once() -> None:
    one = masker()
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: one.plain({"email": f"ana{n % 5}@acme.com"}, STATE), range(200)))

    assert len({repr(value) for value in made}) == 5
    assert one.report().counts == {"email": 200}


def test_rules_of_a_configuration_come_first_and_never_last() -> None:
    settings: dict[str, Any] = {
        "fields": (FieldRule("customer.alias", "name"), FieldRule("badge*", "other")),
        "patterns": (PatternRule("employee", r"EMP-(?P<value>\d{6})"),),
        "never": ("merchant.*", "phone"),
    }
    out = through(
        {
            "customer": {"alias": "Zuzu", "phone": "+49 171 2345678"},
            "alias": "Bobo",
            "badge_no": "B-1234567",
            "merchant": {"email": MAIL},
            "text": "EMP-123456 came",
        },
        **settings,
    )

    assert out["customer"]["alias"] != "Zuzu" and out["alias"] == "Bobo"
    assert out["customer"]["phone"] == "+49 171 2345678" and out["merchant"] == {"email": MAIL}
    assert out["badge_no"].startswith("B-") and out["badge_no"] != "B-1234567"
    assert out["text"].startswith("EMP-") and out["text"].endswith(" came") and "123456" not in out["text"]


def test_what_is_learned_later_changes_what_is_given_later() -> None:
    one = masker()
    assert one.text("Quill wrote") == "Quill wrote"
    one.learn_plain({"full_name": "Zoe Quill"}, STATE)
    assert one.text("Quill wrote") != "Quill wrote"


def test_a_name_of_a_thread_is_personal_where_it_holds_an_address_or_a_phone() -> None:
    one = masker()
    assert one.text("support-17", "id") == "support-17"
    assert one.text(str(uuid.UUID(int=7)), "id") == str(uuid.UUID(int=7))
    assert one.text("4539578763621486", "id") == "4539578763621486"
    assert one.text("whatsapp:+4917123456789", "id") != "whatsapp:+4917123456789"
    assert one.text(f"chat-{MAIL}", "id") != f"chat-{MAIL}"
    assert math.isfinite(one.report().n_values_changed)


def test_a_card_in_fours_is_one_also_under_the_name_of_a_thing() -> None:
    one = masker()
    assert one.text("4539 5787 6362 1486", "items") != "4539 5787 6362 1486"
