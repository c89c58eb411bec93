"""Plain files that survive crashes and neighbours: whole documents appear at once, lines are added under a lock.

Everything is readable by its owner alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EDQUOT, ELOOP, ENOSPC
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
        handle = _open_plain(folder / LOCK_NAME, os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def require_plain_folder(folder: Path) -> None:
    """Refuses a link in the place of a folder; there may be none yet.

    Raises:
        StoreError: it is a link.
    """
    if folder.is_symlink():
        raise StoreError(f"{folder} is a link, not a folder", hint="remove it; a case is made of plain files")


def append_lines(path: Path, items: Sequence[Mapping[str, object]]) -> None:
    """Adds one JSON line an item and waits until they are on the disk. The caller holds the folder's lock.

    A line that an earlier crash cut short is ended first, so that it spoils nothing but itself.
    """
    text = "".join(f"{dumps(item)}\n" for item in items)
    with _writing(path):
        handle = _open_plain(path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
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
    """Returns the objects of a file of JSON lines, and how many lines are none. A missing file has no lines.

    Raises:
        StoreError: a link or a device stands in its place.
    """
    try:
        data = read_plain(path)
    except FileNotFoundError:
        return (), 0
    items: list[dict[str, object]] = []
    n_damaged = 0
    for line in data.splitlines():
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            item = None
        if isinstance(item, dict):
            items.append(item)
        elif line.strip():
            n_damaged += 1
    return tuple(items), n_damaged


def read_plain(path: Path) -> bytes:
    """Returns what a file of a case holds.

    Raises:
        FileNotFoundError: there is none.
        StoreError: a link or a device stands in its place.
    """
    with os.fdopen(_open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read()


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
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        _write_all(handle, f"{dumps(document, indent=2)}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return Path(temporary)


def _open_plain(path: Path, flags: int) -> int:
    """Opens a file that is no link, no device and no pipe: what was put in its place leads nowhere."""
    try:
        handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, FILE_MODE)
    except OSError as exc:
        if exc.errno != ELOOP:
            raise
        raise _no_plain_file(path) from exc
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _no_plain_file(path)
    return handle


def _no_plain_file(path: Path) -> StoreError:
    return StoreError(
        f"{path} is a link or a device, not a plain file", hint="remove it; a case is made of plain files"
    )


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
