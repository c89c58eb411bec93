"""Rows written by LangGraph's EncryptedSerializer: type `TYPE+aes`, AES in EAX mode.

Source: langgraph/checkpoint/serde/encrypted.py (langgraph-checkpoint 4.3.2).
"""

from __future__ import annotations

import os
from typing import Final

from agentctl.errors import DecodeError
from agentctl.records.rows import Stored

KEY_VARIABLE: Final = "LANGGRAPH_AES_KEY"
_KEY_BYTES: Final = (16, 24, 32)
_NONCE_BYTES: Final = 16
_TAG_BYTES: Final = 16


def is_encrypted(stored: Stored) -> bool:
    """Returns whether the bytes are ciphertext."""
    return "+" in stored.type


def decrypted(stored: Stored, *, key: str | bytes | None = None) -> Stored:
    """Returns the plaintext value; one that is not encrypted comes back as it is.

    Args:
        stored: Value of type `TYPE+aes`.
        key: 16, 24 or 32 bytes; None takes LANGGRAPH_AES_KEY from the environment.

    Raises:
        DecodeError: No key, a wrong key, a cipher other than aes, or no AES implementation installed.
    """
    plain_type, plus, cipher = stored.type.partition("+")
    if not plus:
        return stored
    if cipher != "aes":
        raise DecodeError(f"the value is encrypted with the cipher {cipher!r}, which is not known here")
    return Stored(plain_type, _open_eax(_key_bytes(key), stored.data))


def _key_bytes(key: str | bytes | None) -> bytes:
    given = key if key is not None else os.environ.get(KEY_VARIABLE)
    if not given:
        raise DecodeError(
            f"the value is encrypted and {KEY_VARIABLE} is not set",
            hint=f"{KEY_VARIABLE}=<the app's key> agentctl ...",
        )
    raw = given.encode() if isinstance(given, str) else given
    if len(raw) not in _KEY_BYTES:
        raise DecodeError(f"{KEY_VARIABLE} must be 16, 24 or 32 bytes long, it has {len(raw)}")
    return raw


def _open_eax(key: bytes, sealed: bytes) -> bytes:
    try:
        from Crypto.Cipher import AES
    except ImportError as error:
        raise DecodeError(
            "the value is encrypted and no AES implementation is installed", hint="pip install pycryptodome"
        ) from error
    if len(sealed) < _NONCE_BYTES + _TAG_BYTES:
        raise DecodeError("the encrypted value is cut short")
    nonce, tag = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES : _NONCE_BYTES + _TAG_BYTES]
    try:
        opened: bytes = AES.new(key, AES.MODE_EAX, nonce=nonce).decrypt_and_verify(
            sealed[_NONCE_BYTES + _TAG_BYTES :], tag
        )
    except ValueError as error:
        raise DecodeError(f"{KEY_VARIABLE} is not the key of this value, or the value is damaged") from error
    return opened
