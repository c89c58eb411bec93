"""Rows written by LangGraph's EncryptedSerializer: type `TYPE+aes`, AES in EAX mode.

Source: langgraph/checkpoint/serde/encrypted.py (langgraph-checkpoint 4.3.2).
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Final

from agentctl.errors import DecodeError
from agentctl.records.rows import Large, Stored

KEY_VARIABLE: Final = "LANGGRAPH_AES_KEY"
_KEY_BYTES: Final = (16, 24, 32)
_NONCE_BYTES: Final = 16
_TAG_BYTES: Final = 16


def is_encrypted(stored: Stored | Large) -> bool:
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
    _require_known(cipher)
    return Stored(plain_type, _open_eax(_key_bytes(key), stored.data))


def sealed(stored: Stored, cipher: str, *, key: str | bytes | None = None) -> Stored:
    """Returns a plaintext value encrypted; an equal one gives equal bytes, so that what was written can be compared.

    Args:
        stored: Not encrypted.
        cipher: The only one known is `aes`.
        key: 16, 24 or 32 bytes; None takes LANGGRAPH_AES_KEY from the environment.

    Raises:
        DecodeError: No key, a cipher other than aes, or no AES implementation installed.
    """
    _require_known(cipher)
    return Stored(f"{stored.type}+{cipher}", _seal_eax(_key_bytes(key), stored.data))


def _require_known(cipher: str) -> None:
    if cipher != "aes":
        raise DecodeError(f"the value is encrypted with the cipher {cipher!r}, which is not known here")


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


def _seal_eax(key: bytes, data: bytes) -> bytes:
    nonce = hashlib.blake2b(data, key=key, digest_size=_NONCE_BYTES).digest()  # of the value: never one for two values
    cipher = _eax(key, nonce)
    ciphertext, tag = cipher.encrypt_and_digest(data)
    return nonce + bytes(tag) + bytes(ciphertext)


def _open_eax(key: bytes, data: bytes) -> bytes:
    if len(data) < _NONCE_BYTES + _TAG_BYTES:
        raise DecodeError("the encrypted value is cut short")
    nonce, tag = data[:_NONCE_BYTES], data[_NONCE_BYTES : _NONCE_BYTES + _TAG_BYTES]
    cipher = _eax(key, nonce)
    try:
        opened: bytes = cipher.decrypt_and_verify(data[_NONCE_BYTES + _TAG_BYTES :], tag)
    except ValueError as error:
        raise DecodeError(f"{KEY_VARIABLE} is not the key of this value, or the value is damaged") from error
    return opened


def _eax(key: bytes, nonce: bytes) -> Any:
    try:
        from Crypto.Cipher import AES
    except ImportError as error:
        raise DecodeError(
            "the value is encrypted and no AES implementation is installed", hint="pip install pycryptodome"
        ) from error
    return AES.new(key, AES.MODE_EAX, nonce=nonce)
