"""Plain files that survive crashes and neighbours: whole documents appear at once, lines are added under a lock.

Everything is readable by its owner alone.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Final

from agentctl.codec.jsontext import dumps
from agentctl.errors import StoreError

FILE_MODE: Final = 0o600
LOCK_NAME: Final = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps other processes and threads that lock the same folder out; waits for them first.

    Raises:
        StoreError: the folder is gone or cannot be written.
    """
    with _writing(folder):
        handle = os.open(folder / LOCK_NAME, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def append_lines(path: Path, items: Sequence[Mapping[str, object]]) -> None:
    """Adds one JSON line an item and waits until they are on the disk. The caller holds the folder's lock.

    A line that an earlier crash cut short is ended first, so that it spoils nothing but itself.
    """
    text = "".join(f"{dumps(item)}\n" for item in items)
    with _writing(path):
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                text = f"\n{text}"
            _write_all(handle, text.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        if not size:
            _sync_folder(path.parent)


def read_lines(path: Path) -> tuple[tuple[dict[str, object], ...], int]:
    """Returns the objects of a file of JSON lines, and how many lines are none. A missing file has no lines."""
    if not path.exists():
        return (), 0
    items: list[dict[str, object]] = []
    n_damaged = 0
    for line in path.read_bytes().splitlines():
        try:
            item = json.loads(line)
        except ValueError:
            item = None
        if isinstance(item, dict):
            items.append(item)
        elif line.strip():
            n_damaged += 1
    return tuple(items), n_damaged


def replace_document(path: Path, document: Mapping[str, object]) -> None:
    """Writes a JSON document so that a reader sees the old one or the new one, never a part."""
    with _writing(path):
        _write_beside(path, document).replace(path)
        _sync_folder(path.parent)


def add_document(path: Path, document: Mapping[str, object]) -> bool:
    """Writes a JSON document where none is yet; returns False, and writes nothing, where one is."""
    with _writing(path):
        written = _write_beside(path, document)
        try:
            path.hardlink_to(written)
        except FileExistsError:
            return False
        finally:
            written.unlink()
        _sync_folder(path.parent)
    return True


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        hint = "make room there, or keep cases beside another debug store: --debug-store FILE.sqlite"
        raise StoreError(
            f"{path} cannot be written: {exc.strerror}", hint=hint if exc.errno in (ENOSPC, EDQUOT) else None
        ) from exc


def _write_beside(path: Path, document: Mapping[str, object]) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        _write_all(handle, f"{dumps(document, indent=2)}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return temporary


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
