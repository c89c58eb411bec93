"""The filter of system calls: no network but plain TCP to a proxy, no way into other processes.

What is closed, and why each is, is a table of rules; the program for the kernel is made from it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentctl.sandbox.isolation import kernel
from agentctl.sandbox.isolation.syscalls import Machine, this_machine

_SET_MODE_FILTER: Final = 1
_GET_ACTION_AVAIL: Final = 2
_TSYNC: Final = 1

ALLOW: Final = 0x7FFF0000
ERRNO: Final = 0x00050000
KILL_PROCESS: Final = 0x80000000

_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
"""Source: struct seccomp_data, include/uapi/linux/seccomp.h. Of an argument the low half is read: it is an int."""

LOAD: Final = 0x20
AND: Final = 0x54
IF_EQUAL: Final = 0x15
IF_AT_LEAST: Final = 0x35
RETURN: Final = 0x06

_NOTHING_DONE: Final = 0
"""The errno of a call that is answered as done without being done."""

_AF_UNIX: Final = 1
_AF_INET: Final = 2
_AF_INET6: Final = 10
_AF_NETLINK: Final = 16
_STREAM: Final = 1
_SEQPACKET: Final = 5
_TYPE_MASK: Final = 0xF
"""The bits of a socket's type without SOCK_NONBLOCK and SOCK_CLOEXEC."""
_TCP: Final = 6
_TCP_ULP: Final = 31
_MSG_FASTOPEN: Final = 0x20000000
_INT: Final = 0xFFFFFFFF
_NAMESPACES: Final = tuple(0x80 if bit == 7 else 1 << bit for bit in (7, 17, 25, 26, 27, 28, 29, 30))
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_IOCTLS: Final = (0x5412, 0x541C, 0x40086602, 0x401C5820)
"""TIOCSTI and TIOCLINUX type into the terminal of somebody else; FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR change files
that are only read."""


@dataclass(frozen=True, slots=True)
class Test:
    """Holds where `argument & mask == value`."""

    argument: int
    mask: int
    value: int


Case = tuple[Test, ...]
"""Tests that hold together."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is answered to some system calls instead of doing them.

    Attributes:
        calls: Their names.
        errno: What they fail with; 0 answers that it was done.
        when: Only in these cases; empty for always.
        unless: Not in these cases.
    """

    calls: tuple[str, ...]
    errno: int
    when: tuple[Case, ...] = ()
    unless: tuple[Case, ...] = ()


_PLAIN_TCP: Final = tuple(
    (Test(0, _INT, family), Test(1, _TYPE_MASK, _STREAM), Test(2, _INT, protocol))
    for family in (_AF_INET, _AF_INET6)
    for protocol in (0, _TCP)
)
_ROUTES: Final = (Test(0, _INT, _AF_NETLINK), Test(2, _INT, 0))
"""NETLINK_ROUTE, by which the C library asks which addresses this machine has."""
_UNIX_PAIRS: Final = tuple((Test(0, _INT, _AF_UNIX), Test(1, _TYPE_MASK, kind)) for kind in (_STREAM, _SEQPACKET))
"""Pairs that stay pairs: one of datagrams can be sent from, and connected, to any socket in the file system."""

_ALWAYS: Final = (
    Rule(("socketpair",), errno.EACCES, unless=_UNIX_PAIRS),
    # A socket that listens without bind is given a port, and Landlock is not asked.
    Rule(("listen",), errno.EACCES),
    # Data sent with MSG_FASTOPEN connects on its way, and Landlock is not asked.
    Rule(("sendto", "sendmmsg"), errno.EACCES, when=((Test(3, _MSG_FASTOPEN, _MSG_FASTOPEN),),)),
    Rule(("sendmsg",), errno.EACCES, when=((Test(2, _MSG_FASTOPEN, _MSG_FASTOPEN),),)),
    # A TCP socket becomes another one by an upper layer protocol (SMC), and Landlock is not asked.
    Rule(("setsockopt",), errno.EACCES, when=((Test(1, _INT, _TCP), Test(2, _INT, _TCP_ULP)),)),
    # Does all of the above past a filter of system calls.
    Rule(("io_uring_setup", "io_uring_enter", "io_uring_register"), errno.ENOSYS),
    Rule(("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd"), errno.EPERM),
    Rule(("unshare", "setns"), errno.EPERM),
    Rule(("clone",), errno.EPERM, when=tuple((Test(0, flag, flag),) for flag in _NAMESPACES)),
    # Its flags lie in memory, where a filter cannot read; the C library then takes clone.
    Rule(("clone3",), errno.ENOSYS),
    Rule(("bpf", "perf_event_open", "userfaultfd", "open_by_handle_at"), errno.EPERM),
    Rule(("add_key", "request_key", "keyctl"), errno.EPERM),
    # Shared memory, semaphores and queues, which are found by a number and not by a path.
    Rule(
        (
            "shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv",
            "msgctl", "mq_open", "mq_unlink",
        ),
        errno.EPERM,
    ),
    Rule(("prlimit64",), errno.EPERM, unless=((Test(0, _INT, 0),),)),
    Rule(("ioctl",), errno.EPERM, when=tuple((Test(1, _INT, request),) for request in _IOCTLS)),
    # Landlock does not hold who may read a file and whose it is. A copy of a file sets these for itself, and is to
    # succeed; so nothing is changed, anywhere, and nothing fails.
    Rule(
        (
            "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
            "file_setattr",
            "setxattr", "lsetxattr", "fsetxattr", "setxattrat",
            "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
        ),
        _NOTHING_DONE,
    ),
)  # fmt: skip

