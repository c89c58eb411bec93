"""Text inside text: base64 and URL encoding. It is opened, masked, and written again as it was."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{12,}={0,2}(?![A-Za-z0-9+/_=-])")
_PERCENT = re.compile(r"(?:[^\s\"'<>&=?/;#,%]|%[0-9A-Fa-f]{2})*%[0-9A-Fa-f]{2}(?:[^\s\"'<>&=?/;#,%]|%[0-9A-Fa-f]{2})*")
_UNRESERVED: Final = "!*'()-._~:@+$|^"
OPAQUE_LENGTH: Final = 512
"""Characters of base64 that holds no text, from which on it is told as bytes left alone."""


class Replacement(NamedTuple):
    """A stretch of encoded text and what stands in its place; `new` is None for bytes that were left alone."""

    start: int
    end: int
    new: str | None


def base64_in(text: str, mask: Callable[[str], str]) -> Iterator[Replacement]:
    """Yields the stretches of base64 that hold personal text, and the long ones that hold no text."""
    for found in _BASE64.finditer(text):
        written = found[0]
        inner = _opened(written)
        if inner is None:
            if len(written) >= OPAQUE_LENGTH:
                yield Replacement(*found.span(), None)
            continue
        masked = mask(inner)
        if masked != inner:
            yield Replacement(*found.span(), _sealed(masked, written))


def percent_in(text: str, mask: Callable[[str], str]) -> Iterator[Replacement]:
    """Yields the stretches of URL-encoded text that hold personal text."""
    if "%" not in text:
        return
    for found in _PERCENT.finditer(text):
        written = found[0]
        try:
            inner = unquote_to_bytes(written).decode()
        except UnicodeDecodeError:
            continue
        masked = mask(inner)
        if masked != inner:
            safe = "".join(character for character in _UNRESERVED if character in written)
            yield Replacement(*found.span(), quote(masked, safe=safe))


def _opened(written: str) -> str | None:
    bare = written.rstrip("=")
    alphabet = b"-_" if "-" in bare or "_" in bare else b"+/"
    try:
        data = base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=alphabet, validate=True)
        inner = data.decode()
    except (binascii.Error, ValueError):
        return None
    if not all(character.isprintable() or character in "\n\r\t" for character in inner):
        return None
    return inner if _sealed(inner, written) == written else None


def _sealed(inner: str, written: str) -> str:
    data = inner.encode()
    urlsafe = "-" in written or "_" in written
    sealed = (base64.urlsafe_b64encode(data) if urlsafe else base64.b64encode(data)).decode("ascii")
    return sealed if written.endswith("=") or len(written) % 4 == 0 else sealed.rstrip("=")
