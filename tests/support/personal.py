"""Personal data that nobody has, and texts that hold it: made from lists that the product does not read.

`samples` are drawn with a seed; of each it is known what must not be left of it (`secrets`), and in which form it was
given. `HARMLESS` are texts and values in which nothing is personal.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


GIVEN = words(
    """
    Anneliese Bartholomäus Caoimhe Dagfinn Esperanza Fionnuala Gudrun Hyacinth Ioannis Joaquín Katarzyna Leopold
    Mireille Ngozi Oluwaseun Priyanka Quentin Rosalind Siobhán Thandiwe Ulrike Venkatesh Wilhelmina Xochitl Yevgenia
    Zoltán Meenakshi Ramesh Chukwudi Anjali Björn Aurélie Tomasz Henrike
    """
)
FAMILY = words(
    """
    Abernathy Bjørnstad Castellanos Dlamini Eichelberger Fitzwilliam Guðmundsson Hargreaves Iyengar Janowski
    Krishnamurthy Lindqvist Montgomery Nwosu O'Sullivan Papadopoulos Quispe Rasmussen Subramanian Takahashi
    Underhill Vandenberghe Wojciechowska Xenakis Yılmaz Zimmermann Ramanathan Beauchamp Delacroix Etxeberria
    """
)
STREETS = lines(
    """
    {n} Thistledown Crescent
    {n} Ravenscourt Road, Apt {m}
    Kastanienallee {n}
    {n} rue des Lavandières
    Calle Almendro {n}, 3ºB
    {n} Old Mill Turnpike
    Via Garofalo {n}
    Rua das Hortênsias, {n}
    Flat {m}, {n} Banjara Hills Road
    {n} Karlavägen
    """
)
TOWNS = words(
    """
    Wetherby Grünstadt Valdemoro Coimbatore Lørenskog Piracicaba Montélimar Poughkeepsie
    """
)
DOMAINS = words(
    """
    fastmail.com posteo.de krishnamurthy-family.in uol.com.br orange.fr sub.mail.co.uk proton.me
    """
)
MONTHS = words("January February March April May June July August September October November December")
IBAN_FORMS = {
    "DE": "nnnnnnnnnnnnnnnnnn",
    "GB": "aaaannnnnnnnnnnnnn",
    "NL": "aaaannnnnnnnnn",
    "PL": "nnnnnnnnnnnnnnnnnnnnnnnn",
    "CH": "nnnnnccccccccccccc"[:17],
    "AT": "nnnnnnnnnnnnnnnn",
    "SE": "nnnnnnnnnnnnnnnnnnnn",
}
PHONE_REGIONS = ("US", "IN", "GB", "DE", "FR", "ES", "IT", "BR", "MX", "AU", "NG", "JP", "ZA", "PL", "SE", "AE")
HOME_REGIONS = ("US", "IN", "GB", "DE", "FR", "ES", "IT", "BR", "MX", "AU")
CARD_STARTS = (
    ("4539", 16),
    ("4716", 16),
    ("5214", 16),
    ("5587", 16),
    ("2249", 16),
    ("3714", 15),
    ("6011", 16),
    ("3566", 16),
)

SENTENCES = {
    "email": (
        "Please write to {v} about it.",
        "I used {v}, not the other one",
        "<mailto:{v}>",
        "cc: {v};",
        "E-Mail={v}&n=1",
        "contact:{v}",
    ),
    "phone": (
        "Please call me at {v} tomorrow.",
        "My phone is {v}.",
        "Mobile: {v}",
        "you can reach me on {v}, thanks",
        "my number is {v}",
        "text {v} when it ships",
        "you have {v} on file",
        "WhatsApp {v}?",
    ),
    "card": (
        "Charge {v} please.",
        "card {v} exp 04/29",
        "It was paid with {v}, I think",
        "Visa {v}",
        "pay w/ {v} pls",
        "Amex({v})",
    ),
    "iban": ("Refund to {v} please.", "IBAN: {v}", "my account {v}, thanks", "acct={v};"),
    "national_id": (
        "{w} {v}",
        "My {w} number is {v}.",
        "{w}: {v}, as on the form",
        "Here is the {w} you asked for: {v}",
        "{v} ({w})",
        "{v} is my {w}",
        "{w}-{v}",
    ),
    "ip": ("Login from {v} was refused.", "client {v} - - GET /", "[{v}]:", "addr={v}", "{v}/32 is blocked"),
    "name": (
        "Hi, my name is {v} and I have a question.",
        "Dear {v},\nyour order is late.",
        "Best regards,\n{v}",
        "Name: {v}",
        "Passenger: {v}",
        "Customer {v} called again.",
        "This is {v} from Leeds.",
        "it is for my wife {v}",
        "{v} here, where is my parcel?",
        "Please refund {v}.",
    ),
    "address": (
        "Address: {v}",
        "Shipping address: {v}\nThanks",
        "{{'street': '{v}'}}",
        "my new address is {v}",
        "I live at {v}",
        "I moved to {v}.",
        "ship it to {v} please",
    ),
    "birth_date": (
        "I was born on {v}.",
        "DOB: {v}",
        "date of birth {v}, as on my passport",
        "{v} is my birthday",
        "aged 41, b. {v}",
    ),
    "secret": ("the key is {v}", "password: {v}", "postgresql://app:{v}@db/x", "export TOKEN={v}"),
}
"""Sentences in which something beside the value tells what it is, to people at least."""
FIELDS = {
    "email": ("email", "contactEmail", "customer.e_mail"),
    "phone": ("phone", "mobile_number", "contact.tel", "telefono"),
    "card": ("card_number", "payment.creditCardNumber"),
    "iban": ("iban", "bank_account.iban"),
    "national_id": ("ssn", "aadhaar_number", "kyc.nationalId", "tax_id", "passport_number"),
    "ip": ("ip", "client_ip"),
    "name": ("full_name", "customer.name", "customerName", "passengers[].name", "cardholder_name", "nombre_completo"),
    "address": ("address", "shipping.street", "billing_address.line1", "Anschrift"),
    "birth_date": ("dob", "dateOfBirth", "birth_date", "Geburtsdatum"),
    "secret": ("password", "api_key", "client_secret"),
}
KINDS = tuple(FIELDS)

HARMLESS = (
    "Order ORD-1182 was delivered on 2026-11-28 at 14:05:33.",
    "order 4539578763621486 is late",
    "Invoice no. 123-45-6789 is paid.",
    "The total is 1,234.50 USD, of which 210.00 is tax.",
    "EUR 12.345.678,90 in 2025 and 9876543210 in 2026",
    "Tracking number 1Z999AA10123456784, also 9400110200881234567890.",
    "Ticket 9876543210 has priority 2.",
    "booking reference QX7L9P, seat 14C, flight LH 1234",
    "run 01a22e29-58a8-7614-b6df-b16d83fe8f63 ended in 12034567 ms",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Version 10.4.2.1 of the client, Chrome/120.0.0.0, v1.2.3.4",
    "ISBN 978-3-16-148410-0 costs 12.99",
    "2026-11-30T03:12:00.000000Z 2026-11-30 03:12",
    "lat 52.520008, lon 13.404954",
    "SKU 100-200-3000, model A1234B",
    "node tools called lookup_order and get_policy, step 17 of 40",
    "The refund policy says: within 30 days, unless the item is damaged.",
    "Dear Customer,\nthank you for your order.\nBest regards,\nThe Support Team",
    "I am Very sorry to hear that. This is Great!",
    "You may pay the Bill in May; Mark it as paid.",
    "std::vector<int> a::b 12:30:45 ::1 127.0.0.1",
    "status: delivered, auth: required, token_type: bearer, total_tokens: 1204",
    "Flights to Paris and London on 12 May 2026 from 129 EUR",
    "http://localhost:8000/orders/10000000001?page=2",
    "population 1 234 567 890; 1234567890123 rows; 0.1234567890123",
    "call_8f2b9c1d4e5f6071 toolu_01A09q90qw90lq917835lq9",
    "Address the issue: contact support: see the help page",
    "Name: Widget, size: 12, colour: red",
    "Q3 2026: 415 555 items sold, 2671 returned",
    "Phone support is open 9-17. Mobile app 12.1 is out.",
    "code 482913 expires in 10 minutes",
    "EAN 4006381333931, GTIN 00012345600012",
    {"order_id": "4539578763621486", "amount": 1234.5, "status": "lost"},
    {"name": "lookup_order", "args": {"order_id": "A1"}, "id": "call_1", "type": "tool_call"},
    {"product": {"name": "Thistledown Duvet", "sku": 4006381333931}, "quantity": 3},
    {"file_name": "report.pdf", "created_at": "2026-11-30T03:12:00Z", "size": 123456789012},
    {"usage_metadata": {"input_tokens": 1204, "output_tokens": 88, "total_tokens": 1292}},
    {"city": "Paris", "country": "FR", "state": "pending", "currency": "EUR"},
    {"model_name": "gpt-4.1-mini", "finish_reason": "stop", "system_fingerprint": "fp_44709d6fcb"},
    {"timestamp": 1764472320123, "checkpoint_id": "1f0cd2a4-6b1e-6f0a-8001-5b7a4b0c9d2e", "step": 3},
    {"phone": "n/a", "email": None, "full_name": "", "address": "unknown", "password": ""},
)


BARE = {
    "email": ("{v}",),
    "phone": ("{v}", "ok {v} then", "it was {v} I believe"),
    "card": ("{v}", "that one: {v}", "{v} and not the other"),
    "iban": ("{v}", "that one: {v}"),
    "national_id": ("{v}", "that one: {v}", "{v} is mine"),
    "ip": ("{v}", "from {v} I think"),
    "name": ("{v} ordered it yesterday", "It was sent to {v} on Monday", "ask {v}"),
    "address": ("It was sent to {v} on Monday", "{v} is where it went"),
    "birth_date": ("{v}", "since {v} or so"),
    "secret": ("{v}", "curl -H 'x: {v}'"),
}
"""Sentences in which nothing tells what the value is but the value itself."""

FORMS = ("field", "text", "repeated", "bare")


def harmless_numbers(seed: int, count: int) -> Iterator[str]:
    """Yields texts with numbers that are nobody's, in neutral words."""
    draw = random.Random(seed)
    for _ in range(count):
        yield draw.choice(
            (
                f"value {draw.randint(10**7, 10**9)}",
                f"row {draw.randint(10**9, 10**16)} of {draw.randint(10**9, 10**12)}",
                f"({draw.randint(10**8, 10**11)})",
                f"{draw.randint(1, 999)},{draw.randint(100, 999)},{draw.randint(100, 999)}.{draw.randint(10, 99)} EUR",
                f"{draw.randint(1, 99)}.{draw.randint(100, 999)}.{draw.randint(100, 999)},{draw.randint(10, 99)} EUR",
                f"order {draw.randint(100, 999)}-{draw.randint(1000000, 9999999)}-{draw.randint(1000000, 9999999)}",
                f"{draw.randint(1000, 9999)} {draw.randint(1000, 9999)} {draw.randint(1000, 9999)} units",
                f"at {draw.randint(16 * 10**8, 19 * 10**8)} and {draw.randint(16 * 10**11, 19 * 10**11)}",
                f"hash {draw.getrandbits(128):032x} {draw.getrandbits(64):x}",
                f"SKU-{draw.randint(10**5, 10**9)}-{draw.choice('ABCDEF')}",
                f"size {draw.randint(100, 9999)}x{draw.randint(100, 9999)}, {draw.random():.12f}",
                f"on 20{draw.randint(20, 26)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)} at 1{draw.randint(0, 9)}:30",
            )
        )


