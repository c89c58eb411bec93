"""Makes stored text safe to show: no control bytes, no escape sequences, no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # operating system commands: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)"  # device control and other strings
    r"|[\x1b]\[[0-?]*[ -/]*[@-~]?"  # control sequences
    r"|\x9b[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff]"
)
_URL_PASSWORD = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]*://[^\s:/@]*):[^\s@/]+@", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:(?:api|access|private)[_-]?key|secret|password|passwd|pwd|token|jwt|cookie|authorization|auth"
    r"|credential)s?(?:$|[_\-.])",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_SHAPE = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abpr]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16})\b"
)

HIDDEN = "***"


def clean(text: str, *, keep_newlines: bool = False) -> str:
    """Returns `text` without escape sequences and control characters.

    Tabs and newlines become single spaces, unless `keep_newlines`, which keeps both. Other control characters, lone
    surrogates and invisible direction marks show as U+FFFD, so that nobody is misled by what is not there.
    """
    if text.isprintable():  # then there is nothing of the kind, and long lists are printed much faster
        return text
    text = _CONTROLS.sub("\ufffd", _ESCAPES.sub("", text.replace("\r\n", "\n")))
    if keep_newlines:
        return text
    return " ".join(text.split()) if ("\n" in text or "\t" in text) else text


def without_controls(text: str) -> str:
    """Returns text of the same length in which no character is left that a terminal would obey."""
    return _CONTROLS.sub("\ufffd", text)


def hide_secrets(text: str) -> str:
    """Returns `text` with URL passwords and well-known key shapes replaced by `***`."""
    return _SECRET_SHAPE.sub(HIDDEN, _URL_PASSWORD.sub(rf"\g<head>:{HIDDEN}@", text))


def is_secret_name(name: str) -> bool:
    """Tells whether a metadata or configuration key names a secret, in snake_case, kebab-case or camelCase."""
    return bool(_SECRET_NAME.search(_HUMP.sub("_", name)))


def clean_metadata(metadata: Mapping[str, object]) -> dict[str, object]:
    """Returns metadata fit to show: values under secret names hidden, secrets in text hidden, at any depth."""
    return {str(key): HIDDEN if is_secret_name(str(key)) else _clean_value(value) for key, value in metadata.items()}


def _clean_value(value: object) -> object:
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, Mapping):
        return clean_metadata(value)
    if isinstance(value, list | tuple):
        return [_clean_value(item) for item in value]
    return value


def cut(text: str, width: int) -> str:
    """Returns one cleaned line of at most `width` characters; a cut one ends in `...`."""
    text = clean(text)
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."
