"""Amounts: decimal text with two places in state and calls, `Decimal` where they are reckoned with."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

_CENT = Decimal("0.01")


def amount(text: object) -> Decimal:
    """Reads an amount; '' and None are nothing."""
    return Decimal(str(text or 0)).quantize(_CENT)


def total(texts: Iterable[object]) -> Decimal:
    """Adds amounts up."""
    return sum((amount(text) for text in texts), Decimal(0)).quantize(_CENT)


def text(value: Decimal) -> str:
    """Writes an amount, a negative one with its sign."""
    return f"{value:.2f}"