@dataclass(frozen=True)
class Sample:
    """A value with something personal in it.

    `form` is where: in a `field` that tells, in a `text` that tells, `repeated` in a text after a field told it, or
    `bare` in a text that does not tell.
    """

    kind: str
    form: str
    value: Any
    secrets: tuple[str, ...]


def samples(seed: int, count: int) -> Iterator[Sample]:
    """Yields `count` samples of every kind and form."""
    draw = random.Random(seed)
    for kind in KINDS:
        for _ in range(count):
            yield in_field(draw, kind)
            yield in_text(draw, kind, "text", SENTENCES)
            yield in_text(draw, kind, "bare", BARE)
        for _ in range(count if kind in ("name", "address") else 0):
            yield repeated(draw, kind)


def in_field(draw: random.Random, kind: str) -> Sample:
    value = MAKERS[kind](draw)
    if kind == "national_id":
        value = value[1]
    return Sample(kind, "field", nested(draw.choice(FIELDS[kind]), value), parts_of(kind, value))


def in_text(draw: random.Random, kind: str, form: str, sentences: Mapping[str, Sequence[str]]) -> Sample:
    made = MAKERS[kind](draw)
    word, value = made if kind == "national_id" else ("", made)
    text = draw.choice(sentences[kind]).format(v=value, w=word)
    return Sample(kind, form, {"messages": [{"type": "human", "content": text}]}, parts_of(kind, value))


