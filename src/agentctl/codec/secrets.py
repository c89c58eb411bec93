"""What counts as a secret in metadata, configuration and texts, and hiding it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_URL_PASSWORD = re.compile(r"(?P<head>(?<=[a-z0-9+.-])://[^\s:/@]*):[^\s@/]+@", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:(?:api|access|private)[_-]?key|secret|password|passwd|pwd|token|jwt|cookie|authorization|auth"
    r"|credential)s?(?:$|[_\-.])",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_SHAPE = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abpr]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}"
    r"|[prs]k_(?:live|test)_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{35}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})\b"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----"
)

HIDDEN: Final = "***"


def hide_secrets(text: str) -> str:
    """Returns `text` with URL passwords and well-known key shapes replaced by `***`."""
    return _SECRET_SHAPE.sub(HIDDEN, _URL_PASSWORD.sub(rf"\g<head>:{HIDDEN}@", text))


def secrets_in(text: str) -> Iterator[tuple[int, int]]:
    """Yields where URL passwords and well-known key shapes begin and end."""
    for found in _URL_PASSWORD.finditer(text):
        yield found.end("head") + 1, found.end() - 1
    for found in _SECRET_SHAPE.finditer(text):
        yield found.span()


def is_secret_name(name: str) -> bool:
    """Tells whether a metadata or configuration key names a secret, in snake_case, kebab-case or camelCase."""
    return bool(_SECRET_NAME.search(_HUMP.sub("_", name)))


def hide_secrets_in(metadata: Mapping[str, object]) -> dict[str, object]:
    """Returns metadata fit to show: values under secret names hidden, secrets in text hidden, at any depth."""
    return {str(key): HIDDEN if is_secret_name(str(key)) else _shown(value) for key, value in metadata.items()}


def hide_secrets_in_texts(value: object) -> object:
    """Returns an inert value whose texts, at any depth, hide what `hide_secrets` knows."""
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, Mapping):
        return {key: hide_secrets_in_texts(item) for key, item in value.items()}
    return [hide_secrets_in_texts(item) for item in value] if isinstance(value, list | tuple) else value


def _shown(value: object) -> object:
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, Mapping):
        return hide_secrets_in(value)
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return value


def without_secrets(configuration: Mapping[str, object]) -> dict[str, object]:
    """Returns configuration fit to keep and to pass on: entries that are or hold a secret left out."""
    shown = hide_secrets_in(configuration)
    return {key: value for key, value in configuration.items() if shown[key] == value}
