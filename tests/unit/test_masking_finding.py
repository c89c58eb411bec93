"""What is taken for personal in texts and by fields, and what is not; the rates that the page tells."""

from __future__ import annotations

import pytest

from agentctl.errors import ConfigError
from agentctl.masking.fields import ROOT, Fields, kind_of, words_of
from agentctl.masking.keys import Key
from agentctl.masking.masker import Masker
from agentctl.masking.rules import rules_of
from agentctl.records.masking import FieldRule, MaskSettings, PatternRule, ValuePlace
from tests.support.masking_rates import PAGE, masked, with_table
from tests.support.personal import HARMLESS

STATE = ValuePlace("channel", "state")


def kinds_in(text: str) -> dict[str, int]:
    masker = Masker(rules_of(MaskSettings()), Key(b"k" * 32))
    masker.text(text)
    return dict(masker.report().counts)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("full_name", "name"),
        ("customerName", "name"),
        ("CUSTOMER-NAME", "name"),
        ("customername", "name"),
        ("billing_street_address", "address"),
        ("emailAddress", "email"),
        ("ip_address", "ip"),
        ("DOB", "birth_date"),
        ("Vorname", "name"),
        ("código postal", "address"),
        ("numero_de_tarjeta", "card"),
        ("姓名", "name"),
        ("आधार", "national_id"),
        ("client_secret", "secret"),
        ("tool_name", None),
        ("file_name", None),
        ("name", None),
        ("state", None),
        ("", None),
    ],
)
def test_a_field_is_known_by_the_end_of_its_name_in_any_writing(name: str, kind: str | None) -> None:
    assert kind_of(words_of(name)) == kind


def test_a_name_counts_only_inside_a_person() -> None:
    value = {
        "customer": {"name": "Zoe Quill", "profile": {"first": "Zoe"}},
        "passengers": [{"name": "Bo Quill"}, "Cy Quill"],
        "someone": {"name": "Di Quill", "email": "di@quill.net"},
        "product": {"name": "Duvet Deluxe"},
        "tool": {"name": "lookup_order", "args": {}},
        "user": "Where Is My Order",
    }
    out = masked(value)

    assert isinstance(out, dict)
    assert "Quill" not in repr(out) and "Zoe" not in repr(out)
    assert (out["product"], out["tool"], out["user"]) == (value["product"], value["tool"], value["user"])


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ({"full_name": "प्रिया शर्मा", "text": "नमस्ते प्रिया, शर्मा जी"}, ("प्रिया", "शर्मा")),
        ({"姓名": "山田 太郎", "text": "山田さん、山田太郎様"}, ("山田", "太郎")),
        ({"full_name": "José Núñez", "text": "jose\u0301 NÚÑEZ"}, ("José", "jose", "NÚÑEZ")),
        ({"имя": "Лев Толстой", "text": "Толстой пишет: лев толстой"}, ("Толстой", "толстой", "Лев")),
    ],
)
def test_names_of_every_script_are_masked_where_they_stand_again(value: object, left: tuple[str, ...]) -> None:
    out = repr(masked(value))
    assert not any(text in out for text in left), out


def test_a_path_of_a_rule_is_compared_from_its_end() -> None:
    fields = Fields(MaskSettings(fields=(FieldRule("order.notes", "other"), FieldRule("*_ref", "national_id"))))
    order = fields.inside(fields.inside(ROOT, "Order"), "Notes")

    assert order.kind == "other"
    assert fields.inside(fields.inside(ROOT, "ticket"), "notes").kind is None
    assert fields.inside(ROOT, "patientRef").kind == "national_id"


@pytest.mark.parametrize("value", HARMLESS, ids=str)
def test_what_is_nobodys_is_left_alone(value: object) -> None:
    assert masked({"content": value}) == {"content": value}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("+1 415 555 2671 3 items", {"phone": 1}),
        ("+49 171 2345678 and 0049 171 2345678", {"phone": 2}),
        ("(415) 555-2671 or 415.555.2671", {"phone": 2}),
        ("call 9876543210", {"phone": 1}),
        ("9876543210", {}),
        ("order number 415-555-2671", {}),
        ("4539 5787 6362 1486 12/27", {"card": 1}),
        ("on 12 4539 5787 6362 1486", {"card": 1}),
        ("4539 5787 6362 1487", {}),
        ("DE89 3704 0044 0532 0130 00 please", {"iban": 1}),
        ("DE88 3704 0044 0532 0130 00", {}),
        ("SSN 536-90-4399", {"national_id": 1}),
        ("SKU 536-90-4399", {}),
        ("aadhaar 234123412346", {"national_id": 1}),
        ("234123412346", {}),
        ("ABCPE1234F", {"national_id": 1}),
        ("10.0.0.5:8080 and 2a01:4f8::1", {"ip": 2}),
        ("v10.0.0.5, version 1.2.3.4, 127.0.0.1, ::1", {}),
        ("postgresql://app:hunter2@db/x", {"secret": 1}),
        ("Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh12345678", {"secret": 1}),
        ("a@b.co, git@github.com:org/x, x@y", {"email": 1}),
        ("Mr. van der Berg and Dr Ana M. Souza", {"name": 2}),
        ("Dear Customer, I am Very happy. This is Great News!", {}),
        ("| Name | Zoe Quill |\n| Phone | 98765 43210 |", {"name": 1, "phone": 1}),
        (
            "**Name:** Zoe\n**DOB:** 4 March 1988\n**Address:** 12 Mill Lane, Leeds",
            {"name": 1, "birth_date": 1, "address": 1},
        ),
        ("Name: Widget, size: 12", {}),
        ("where email='zoe@quill.net' and name = 'Zoe Quill'", {"name": 1, "email": 1}),
        ("<customer><name>Zoe Quill</name><dob>1988-03-04</dob></customer>", {"name": 1, "birth_date": 1}),
        ("street = 12 Mill Lane; zip = 90210", {"address": 2}),
        ("password: hunter2, auth: required, total_tokens: 1204", {"secret": 1}),
    ],
)
def test_numbers_and_names_are_told_by_checks_writing_and_words(text: str, kinds: dict[str, int]) -> None:
    assert kinds_in(text) == kinds


@pytest.mark.parametrize("regex", ["(", "x*"])
def test_a_pattern_that_is_none_or_matches_nothing_is_an_error_that_names_it(regex: str) -> None:
    with pytest.raises(ConfigError, match="badge"):
        rules_of(MaskSettings(patterns=(PatternRule("badge", regex),)))


def test_long_hostile_texts_come_to_an_end() -> None:
    masker = Masker(rules_of(MaskSettings()), Key(b"k" * 32))
    for text in (
        "a" * 20_000 + "@",
        "1 " * 2_000,
        "a.b-" * 2_000,
        ":" * 2_000,
        "%4" * 2_000,
        '{"' * 2_000,
        "=a" * 1_000,
    ):
        assert masker.text(text)


def test_the_page_tells_the_rates_that_are_measured() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "python -m tests.support.masking_rates"
