"""The key of a debug store, kept in a file for its owner alone, so that equal values stay equal across commands."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentctl.config.debug import make_private_folder
from agentctl.errors import ConfigError, StoreError
from agentctl.masking.keys import Key, key_of, key_text, new_key

_OTHERS: Final = 0o077
_MOST_BYTES: Final = 4096


def read_key(file: Path) -> Key | None:
    """Returns the key in a file, None where there is no file.

    Raises:
        StoreError: It cannot be read, is a link, others may read it, or what is in it is no key.
    """
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(file, error.strerror or str(error)) from error
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise _unusable(file, "it is no file")
        if mode & _OTHERS:
            raise _unusable(file, "others may read it", hint=f"chmod 600 {file}")
        return key_of(os.read(handle, _MOST_BYTES).decode("ascii", "replace"))
    except ConfigError as error:
        raise _unusable(file, error.message) from error
    finally:
        os.close(handle)


def kept_key(file: Path, random_bytes: Callable[[int], bytes]) -> Key:
    """Returns the key in a file, which is made where there is none; of two commands that make it one wins.

    Raises:
        StoreError: It cannot be read or made.
    """
    return read_key(file) or _make(file, random_bytes) or kept_key(file, random_bytes)


def _make(file: Path, random_bytes: Callable[[int], bytes]) -> Key | None:
    """Makes the file appear whole; returns None where it is there meanwhile."""
    key = new_key(random_bytes)
    try:
        make_private_folder(file.parent)
        handle, draft = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        try:
            with os.fdopen(handle, "w") as opened:
                opened.write(key_text(key) + "\n")
                opened.flush()
                os.fsync(handle)
            with suppress(FileExistsError):
                os.link(draft, file)
                return key
        finally:
            Path(draft).unlink()
    except OSError as error:
        raise _unusable(file, error.strerror or str(error)) from error
    return None


def _unusable(file: Path, why: str, *, hint: str | None = None) -> StoreError:
    return StoreError(
        f"the key for masking, {file}, cannot be used: {why}",
        hint=hint or "AGENTCTL_MASK_KEY takes a key in its place",
    )
