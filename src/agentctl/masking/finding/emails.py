"""E-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentctl.masking.finding.hits import Hit

_ADDRESS = re.compile(r"(?<![\w.+-])\w(?:[\w.+'-]*[\w+-])?@(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}")
_NOBODY = ("git@", "hg@", "svn@")
"""Logins in addresses of repositories."""


def emails_in(text: str, name: str) -> Iterator[Hit]:
    """Finds e-mail addresses."""
    if "@" not in text:
        return
    for found in _ADDRESS.finditer(text):
        if not found[0].startswith(_NOBODY):
            yield Hit(found.start(), found.end(), "email", 0)
