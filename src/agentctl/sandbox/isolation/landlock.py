"""The kernel's rules about files, ports and other processes, which a process puts on itself.

Source: Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h (Linux 6.18).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agentctl.sandbox.isolation import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH, _NET_PORT = 1, 2

_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_REMOVE_AND_MAKE: Final = sum(1 << bit for bit in range(4, 13))
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
"""Nowhere allowed: who may make a device of a disk may write past every file on it."""
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_IOCTL_DEVICE: Final = 1 << 15
_RIGHTS_SINCE: Final = (
    (1, _WRITE_FILE | _READ_FILE | _REMOVE_AND_MAKE),
    (2, _REFER),
    (3, _TRUNCATE),
    (5, _IOCTL_DEVICE),
)
_OF_A_FILE: Final = _WRITE_FILE | _READ_FILE | _TRUNCATE
"""A rule about a file takes no rights of folders. Device files get no ioctl."""

_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

HOLDS_TRUNCATE: Final = 3
HOLDS_PORTS: Final = 4
_HOLDS_SCOPES: Final = 6


def abi() -> int:
    """Returns which version of the rules this kernel knows; 0 where it knows none."""
    if not kernel.is_linux():
        return 0
    try:
        return kernel.syscall(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def restrict(*, writable: Collection[Path], readable: Collection[Path], port: int | None) -> None:
    """Puts rules on this thread, and on all that it starts, for good.

    Files may be read beneath `readable` and written beneath `writable` alone. No TCP port may be bound and none
    connected to but `port`. Other processes cannot be traced, so that their memory and environment cannot be read, nor
    be sent signals or reached by abstract sockets, as far as this kernel holds that.

    Raises:
        OSError: A place does not exist, or the kernel did not take the rules.
    """
    version = abi()
    rights = sum(right for since, right in _RIGHTS_SINCE if version >= since)
    ports = _BIND_TCP | _CONNECT_TCP if version >= HOLDS_PORTS else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= _HOLDS_SCOPES else 0
    with _ruleset(rights, ports, scopes) as ruleset:
        for path in readable:
            with suppress(FileNotFoundError):  # gone since it was listed
                _allow_beneath(ruleset, path, _READ_FILE)
        for path in writable:
            _allow_beneath(ruleset, path, rights & (~_MAKE_DEVICES if path.is_dir() else _OF_A_FILE))
        if port is not None and ports:
            rule = struct.pack("=QQ", _CONNECT_TCP, port)
            kernel.syscall(_ADD_RULE, ruleset, _NET_PORT, ctypes.c_char_p(rule), 0)
        kernel.syscall(_RESTRICT_SELF, ruleset, 0)


@contextmanager
def _ruleset(rights: int, ports: int, scopes: int) -> Iterator[int]:
    """Yields a ruleset that denies what it names. What a kernel does not know is zero and left out by it."""
    handled = struct.pack("=QQQ", rights, ports, scopes)
    n_bytes = 24 if scopes else 16 if ports else 8
    ruleset = kernel.syscall(_CREATE_RULESET, ctypes.c_char_p(handled), n_bytes, 0)
    try:
        yield ruleset
    finally:
        os.close(ruleset)


def _allow_beneath(ruleset: int, path: Path, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, place)
        kernel.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.c_char_p(rule), 0)
    finally:
        os.close(place)