def repeated(draw: random.Random, kind: str) -> Sample:
    value = MAKERS[kind](draw)
    said = draw.choice(said_of(kind, value))
    text = draw.choice(("Is this for {v}?", "I told you: {v}.", "{v} it is", '("{v}")', "as {v} said, no")).format(
        v=said
    )
    known = nested(draw.choice(FIELDS[kind]), value)
    return Sample(kind, "repeated", {"known": known, "messages": [text]}, (*parts_of(kind, value), said))


def said_of(kind: str, value: str) -> tuple[str, ...]:
    """How people write later what a field holds: a name in part or in another case, an address by its first line."""
    if kind == "name":
        given, family = value.split()
        return (value, value.upper(), value.lower(), given, family, f"{family}, {given}", f"Mr {family}")
    return (value, value.split(", ")[0], value.lower(), value.replace(", ", "\n"))


def nested(path: str, value: object) -> dict[str, Any]:
    made: Any = value
    for key in reversed(path.split(".")):
        made = {key.removesuffix("[]"): [made] if key.endswith("[]") else made}
    return dict(made)


def parts_of(kind: str, value: str) -> tuple[str, ...]:
    """What must not be left: the whole value; of a name every word of it, of an address what only it has."""
    if kind == "name":
        return (value, *value.split())
    if kind == "address":
        return (value, *(word for word in re.findall(r"\w{6,}", value) if word not in ("Crescent", "Turnpike")))
    return (value,)