_READ_AND_CUT: Final = os.O_ACCMODE | os.O_TRUNC if hasattr(os, "O_ACCMODE") else 0x203
_NO_TRUNCATE: Final = (
    Rule(("truncate",), errno.EACCES),
    Rule(("open",), errno.EACCES, when=((Test(1, _READ_AND_CUT, _READ_AND_CUT & ~3),),)),
    Rule(("openat",), errno.EACCES, when=((Test(2, _READ_AND_CUT, _READ_AND_CUT & ~3),),)),
    Rule(("openat2",), errno.ENOSYS),
)
"""For kernels whose Landlock does not hold the cutting of files that are not open for writing (before Linux 6.2)."""


def rules(*, tcp: bool, truncate: bool) -> tuple[Rule, ...]:
    """Returns what is closed.

    Args:
        tcp: Whether plain TCP sockets may be made; where they may connect to is for Landlock to hold.
        truncate: Whether cutting files by their path is for this filter to hold.
    """
    sockets = Rule(("socket",), errno.EACCES, unless=(*(_PLAIN_TCP if tcp else ()), _ROUTES))
    return (sockets, *_ALWAYS, *(_NO_TRUNCATE if truncate else ()))


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a classic BPF program: its code, how many to skip if true or false, its constant."""

    code: int
    constant: int
    if_true: int = 0
    if_false: int = 0

    def packed(self) -> bytes:
        """Returns the 8 bytes of a struct sock_filter."""
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.constant)


def program(machine: Machine, closed: Sequence[Rule]) -> tuple[Step, ...]:
    """Returns the program that answers system calls of a machine by rules; all others are allowed.

    Calls of another machine's interface (32 bits on 64) end the process, those of x32 do not exist.
    """
    steps = [
        Step(LOAD, _ARCH_AT),
        Step(IF_EQUAL, machine.arch, 1, 0),
        Step(RETURN, KILL_PROCESS),
        Step(LOAD, _NUMBER_AT),
        Step(IF_AT_LEAST, machine.n_calls, 0, 1),
        Step(RETURN, ERRNO | errno.ENOSYS),
    ]
    for rule in closed:
        body = tuple(_body(rule))
        for number in (machine.numbers[name] for name in rule.calls if name in machine.numbers):
            steps += (Step(IF_EQUAL, number, 0, len(body)), *body)
    return (*steps, Step(RETURN, ALLOW))


def is_available() -> bool:
    """Returns whether this kernel filters system calls of this machine."""
    machine = this_machine() if kernel.is_linux() else None
    if machine is None:
        return False
    try:
        action = ctypes.c_uint32(ERRNO)
        kernel.syscall(machine.numbers["seccomp"], _GET_ACTION_AVAIL, 0, ctypes.byref(action))
    except OSError:
        return False
    return True


def put_on(closed: Sequence[Rule]) -> None:
    """Filters the system calls of all threads of this process, and of all that it starts, for good.

    Raises:
        OSError: The kernel did not take the filter, or does not obey it.
    """
    machine = this_machine()
    if machine is None:
        raise OSError(errno.ENOSYS, "the system calls of this machine are not known")
    steps = b"".join(step.packed() for step in program(machine, closed))
    taken = _Program(len(steps) // 8, steps)
    not_synchronized = kernel.syscall(machine.numbers["seccomp"], _SET_MODE_FILTER, _TSYNC, ctypes.byref(taken))
    if not_synchronized:
        raise OSError(errno.EBUSY, f"thread {not_synchronized} has a filter of its own")
    _check_obeyed()


class _Program(ctypes.Structure):
    """Source: struct sock_fprog, include/uapi/linux/filter.h."""

    _fields_ = (("n_steps", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _check_obeyed() -> None:
    """Asks for what is closed in every confinement: some systems take a filter and leave it at that."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except PermissionError:
        return
    raise OSError(errno.ENOTSUP, "the kernel took the filter of system calls and does not obey it")


def _body(rule: Rule) -> Iterator[Step]:
    """Yields what follows the name of a call; it always ends the program."""
    refuse, allow = Step(RETURN, ERRNO | rule.errno), Step(RETURN, ALLOW)
    for case in rule.when:
        yield from _case(case, refuse)
    for case in rule.unless:
        yield from _case(case, allow)
    yield allow if rule.when else refuse


def _case(case: Case, then: Step) -> Iterator[Step]:
    """Yields the tests of a case and what follows where all hold; one that does not hold leads past it."""
    n_left = 3 * len(case) + 1
    for test in case:
        n_left -= 3
        yield Step(LOAD, _ARGUMENTS_AT + 8 * test.argument)
        yield Step(AND, test.mask)
        yield Step(IF_EQUAL, test.value, 0, n_left)
    yield then
