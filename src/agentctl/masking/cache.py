"""What is remembered because it comes again in every checkpoint; memory stays bounded."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

_ENTRY_WEIGHT: Final = 200
"""Bytes that an entry takes besides its contents, about."""


class Cache(Generic[_Key, _Value]):
    """Answers by question; forgets all of them when they weigh too much.

    Args:
        n_bytes: How much they may weigh.
    """

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes
        self._weight = 0
        self._entries: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        """Returns the answer, or None."""
        return self._entries.get(key)

    def put(self, key: _Key, value: _Value, weight: int) -> None:
        """Keeps an answer that weighs so many bytes."""
        self._weight += weight + _ENTRY_WEIGHT
        if self._weight > self._n_bytes:
            self.clear()
            self._weight = weight + _ENTRY_WEIGHT
        self._entries[key] = value

    def clear(self) -> None:
        """Forgets all of them."""
        self._entries.clear()
        self._weight = 0
