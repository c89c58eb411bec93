"""A command line's words as they may be kept: no passwords, no keys, and no more of a value than tells it apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from agentctl.codec.jsontext import dumps
from agentctl.codec.secrets import HIDDEN, hide_secrets, hide_secrets_in, is_secret_name
from agentctl.config.places import hide_password

LONGEST_WORD: Final = 500

_VALUES_HIDDEN = ("--env",)


def kept_words(argv: Sequence[str]) -> tuple[str, ...]:
    """Returns the words of a command line with secrets replaced by `***`, very long ones cut.

    Hidden are passwords in store texts, what has the shape of a key, values under secret names (`api_key=...`, also in
    JSON), and every value of `--env`.
    """
    kept: list[str] = []
    flag = ""
    for word in argv:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            kept.append(f"{name}={_value(name, value)}" if equals else name)
            flag = "" if equals else name
        else:
            kept.append(_value(flag, word))
            flag = ""
    return tuple(kept)


def _value(flag: str, text: str) -> str:
    name, equals, _ = text.partition("=")
    if equals and (flag in _VALUES_HIDDEN or is_secret_name(name)):
        return f"{name}={HIDDEN}"
    shown = hide_secrets(hide_password(_json(text)))
    return shown if len(shown) <= LONGEST_WORD else f"{shown[:LONGEST_WORD]}..."


def _json(text: str) -> str:
    """Returns JSON objects with the values under secret names hidden, also behind `NAME=`; other text as it is."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        value = json.loads(text[start:])
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict):
        return text
    hidden = hide_secrets_in(value)
    return text if hidden == value else text[:start] + dumps(hidden)
