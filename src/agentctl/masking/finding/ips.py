"""IP addresses, but for those of the machine itself and versions of programs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from agentctl.masking.finding.hits import Hit, words_before

_BYTE: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?<![^/:]/){_BYTE}(?:\.{_BYTE}){{3}}(?![\w-]|\.[0-9])")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:|::)[0-9a-fA-F:]*(?:::|:[0-9a-fA-F]{1,4})(?![\w:])")
_VERSION = re.compile(r"(?:\bv|version|release|build|firmware)[ :=\"']*$", re.IGNORECASE)
_LEAST_IPV6: Final = 6
"""Characters; shorter ones are names in programs (`a::b`) more often."""


def ips_in(text: str, name: str) -> Iterator[Hit]:
    """Finds IP addresses of both versions."""
    if text.count(".") >= 3:
        for found in _IPV4.finditer(text):
            if _is_somebodys(found[0]) and not _VERSION.search(words_before(text, found.start()) or name):
                yield Hit(found.start(), found.end(), "ip", 0)
    if text.count(":") >= 2:
        for found in _IPV6.finditer(text):
            if len(found[0]) >= _LEAST_IPV6 and any(c.isdigit() for c in found[0]) and _is_somebodys(found[0]):
                yield Hit(found.start(), found.end(), "ip", 0)


def _is_somebodys(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (
        address.is_loopback or address.is_unspecified or address.is_multicast or text.startswith(("0.", "255."))
    )
