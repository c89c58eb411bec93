"""Adding to the log, so that a line is on the disk before its caller goes on.

audit/log.jsonl     the lines, only ever added to
audit/head.json     how many there are, the hash of the last one, and how long the file is

The head is written after the line, both under the folder's lock. A crash between them leaves lines that the head does
not cover yet; the next command takes them on where they fit.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentctl.casebook.audit.chain import START, read_line, seal
from agentctl.casebook.files import FILE_MODE, locked, replace_document
from agentctl.config.debug import make_private_folder
from agentctl.errors import StoreError

LOG: Final = "log.jsonl"
HEAD: Final = "head.json"

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Head:
    """Where a log ends: lines, hash of the last one, length in bytes."""

    n: int = 0
    hash: str = START
    n_bytes: int = 0


def append(folder: Path, fields: Mapping[str, object]) -> int:
    """Adds one line and waits until it is on the disk; returns its number in the log.

    Args:
        folder: Made where it is missing, for its owner alone.
        fields: What the line says.

    Raises:
        StoreError: it cannot be written, or what is there is not the log that the head tells of.
    """
    try:
        make_private_folder(folder)
        _require_own(folder)
        with locked(folder):
            return _append(folder, fields)
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error
    except StoreError as error:
        if isinstance(error.__cause__, OSError):
            raise _unwritable(folder, error.__cause__.strerror or error.message) from error
        raise


def read_head(folder: Path) -> Head | None:
    """Returns the head, None where there is none.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    try:
        document = json.loads((folder / HEAD).read_bytes())
        n, found, n_bytes = document["n"], document["hash"], document["n_bytes"]
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("not the head of a log") from error
    if not (isinstance(n, int) and isinstance(found, str) and isinstance(n_bytes, int)) or min(n, n_bytes) < 0:
        raise ValueError("not the head of a log")
    return Head(n, found, n_bytes)


def _append(folder: Path, fields: Mapping[str, object]) -> int:
    flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(folder / LOG, flags, FILE_MODE)
    try:
        head = _end_of_log(folder, handle)
        line, found = seal(head.n + 1, head.hash, fields)
        try:
            _write(handle, line + b"\n")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, head.n_bytes)
            raise
        replace_document(folder / HEAD, {"n": head.n + 1, "hash": found, "n_bytes": head.n_bytes + len(line) + 1})
    finally:
        os.close(handle)
    return head.n + 1


def _end_of_log(folder: Path, handle: int) -> Head:
    """Returns where the log ends: at its head, or after whole lines that a crash kept the head from covering.

    A part of a line behind them is taken away: nothing was shown for it.
    """
    try:
        head = read_head(folder) or Head()
    except ValueError as error:
        raise _foreign(folder, f"its {HEAD} is damaged") from error
    size = os.fstat(handle).st_size
    if size == head.n_bytes:
        return head
    if size < head.n_bytes:
        raise _foreign(folder, f"its {LOG} is shorter than its head says")
    lines = os.pread(handle, size - head.n_bytes, head.n_bytes).split(b"\n")
    for text in lines[:-1]:
        line = read_line(text)
        if line is None or not line.fits or (line.n, line.prev) != (head.n + 1, head.hash):
            raise _foreign(folder, "lines were added to it by something else")
        head = Head(line.n, line.hash, head.n_bytes + len(text) + 1)
    if lines[-1]:
        os.ftruncate(handle, head.n_bytes)
    return head


def _require_own(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{folder} is no plain folder, so no audit log is kept in it", hint="move it away")
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
        raise StoreError(
            f"{folder} can be written by others, so no audit log is kept in it", hint=f"chmod 700 {folder}"
        )


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _foreign(folder: Path, why: str) -> StoreError:
    return StoreError(
        f"the audit log in {folder} is not as it was left: {why}; no log, no read",
        hint="agentctl audit verify says where; move the folder away, as evidence, to begin a new log",
    )


def _unwritable(folder: Path, why: str) -> StoreError:
    return StoreError(
        f"the audit log in {folder} cannot be written: {why}; no log, no read",
        hint=f"make room, or make {folder} writable",
    )
