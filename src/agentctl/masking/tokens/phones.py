"""Phone numbers: another number of the same country and length that could be one, in the same writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.shapes import other_digits

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber

_TRIES: Final = 400
_FIRST_TRIES: Final = 200
_AREA_DIGITS: Final = 3
_WORLD: Final = "001"
"""The region of numbers that belong to no country."""


class Phone(NamedTuple):
    """A number as its plan has it: country code, and the digits after it without a leading zero."""

    country: int
    national: str


def phone_in(text: str, region: str | None) -> Phone | None:
    """Returns the number that a text is, or None where it is none that could be assigned.

    Args:
        text: One number, in any writing.
        region: Country (ISO 3166) whose way of writing it is; None for a number with its country code.
    """
    import phonenumbers

    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    valid = phonenumbers.is_valid_number_for_region(number, region) if region else phonenumbers.is_valid_number(number)
    if not valid or number.country_code is None:
        return None
    return Phone(number.country_code, phonenumbers.national_significant_number(number))


def phone_token(number: str, key: Key, attempt: int) -> str:
    """Returns the token of a number, `COUNTRY NATIONAL`, in the same form."""
    country, _, national = number.partition(" ")
    return f"{country} {_national_token(Phone(int(country), national), key, attempt)}"


def _national_token(phone: Phone, key: Key, attempt: int) -> str:
    """Returns other digits of the same plan, as many; where none are found, those after the area change alone.

    The draw depends on the digits, not on the country, so that a number with and without its country code mostly
    becomes the same.
    """
    import phonenumbers

    draws = Draws(key, "phone", phone.national, attempt)
    regions = phonenumbers.region_codes_for_country_code(phone.country)
    home = phonenumbers.region_code_for_number(_number(phone.country, phone.national))
    drawn = phone.national
    for tries in range(_TRIES):
        drawn = other_digits(draws, phone.national)
        if tries >= _FIRST_TRIES:
            drawn = phone.national[:_AREA_DIGITS] + drawn[_AREA_DIGITS:]
        number = _number(phone.country, drawn)
        region = home if home and home != _WORLD else (regions or (_WORLD,))[0]
        if drawn != phone.national and phonenumbers.is_valid_number_for_region(number, region):
            return drawn
    return drawn


def _number(country: int, national: str) -> PhoneNumber:
    import phonenumbers

    zeros = len(national) - len(national.lstrip("0"))
    return phonenumbers.PhoneNumber(
        country_code=country,
        national_number=int(national),
        italian_leading_zero=True if zeros else None,
        number_of_leading_zeros=zeros if zeros > 1 else None,
    )
