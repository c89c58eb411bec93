"""The key of a masker: without it nobody can tell which value a token stands for, nor try values until one fits."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from agentctl.errors import ConfigError
from agentctl.records.masking import KEY_VARIABLE

LEAST_LENGTH: Final = 16
"""Characters of a key that is given as text."""
_KEY_BYTES: Final = 32
_NAME_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Key:
    """32 bytes that are never shown."""

    raw: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """A name that is the same for the same key and tells nothing about it."""
        return hmac.new(self.raw, b"name of the key", hashlib.sha256).hexdigest()[:_NAME_DIGITS]


def new_key(random_bytes: Callable[[int], bytes]) -> Key:
    """Returns a new key of the given randomness (`secrets.token_bytes`)."""
    return Key(random_bytes(_KEY_BYTES))


def key_text(key: Key) -> str:
    """Returns what is kept in a file; `key_of` gives the key back."""
    return key.raw.hex()


def key_of(text: str) -> Key:
    """Returns the key that a text stands for: that of `key_text`, or any text of somebody's choice.

    Raises:
        ConfigError: The text is too short to be a key.
    """
    text = text.strip()
    if len(text) < LEAST_LENGTH:
        raise ConfigError(
            f"a key for masking has {LEAST_LENGTH} characters or more, this one has {len(text)}",
            hint=f"{KEY_VARIABLE}=$(openssl rand -hex 32) agentctl ...",
        )
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    return Key(raw if len(raw) == _KEY_BYTES else hashlib.sha256(text.encode()).digest())
