"""Lists of words, as text."""

from __future__ import annotations


def listed(text: str) -> frozenset[str]:
    """Returns the words of a text."""
    return frozenset(text.split())
