"""Inert values as Python source: in double quotes, broken over lines as formatters do it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

WIDTH: Final = 88
_INDENT: Final = "    "


def quoted(text: str) -> str:
    """Returns a text as a Python literal in double quotes; in single ones where that saves escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escaped(char, quote) for char in text) + quote


def literal(value: object, indent: str = "", *, used: int = 0) -> str:
    """Returns a value as a Python literal whose lines keep within `WIDTH` where they can.

    Args:
        value: An inert value; what is none of text, number, truth, list and mapping becomes its text.
        indent: Indentation of the line that the literal begins in.
        used: Characters of that line beside the literal.
    """
    flat = _flat(value)
    if len(indent) + used + len(flat) <= WIDTH:
        return flat
    inner = indent + _INDENT
    if isinstance(value, str):
        parts = "\n".join(inner + quoted(part) for part in _pieces(value, WIDTH - len(inner) - 2))
        return f"(\n{parts}\n{indent})" if "\n" in parts else flat
    if isinstance(value, Mapping) and value:
        lines = [
            f"{inner}{key}: {literal(item, inner, used=len(key) + 3)},"
            for key, item in ((quoted(str(key)), item) for key, item in value.items())
        ]
        return "\n".join(("{", *lines, f"{indent}}}"))
    if isinstance(value, list) and value:
        return "\n".join(("[", *(f"{inner}{literal(item, inner, used=1)}," for item in value), f"{indent}]"))
    return flat


def _flat(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(str(key))}: {_flat(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flat, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({quoted(repr(value))})"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return quoted(json.dumps(value, default=str))


def _pieces(text: str, width: int) -> list[str]:
    """Returns a text in parts whose literals are at most `width` wide, broken after spaces where there are any."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end, size = start, 2
        quote = "'" if text.count('"') > text.count("'") else '"'
        while end < len(text) and size + len(_escaped(text[end], quote)) <= width:
            size += len(_escaped(text[end], quote))
            end += 1
        space = text.rfind(" ", start, end)
        if end < len(text) and space > start:
            end = space + 1
        end = max(end, start + 1)
        pieces.append(text[start:end])
        start = end
    return pieces


def _escaped(char: str, quote: str) -> str:
    if char in ("\\", quote):
        return "\\" + char
    return char if char.isprintable() else repr(char)[1:-1]
