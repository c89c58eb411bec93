"""Calling the Linux kernel where Python has no function for it."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Final

_PR_SET_NO_NEW_PRIVS: Final = 38


def syscall(number: int, *arguments: object) -> int:
    """Returns what a system call returns.

    Args:
        number: The call's number on this machine.
        arguments: Integers, None for a null pointer, or ctypes pointers.

    Raises:
        OSError: It failed.
    """
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    returned: int = _libc().syscall(ctypes.c_long(number), *passed)
    if returned < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned


def give_up_privileges() -> None:
    """Sees to it that no program which this process starts gains rights by setuid; the kernel asks for that first.

    Source: PR_SET_NO_NEW_PRIVS in prctl(2).
    """
    if _libc().prctl(*map(ctypes.c_ulong, (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def is_linux() -> bool:
    """Returns whether there is a Linux kernel to call."""
    return sys.platform == "linux"
