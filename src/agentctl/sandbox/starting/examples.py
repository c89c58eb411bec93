"""What a stub answers, made from a recorded result: the same value, without secrets, shortened where it is long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from agentctl.codec.secrets import hide_secrets, hide_secrets_in, hide_secrets_in_texts
from agentctl.records.starters import StarterAnswer
from agentctl.sandbox.recordings import Recorded, Recording

MAX_CHARS: Final = 2000
_KEPT_CHARS: Final = 200
_KEPT_ITEMS: Final = 3
_ELLIPSIS: Final = "..."


def example_entry(recording: Recording, name: str) -> Recorded | None:
    """Returns the latest recorded result of a tool: one that is no error where there is one."""
    entries = [entry for entry in recording.entries if entry.name == name]
    return next((entry for entry in reversed(entries) if entry.status != "error"), entries[-1] if entries else None)


def example_of(content: object) -> tuple[object, StarterAnswer]:
    """Returns what a stub may answer with for the content of a recorded message, and how it was made."""
    value = cleaned(_value_of(content))
    if len(json.dumps(value, ensure_ascii=False, default=str)) <= MAX_CHARS:
        return value, "recorded"
    return _shortened(value), "shortened"


def cleaned(value: object) -> object:
    """Returns a value without what counts as a secret, by its name or by its shape, at any depth.

    A text that is JSON is cleaned as such, and stays as it is where nothing is hidden.
    """
    if isinstance(value, str):
        inner = _json(value)
        if inner is not None and (hidden := cleaned(inner)) != inner:
            return json.dumps(hidden, ensure_ascii=False)
        return hide_secrets(value)
    if isinstance(value, Mapping):
        return {key: cleaned(item) for key, item in hide_secrets_in(value).items()}
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    return hide_secrets_in_texts(value)


def _value_of(content: object) -> object:
    """Returns the value that a tool gave, where the message's text is certainly that value written out.

    Source: _stringify, langchain_core/tools/base.py (langchain-core 1.8.3).
    """
    if not isinstance(content, str):
        return content
    value = _json(content)
    return value if value is not None and json.dumps(value, ensure_ascii=False) == content else content


def _json(text: str) -> dict[str, object] | list[object] | None:
    """Returns the object or list that a text is as JSON, or None."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def _shortened(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= _KEPT_CHARS else value[:_KEPT_CHARS] + _ELLIPSIS
    if isinstance(value, Mapping):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value[:_KEPT_ITEMS]]
    return value
