"""Tokens as they are issued: the same for the same value, another for another one."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.schemes import scheme_of
from agentctl.masking.tokens import cards, dates, emails, ibans, ips, names, national, phones, postal, secrets
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.shapes import in_case_of, other_digits, same_shape
from agentctl.masking.tokens.writing import compact, digits_of, last_digits, written_like
from agentctl.records.masking import MaskKind

Make = Callable[[str, Key, int], str]

_ATTEMPTS: Final = 64
"""Draws for a value whose token stands for another one already; beyond them two values share a token."""


class Tokens:
    """Makes tokens; remembers those it made, so that different values do not share one.

    Args:
        key: What they are made with.
        regions: Countries whose phone numbers are known without their country code, in this order.
    """

    def __init__(self, key: Key, regions: Sequence[str]) -> None:
        self._key = key
        self._regions = tuple(regions)
        self._issued: dict[tuple[str, str], str] = {}
        self._holders: dict[tuple[str, str], str] = {}
        self._countries: dict[str, int] = {}
        self._makers: dict[MaskKind, Callable[[str], str]] = {
            "name": self._name,
            "address": self._address,
            "birth_date": self._birth_date,
            "email": self._email,
            "phone": self._phone,
            "card": lambda text: written_like(self._issue("card", digits_of(text), cards.card_token), text),
            "iban": lambda text: written_like(self._issue("iban", compact(text), ibans.iban_token), text),
            "national_id": self._national_id,
            "ip": self._ip,
            "secret": lambda text: self._issue("secret", text, secrets.secret_token),
            "other": lambda text: self._issue("other", text, self._shaped),
        }

    def of(self, kind: MaskKind, text: str) -> str:
        """Returns what a value of a kind becomes, in the value's own writing."""
        return self._makers[kind](text)

    def of_number(self, kind: MaskKind, number: int) -> int:
        """Returns what an integer of a kind becomes: another of as many digits."""
        token = digits_of(self.of(kind, str(abs(number))))
        if len(token) != len(str(abs(number))) or token.startswith("0"):
            token = self._issue("digits", str(abs(number)), self._digits)
        return int(token) if number >= 0 else -int(token)

    @property
    def n_countries(self) -> int:
        """How many numbers are remembered with their country."""
        return len(self._countries)

    def remember(self, phone: phones.Phone) -> None:
        """Keeps a number's country for where it is written without one."""
        self._countries.setdefault(phone.national, phone.country)

    def phone_of(self, text: str) -> phones.Phone | None:
        """Returns the phone number that a text is, by its country code, by one seen with it, or by the regions."""
        if text.startswith("+"):
            return phones.phone_in(text, None)
        digits = digits_of(text)
        known = digits.lstrip("0")
        if known in self._countries:
            return phones.Phone(self._countries[known], known)
        if digits.startswith("00"):
            return phones.phone_in("+" + digits[2:], None)
        tries = (phones.phone_in(text, region) for region in self._regions)
        found = next((phone for phone in tries if phone is not None), None)
        return found or (phones.phone_in("+" + digits, None) if len(digits) > _NATIONAL_DIGITS else None)

    def is_known_phone(self, digits: str) -> bool:
        """Says whether these digits were seen as a number with its country code."""
        return digits.lstrip("0") in self._countries

    def _issue(self, kind: str, normal: str, make: Make) -> str:
        token = self._issued.get((kind, normal))
        if token is None:
            for attempt in range(_ATTEMPTS):
                token = make(normal, self._key, attempt)
                if token != normal and self._holders.setdefault((kind, token), normal) == normal:
                    break
            assert token is not None
            self._issued[kind, normal] = token
        return token

    def _email(self, text: str) -> str:
        if "@" not in text:
            return self._issue("other", text, self._shaped)
        return emails.written_as(self._issue("email", text.lower(), emails.email_token), text)

    def _phone(self, text: str) -> str:
        phone = self.phone_of(text)
        if phone is None or not digits_of(text).endswith(phone.national):
            digits = digits_of(text)
            return last_digits(self._issue("digits", digits, self._digits), text) if digits else text
        token = self._issue("phone", f"{phone.country} {phone.national}", phones.phone_token)
        return last_digits(token.partition(" ")[2], text)

    def _national_id(self, text: str) -> str:
        number = compact(text)
        known = number if scheme_of(number) else scheme_form(text)
        return written_like(self._issue("national_id", known, national.national_token), text)

    def _ip(self, text: str) -> str:
        address, slash, rest = text.partition("/")
        try:
            normal = str(ipaddress.ip_address(address))
        except ValueError:
            return self._issue("other", text, self._shaped)
        return self._issue("ip", normal, ips.ip_token) + slash + rest

    def _birth_date(self, text: str) -> str:
        done: list[str] = []
        end = 0
        for found in dates.WRITTEN.finditer(text):
            written = dates.date_in(found)
            if written is not None:
                new = dates.rewritten(text, written, dates.date_token(written.day, self._key))
                stop = found.end() + len(new) - len(text)
                done += [text[end : found.start()], new[found.start() : stop]]
                end = found.end()
        return "".join([*done, text[end:]]) if done else self._issue("other", text, self._shaped)

    def _name(self, text: str) -> str:
        replaced = names.PART.sub(lambda found: self._part(found[0]), text)
        return names.DIGITS.sub(lambda found: names.digits_token(found[0], self._key), replaced)

    def _part(self, part: str) -> str:
        if names.is_kept(part):
            return part
        return names.written_as(
            self._issue("name", unicodedata.normalize("NFC", part.casefold()).replace("’", "'"), names.part_token), part
        )

    def _address(self, text: str) -> str:
        return "".join(
            piece if number % 2 else self._segment(piece) for number, piece in enumerate(_SEGMENTS.split(text))
        )

    def _segment(self, text: str) -> str:
        words = tuple(found.casefold() for found in postal.WORD.findall(text))
        if all(postal.is_kept(word) for word in words):
            return text
        normal = " ".join(words)
        token = self._issue("address", normal, lambda n, key, i: " ".join(postal.segment_tokens(words, key, i)))
        new = iter(token.split(" "))
        return postal.WORD.sub(lambda found: in_case_of(next(new), found[0]), text)

    @staticmethod
    def _digits(digits: str, key: Key, attempt: int) -> str:
        return other_digits(Draws(key, "digits", digits, attempt), digits)

    @staticmethod
    def _shaped(text: str, key: Key, attempt: int) -> str:
        return same_shape(Draws(key, "other", text, attempt), text)


_SEGMENTS = re.compile(r"([,;\n|]+)")
_NATIONAL_DIGITS: Final = 10
"""More digits than that may begin with a country code that has no +."""


def scheme_form(text: str) -> str:
    """Returns a number with a sign that belongs to it (Finland's century), else without any."""
    signed = text.strip().upper()
    return signed if scheme_of(signed) else compact(text)