def name(draw: random.Random) -> str:
    return f"{draw.choice(GIVEN)} {draw.choice(FAMILY)}"


def address(draw: random.Random) -> str:
    street = draw.choice(STREETS).format(n=draw.randint(2, 480), m=draw.randint(1, 40))
    return draw.choice((street, f"{street}, {draw.randint(10000, 99999)} {draw.choice(TOWNS)}"))


def email(draw: random.Random) -> str:
    local = draw.choice(("{g}.{f}", "{f}{n}", "{g}_{f}", "{g}+shop", "{f}-{n}")).format(
        g=draw.choice(GIVEN).lower(), f=draw.choice(FAMILY).lower().replace("'", ""), n=draw.randint(1, 99)
    )
    return f"{local}@{draw.choice(DOMAINS)}"


def phone(draw: random.Random) -> str:
    import phonenumbers
    from phonenumbers import PhoneNumberFormat as Form

    form = draw.choice((Form.E164, Form.INTERNATIONAL, Form.NATIONAL))
    region = draw.choice(HOME_REGIONS if form == Form.NATIONAL else PHONE_REGIONS)
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    while True:
        national = str(example.national_number)
        drawn = national[:-5] + "".join(draw.choice("0123456789") for _ in range(5))
        number = phonenumbers.PhoneNumber(country_code=example.country_code, national_number=int(drawn))
        if phonenumbers.is_valid_number(number):
            return str(phonenumbers.format_number(number, form))


def card(draw: random.Random) -> str:
    from stdnum import luhn

    start, length = draw.choice(CARD_STARTS)
    body = start + "".join(draw.choice("0123456789") for _ in range(length - len(start) - 1))
    digits = body + luhn.calc_check_digit(body)
    cuts = (4, 10) if length == 15 else (4, 8, 12)
    ends = [0, *cuts, length]
    return draw.choice(("", " ", "-")).join(digits[a:b] for a, b in pairwise(ends))


def iban(draw: random.Random) -> str:
    from stdnum import iban as rules

    country = draw.choice(list(IBAN_FORMS))
    body = "".join(draw.choice("0123456789" if c != "a" else "ABCDEFGHKLMNPRSTUVWX") for c in IBAN_FORMS[country])
    number = country + rules.calc_check_digits(f"{country}00{body}") + body
    return draw.choice((number, rules.format(number), rules.format(number, "-"), number.lower()))


