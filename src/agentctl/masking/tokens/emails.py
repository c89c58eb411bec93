"""E-mail addresses: the part before the @ and the domain each become a token, below example.com.

Upper and lower case make no difference to what an address becomes, only to how it is written: the token of an address
in lower case is the token in lower case. A tag (`+shop`) becomes a tag, behind the token of the address without it.

Source: RFC 2606, section 3 (example.com belongs to nobody).
"""

from __future__ import annotations

from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws
from agentctl.masking.tokens.shapes import LETTERS

DOMAIN: Final = "example.com"
_FIRST: Final = LETTERS.lower()
_REST: Final = _FIRST + "0123456789"
_LOCAL_LENGTH: Final = 10
_DOMAIN_LENGTH: Final = 7
_TAG_LENGTH: Final = 5


def email_token(address: str, key: Key, attempt: int) -> str:
    """Returns the token of an address in lower case."""
    local, _, domain = address.rpartition("@")
    base, plus, tag = local.partition("+")
    user = _word(key, "user", f"{base}@{domain}", _LOCAL_LENGTH, attempt)
    site = _word(key, "site", domain, _DOMAIN_LENGTH, 0)
    return f"{user}{plus}{_word(key, 'tag', tag, _TAG_LENGTH, 0) if tag else ''}@{site}.{DOMAIN}"


def written_as(token: str, address: str) -> str:
    """Returns a token in capitals, with one capital, or in lower case, as the address is written."""
    if address == address.lower():
        return token
    return token.upper() if address == address.upper() else token[0].upper() + token[1:]


def _word(key: Key, purpose: str, text: str, length: int, attempt: int) -> str:
    draws = Draws(key, purpose, text, attempt)
    return draws.text(_FIRST, 1) + draws.text(_REST, length - 1)
