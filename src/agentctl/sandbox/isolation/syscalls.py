"""Numbers of system calls, of the two machines that the filter knows."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_X86_64: Final = {
    "sendmsg": 46, "sendto": 44, "socket": 41, "listen": 50, "socketpair": 53, "setsockopt": 54, "sendmmsg": 307,
    "open": 2, "openat": 257, "openat2": 437, "truncate": 76, "ioctl": 16,
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452,
    "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260,
    "file_setattr": 469,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "removexattrat": 466,
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "process_madvise": 440, "pidfd_getfd": 438,
    "clone": 56, "clone3": 435, "unshare": 272, "setns": 308,
    "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "open_by_handle_at": 304, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "seccomp": 317,
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220,
    "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241, "prlimit64": 302,
}  # fmt: skip

_AARCH64: Final = {
    "sendmsg": 211, "sendto": 206, "socket": 198, "listen": 201, "socketpair": 199, "setsockopt": 208, "sendmmsg": 269,
    "openat": 56, "openat2": 437, "truncate": 45, "ioctl": 29,
    "fchmod": 52, "fchmodat": 53, "fchmodat2": 452,
    "fchown": 55, "fchownat": 54,
    "file_setattr": 469,
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "setxattrat": 463,
    "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "removexattrat": 466,
    "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "process_madvise": 440, "pidfd_getfd": 438,
    "clone": 220, "clone3": 435, "unshare": 97, "setns": 268,
    "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
    "open_by_handle_at": 265, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "seccomp": 277,
    "shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190, "semop": 193, "semctl": 191, "semtimedop": 192,
    "msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187, "mq_open": 180, "mq_unlink": 181, "prlimit64": 261,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine's system calls.

    Attributes:
        arch: AUDIT_ARCH_* of include/uapi/linux/audit.h.
        numbers: Number by name; a call that the machine does not have is not in it.
        n_calls: Numbers from here on are of another interface (x32), or none.
    """

    arch: int
    numbers: Mapping[str, int]
    n_calls: int


MACHINES: Final = {
    "x86_64": Machine(0xC000003E, _X86_64, 0x40000000),
    "aarch64": Machine(0xC00000B7, _AARCH64, 0x40000000),
}
"""Source: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h (Linux 6.18)."""


def this_machine() -> Machine | None:
    """Returns the machine that this interpreter runs on; None where it is not known, or runs as 32 bits."""
    return MACHINES.get(platform.machine()) if sys.maxsize > 2**32 else None
