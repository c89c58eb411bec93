"""The form of a log's lines: each holds the hash of the line before it, and its own at its end.

    {"n": 7, "prev": "<64 hex digits>", ..., "hash": "<64 hex digits>"}

The hash is SHA-256 of the line's bytes up to `, "hash"`. It covers `prev`, so a line fits one predecessor alone, and
every byte, so that nothing in a line can change, not even a blank.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agentctl.codec.jsontext import dumps

START: Final = "0" * 64
"""What the first line has in place of its predecessor's hash."""

_SEALED = re.compile(rb'(?P<body>\{.*), "hash": "(?P<hash>[0-9a-f]{64})"\}', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was read. `fits` tells whether its hash is that of its bytes."""

    n: int
    prev: str
    hash: str
    fits: bool
    fields: Mapping[str, object]


def seal(n: int, prev: str, fields: Mapping[str, object]) -> tuple[bytes, str]:
    """Returns a line without its end, and its hash.

    Args:
        n: Its number in the log, from 1.
        prev: Hash of the line before it; `START` for the first.
        fields: What it says.
    """
    body = dumps({"n": n, "prev": prev, **fields}).removesuffix("}").encode()
    found = hashlib.sha256(body).hexdigest()
    return body + f', "hash": "{found}"}}'.encode(), found


def read_line(text: bytes) -> Line | None:
    """Returns a line without its end as a record, or None where it is none of this form."""
    match = _SEALED.fullmatch(text)
    if match is None:
        return None
    try:
        fields = json.loads(match["body"] + b"}")
        n, prev = fields.pop("n"), fields.pop("prev")
    except (ValueError, KeyError, RecursionError):
        return None
    if not isinstance(n, int) or not isinstance(prev, str):
        return None
    found = match["hash"].decode()
    return Line(n, prev, found, hashlib.sha256(match["body"]).hexdigest() == found, fields)
