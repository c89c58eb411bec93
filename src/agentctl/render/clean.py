"""Makes stored text safe to show: no control bytes, no escape sequences."""

from __future__ import annotations

import re

from agentctl.codec.jsontext import MISLEADING

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # operating system commands: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)"  # device control and other strings
    r"|[\x1b]\[[0-?]*[ -/]*[@-~]?"  # control sequences
    r"|\x9b[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(rf"[\x00-\x08\x0b-\x1f{MISLEADING}]")


def clean(text: str, *, keep_newlines: bool = False) -> str:
    """Returns `text` without escape sequences and control characters.

    Tabs and newlines become single spaces, unless `keep_newlines`, which keeps both. Other control characters, lone
    surrogates, direction marks and invisible characters show as U+FFFD, so that nobody is misled by what is not there.
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


def cut(text: str, width: int) -> str:
    """Returns one cleaned line of at most `width` characters; a cut one ends in `...`."""
    text = clean(text)
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."
