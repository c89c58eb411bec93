"""What a value becomes keeps the form that programs check, and stays one value."""

from __future__ import annotations

import ipaddress
import random
from datetime import date

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stdnum import iban as iban_rules
from stdnum import luhn
from stdnum.in_ import aadhaar, pan

from agentctl.errors import ConfigError
from agentctl.masking.issuing import Tokens
from agentctl.masking.keys import Key, key_of, key_text, new_key
from agentctl.masking.schemes import scheme_of
from agentctl.masking.tokens.dates import date_token
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.writing import compact, digits_of
from agentctl.records.masking import REGIONS
from tests.support import personal

KEY = Key(b"k" * 32)


def tokens(key: Key = KEY) -> Tokens:
    return Tokens(key, REGIONS)


def drawn(make: str, count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    made = [personal.MAKERS[make](draw) for _ in range(count)]
    return [value[1] if make == "national_id" else value for value in made]


def test_an_email_stays_one_below_example_com_and_keeps_case_and_tag_apart() -> None:
    make = tokens()
    plain = make.of("email", "ana.souza@acme.com")
    tagged = make.of("email", "ana.souza+shop@acme.com")

    assert plain.endswith(".example.com") and plain.islower()
    assert make.of("email", "Ana.Souza@ACME.com").lower() == plain
    assert make.of("email", "ANA.SOUZA@ACME.COM") == plain.upper()
    assert tagged.partition("+")[0] == plain.partition("@")[0]
    assert tagged.partition("@")[2] == plain.partition("@")[2] == make.of("email", "bob@acme.com").partition("@")[2]
    assert make.of("email", "ana.souza@acme.org").partition("@")[2] != plain.partition("@")[2]


def test_a_card_passes_luhn_in_a_test_range_with_its_spaces_where_they_were() -> None:
    make = tokens()
    for written in drawn("card", 60):
        token = make.of("card", written)
        assert luhn.is_valid(digits_of(token))
        assert digits_of(token)[:6] in {"400000", "555555", "378282", "601111", "356600"}
        assert [c for c in token if not c.isdigit()] == [c for c in written if not c.isdigit()]


def test_an_iban_keeps_its_country_and_has_right_check_digits() -> None:
    make = tokens()
    for written in drawn("iban", 40):
        token = make.of("iban", written)
        assert token != written
        assert compact(token)[:2] == compact(written)[:2]
        assert iban_rules.is_valid(token)
        assert token.islower() == written.islower()


def test_an_iban_of_a_country_that_checks_its_account_numbers_is_right_for_it_too() -> None:
    assert iban_rules.is_valid(tokens().of("iban", "ES91 2100 0418 4502 0005 1332"))
    assert iban_rules.is_valid(tokens().of("iban", "BE71096123456769"))


def test_a_phone_stays_a_valid_number_of_its_country_however_it_is_written() -> None:
    make = tokens()
    for region in personal.PHONE_REGIONS:
        example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
        for form in (phonenumbers.PhoneNumberFormat.E164, phonenumbers.PhoneNumberFormat.INTERNATIONAL):
            written = phonenumbers.format_number(example, form)
            token = phonenumbers.parse(make.of("phone", written))
            assert phonenumbers.is_valid_number_for_region(token, region), written
            assert token != example


def test_one_phone_number_has_one_token_in_every_writing() -> None:
    make = tokens()
    first = digits_of(make.of("phone", "+91 98765 43210"))

    assert digits_of(make.of("phone", "98765 43210")) == first[2:]
    assert digits_of(make.of("phone", "098765-43210")) == "0" + first[2:]
    assert digits_of(make.of("phone", "0091 (98765) 43210")) == "00" + first
    assert make.of_number("phone", 9876543210) == int(first[2:])
    assert make.of_number("phone", 919876543210) == int(first)


def test_national_numbers_stay_right_ones_of_their_kind() -> None:
    make = tokens()
    for written in drawn("national_id", 120):
        token = make.of("national_id", written)
        scheme = scheme_of(compact(written))
        assert scheme is not None and scheme.is_right(compact(token)), (written, token)
        assert token != written
        assert [c for c in token if not c.isalnum()] == [c for c in written if not c.isalnum()]


def test_aadhaar_and_pan_keep_shape_and_checksum() -> None:
    make = tokens()
    draw = random.Random(5)
    assert aadhaar.is_valid(make.of("national_id", personal.aadhaar(draw)[1]))
    assert pan.is_valid(make.of("national_id", personal.pan(draw)[1]))


@pytest.mark.parametrize(
    ("text", "head"), [("CURP: BOXW310820HNERXN09", "BOXW31"), ("11010519491231002X", "110105"), ("131052-308T", "")]
)
def test_the_birth_date_in_a_number_becomes_another_day_of_its_year(text: str, head: str) -> None:
    written = text.rpartition(" ")[2]
    token = tokens().of("national_id", written)

    assert token != written and len(token) == len(written)
    assert scheme_of(token) is not None
    if head.isdigit():
        assert token.startswith(head)


def test_an_unknown_document_number_keeps_its_shape() -> None:
    token = tokens().of("national_id", "L01X00T47")
    assert len(token) == 9 and token != "L01X00T47"
    assert [c.isdigit() for c in token] == [c.isdigit() for c in "L01X00T47"]


def test_an_address_of_the_internet_becomes_one_that_nothing_has() -> None:
    make = tokens()
    assert ipaddress.ip_address(make.of("ip", "203.0.113.7")) in ipaddress.ip_network("240.0.0.0/4")
    assert ipaddress.ip_address(make.of("ip", "2a01:1::7")) in ipaddress.ip_network("2001:db8::/32")
    assert make.of("ip", "2A01:0001::0007") == make.of("ip", "2a01:1::7")
    assert make.of("ip", "10.1.2.0/24").endswith("/24")


@pytest.mark.parametrize(
    "written",
    ["1988-03-04", "04/03/1988", "4.3.1988", "4 March 1988", "Mar 4, 1988", "19880304", "1988-03-04T00:00:00+00:00"],
)
def test_a_birth_date_becomes_another_day_of_its_year_in_the_same_writing(written: str) -> None:
    token = tokens().of("birth_date", written)

    assert token != written and "1988" in token and len(token) <= len(written) + 6
    assert [c for c in token if not c.isalnum()] == [c for c in written if not c.isalnum()]


@given(st.dates(date(1900, 1, 1), date(2025, 12, 31)), st.dates(date(1900, 1, 1), date(2025, 12, 31)))
@settings(max_examples=25, deadline=None)
def test_different_birth_dates_stay_different_and_ambiguous_ones_ambiguous(one: date, other: date) -> None:
    new = date_token(one, KEY)

    assert new != one and new.year == one.year
    assert (new.day > 12) == (one.day > 12)
    assert (new == date_token(other, KEY)) == (one == other)


def test_a_part_of_a_name_is_the_same_word_in_every_name_and_case() -> None:
    make = tokens()
    first, last = make.of("name", "Ana Souza").split()

    assert make.of("name", "ANA") == first.upper()
    assert make.of("name", "souza, ana") == f"{last.lower()}, {first.lower()}"
    assert make.of("name", "Dr. Ana M. de Souza").startswith(f"Dr. {first} ")
    assert make.of("name", "Dr. Ana M. de Souza").endswith(f" de {last}")


def test_single_letters_stay_different_in_every_script() -> None:
    make = tokens()
    made = [make.of("name", letter) for letter in "AMÉ李王Л"]

    assert len(set(made)) == len(made) and [len(token) for token in made[:2]] == [1, 1]


def test_an_address_is_masked_line_by_line_with_its_punctuation() -> None:
    make = tokens()
    whole = make.of("address", "12 Mill Lane, Flat 3\nLeeds LS1 4AP")

    assert (
        whole.split(",")[0]
        == make.of("address", "12 Mill Lane")
        == make.of("address", "12  mill lane").title().replace("  ", " ")
    )
    assert whole.split(",")[0].endswith(" Lane")
    assert "Leeds" not in whole and "LS1" not in whole and "\n" in whole


@pytest.mark.parametrize("kind", personal.KINDS)
def test_equal_values_stay_equal_under_one_key_and_different_ones_different(kind: str) -> None:
    values = sorted(set(drawn(kind, 60)))
    one, again, other = tokens(), tokens(), tokens(Key(b"o" * 32))

    made = {value: one.of(kind, value) for value in values}  # type: ignore[arg-type]
    assert {value: again.of(kind, value) for value in reversed(values)} == made  # type: ignore[arg-type]
    forms = {compact(value).casefold() for value in values}
    assert len({compact(token).casefold() for token in made.values()}) == len(forms)
    assert made != {value: other.of(kind, value) for value in values}  # type: ignore[arg-type]


def test_values_whose_draws_collide_get_tokens_of_their_own() -> None:
    make = tokens()
    codes = [f"{number:02d}" for number in range(10, 60)]

    made = [make.of("address", code) for code in codes]

    assert len(set(made)) == len(codes)
    assert all(token != code for token, code in zip(made, codes, strict=True))


@given(st.integers(-(2**63), 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_an_integer_becomes_one_of_as_many_digits(number: int) -> None:
    new = tokens().of_number("other", number)

    assert len(str(new)) == len(str(number))


def test_a_key_is_never_shown_and_comes_back_from_its_text() -> None:
    key = new_key(lambda count: bytes(range(count)))

    assert key.raw.hex() not in repr(key) and str(key.raw) not in repr(key)
    assert key_of(key_text(key)) == key
    assert key_of("a phrase that is long enough") == key_of(" a phrase that is long enough\n")
    assert key.name != key_of("a phrase that is long enough").name


def test_a_short_key_is_refused_with_a_command_that_makes_one() -> None:
    with pytest.raises(ConfigError) as raised:
        key_of("too short")
    assert "openssl" in str(raised.value.hint)


def test_draws_follow_the_key_the_purpose_the_text_and_the_attempt() -> None:
    def numbers(*of: object) -> list[int]:
        draws = Draws(*of)  # type: ignore[arg-type]
        return [draws.below(1000) for _ in range(40)]

    first = numbers(KEY, "card", "1")
    assert first == numbers(KEY, "card", "1")
    others = [
        numbers(Key(b"o" * 32), "card", "1"),
        numbers(KEY, "ip", "1"),
        numbers(KEY, "card", "2"),
        numbers(KEY, "card", "1", 1),
    ]
    assert first not in others
