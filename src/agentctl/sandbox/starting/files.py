"""Putting a generated module where the user wants it: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from agentctl.errors import Refused, StoreError


def require_free(file: Path, *, force: bool) -> None:
    """Refuses a path that something is at, unless it is a file that may be replaced.

    Raises:
        Refused: something is there.
    """
    if file.exists() and not (force and file.is_file()):
        hint = "--output FILE names another, --force replaces it" if file.is_file() else "--output FILE names a file"
        raise Refused(f"{file} is there already", hint=hint)


def write_whole(file: Path, text: str, *, force: bool) -> None:
    """Writes a file that is there with all of its text or not at all; what is there already stays without `force`.

    Raises:
        Refused: something is there.
        StoreError: it cannot be written.
    """
    require_free(file, force=force)
    try:
        handle, part = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        if force:
            Path(part).replace(file)
        else:
            os.link(part, file)
    except FileExistsError:
        require_free(file, force=False)
        raise
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        Path(part).unlink(missing_ok=True)