def national_id(draw: random.Random) -> tuple[str, str]:
    """What it is called, and a number."""
    return draw.choice((aadhaar, pan, ssn, cpf, dni, nino, pesel, sin))(draw)


def digits(draw: random.Random, count: int) -> str:
    return "".join(draw.choice("0123456789") for _ in range(count))


def aadhaar(draw: random.Random) -> tuple[str, str]:
    from stdnum import verhoeff
    from stdnum.in_ import aadhaar as rules

    while True:
        body = draw.choice("23456789") + digits(draw, 10)
        number = body + verhoeff.calc_check_digit(body)
        if rules.is_valid(number):
            return "Aadhaar", draw.choice((number, rules.format(number), rules.format(number).replace(" ", "-")))


def pan(draw: random.Random) -> tuple[str, str]:
    letters = "ABCDEFGHJKLMNPRSTUVWX"
    return "PAN", f"{''.join(draw.choice(letters) for _ in range(3))}P{draw.choice(letters)}{draw.randint(1000, 9999)}K"


def ssn(draw: random.Random) -> tuple[str, str]:
    area = draw.choice([n for n in range(100, 890) if n != 666])
    return draw.choice(("SSN", "social security")), f"{area}-{draw.randint(10, 99)}-{draw.randint(1000, 9999)}"


def cpf(draw: random.Random) -> tuple[str, str]:
    from stdnum.br import cpf as rules

    while True:
        number = digits(draw, 11)
        for tail in range(100):
            tried = f"{number[:9]}{tail:02d}"
            if rules.is_valid(tried):
                return "CPF", draw.choice((tried, rules.format(tried)))


def dni(draw: random.Random) -> tuple[str, str]:
    from stdnum.es import dni as rules

    body = digits(draw, 8)
    return "DNI", body + draw.choice(("", "-")) + rules.calc_check_digit(body)


def nino(draw: random.Random) -> tuple[str, str]:
    body = " ".join(digits(draw, 2) for _ in range(3))
    text = f"{draw.choice(('AB', 'JK', 'SP', 'WX'))} {body} {draw.choice('ABCD')}"
    return "National Insurance", draw.choice((text, text.replace(" ", "")))


def pesel(draw: random.Random) -> tuple[str, str]:
    from stdnum.pl import pesel as rules

    body = f"{draw.randint(50, 99):02d}{draw.randint(1, 12):02d}{draw.randint(1, 28):02d}{digits(draw, 4)}"
    return "PESEL", body + rules.calc_check_digit(body)


def sin(draw: random.Random) -> tuple[str, str]:
    from stdnum import luhn

    body = draw.choice("1234567") + digits(draw, 7)
    number = body + luhn.calc_check_digit(body)
    return "SIN", draw.choice((number, f"{number[:3]} {number[3:6]} {number[6:]}"))


def ip(draw: random.Random) -> str:
    if draw.random() < 0.3:
        return f"2a01:{draw.randint(16, 9999):x}:{draw.randint(16, 9999):x}::{draw.randint(16, 9999):x}"
    return f"{draw.choice((5, 81, 103, 188, 212))}.{draw.randint(1, 254)}.{draw.randint(0, 254)}.{draw.randint(1, 254)}"


def birth_date(draw: random.Random) -> str:
    year, month, day = draw.randint(1940, 2007), draw.randint(1, 12), draw.randint(1, 28)
    return draw.choice(
        (
            f"{year}-{month:02d}-{day:02d}",
            f"{day:02d}/{month:02d}/{year}",
            f"{day}.{month}.{year}",
            f"{day} {MONTHS[month - 1]} {year}",
            f"{MONTHS[month - 1][:3]} {day}, {year}",
        )
    )


def secret(draw: random.Random) -> str:
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789"
    start = draw.choice(("sk-", "ghp_", "sk_live_"))
    return start + "".join(draw.choice(letters) for _ in range(30))


MAKERS: dict[str, Callable[[random.Random], Any]] = {
    "email": email,
    "phone": phone,
    "card": card,
    "iban": iban,
    "national_id": national_id,
    "ip": ip,
    "name": name,
    "address": address,
    "birth_date": birth_date,
    "secret": secret,
}
