"""Calling the Linux kernel where Python has no function for it."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from typing import Final

_PR_SET_NO_NEW_PRIVS: Final = 38
"""Source: prctl(2)."""

_CAPABILITY_VERSION: Final = 0x20080522
_CAPABILITY_WORDS: Final = struct.Struct("=6I")
"""Effective, permitted and inheritable, the low half of each, then the high. Source: capget(2)."""

_ABOUT_FILES: Final = 1 << 1 | 1 << 2 | 1 << 3
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER: which files may be written is for Landlock to hold."""


def syscall(number: int, *arguments: object) -> int:
    """Returns what a system call returns.

    Args:
        number: The call's number on this machine.
        arguments: Integers, None for a null pointer, or ctypes pointers.

    Raises:
        OSError: It failed.
    """
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return _checked(_libc().syscall(ctypes.c_long(number), *passed))


def give_up_privileges() -> None:
    """Leaves this process, and all that it starts, no right of root but to the files that root may read and write.

    A program that it starts gains none by setuid either, which the kernel asks for before it takes rules of a process.

    Raises:
        OSError: The kernel did not do that.
    """
    _checked(_libc().prctl(*map(ctypes.c_ulong, (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))))
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    held = ctypes.create_string_buffer(_CAPABILITY_WORDS.size)
    _checked(_libc().capget(header, held))
    _, low, *_ = _CAPABILITY_WORDS.unpack(held.raw)
    kept = low & _ABOUT_FILES
    _checked(_libc().capset(header, _CAPABILITY_WORDS.pack(kept, kept, 0, 0, 0, 0)))


def _checked(returned: int) -> int:
    if returned < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def is_linux() -> bool:
    """Returns whether there is a Linux kernel to call."""
    return sys.platform == "linux"
