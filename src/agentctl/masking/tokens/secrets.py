"""Secrets: one form for all."""

from __future__ import annotations

from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws

PREFIX: Final = "masked-secret-"
_LENGTH: Final = 16


def secret_token(secret: str, key: Key, attempt: int) -> str:
    """Returns the token of a secret."""
    return PREFIX + Draws(key, "secret", secret, attempt).text("0123456789abcdef", _LENGTH)
