"""Randomness that a key and a text determine."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import TypeVar

from agentctl.masking.keys import Key

_Item = TypeVar("_Item")


class Draws:
    """A stream of draws that is the same for the same key, purpose and text.

    Args:
        key: Without it the stream cannot be told.
        purpose: Keeps draws for different ends apart.
        text: What is drawn for.
        attempt: Another stream for the same text, counted from 0.
    """

    def __init__(self, key: Key, purpose: str, text: str, attempt: int = 0) -> None:
        self._key = key.raw
        self._seed = f"{purpose}\0{attempt}\0{text}".encode("utf-8", "surrogatepass")
        self._n_blocks = 0
        self._left = b""

    def below(self, bound: int) -> int:
        """Returns an integer from 0 to `bound` - 1; the bias is below 2**-32 for bounds up to 2**32."""
        return int.from_bytes(self._bytes(8), "big") % bound

    def one_of(self, items: Sequence[_Item]) -> _Item:
        """Returns one of the items."""
        return items[self.below(len(items))]

    def text(self, characters: str, count: int) -> str:
        """Returns a text of so many of the characters."""
        return "".join(self.one_of(characters) for _ in range(count))

    def _bytes(self, count: int) -> bytes:
        while len(self._left) < count:
            block = hmac.digest(self._key, self._seed + self._n_blocks.to_bytes(4, "big"), hashlib.sha256)
            self._n_blocks += 1
            self._left += block
        taken, self._left = self._left[:count], self._left[count:]
        return taken


def shuffled(key: Key, purpose: str, items: Sequence[str]) -> dict[str, str]:
    """Returns what each item becomes: another one of them, each by one alone."""
    order = sorted(items, key=lambda item: hmac.digest(key.raw, f"{purpose}\0{item}".encode(), hashlib.sha256))
    return dict(zip(order, [*order[1:], *order[:1]], strict=True))
