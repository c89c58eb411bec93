"""The filter of system calls, run here instruction by instruction, for both machines."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentctl.sandbox.isolation import seccomp
from agentctl.sandbox.isolation.seccomp import ALLOW, ERRNO, KILL_PROCESS, Step, program, rules
from agentctl.sandbox.isolation.syscalls import MACHINES, Machine

_MACHINES = [pytest.param(machine, id=name) for name, machine in MACHINES.items()]
_HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
_STREAM_NOW = socket.SOCK_STREAM | 0o4000 | 0o2000000  # SOCK_NONBLOCK | SOCK_CLOEXEC of Linux


def _run(steps: Sequence[Step], arch: int, number: int, arguments: Sequence[int]) -> int:
    """Returns what a program answers. The kernel checks it before it runs one; here a bad jump is an error."""
    data = {0: number, 4: arch} | {16 + 8 * index: value & 0xFFFFFFFF for index, value in enumerate(arguments)}
    held, at = 0, 0
    while True:
        step = steps[at]
        at += 1
        if step.code == seccomp.LOAD:
            held = data[step.constant]
        elif step.code == seccomp.AND:
            held &= step.constant
        elif step.code == seccomp.IF_EQUAL:
            at += step.if_true if held == step.constant else step.if_false
        elif step.code == seccomp.IF_AT_LEAST:
            at += step.if_true if held >= step.constant else step.if_false
        else:
            assert step.code == seccomp.RETURN
            return step.constant


def _answer(machine: Machine, call: str, *arguments: int, tcp: bool = False, truncate: bool = False) -> int:
    steps = program(machine, rules(tcp=tcp, truncate=truncate))
    padded = (*arguments, *[0] * (6 - len(arguments)))
    return _run(steps, machine.arch, machine.numbers[call], padded)


@pytest.mark.parametrize("machine", _MACHINES)
def test_sockets_are_plain_tcp_where_there_is_a_proxy_and_none_where_there_is_not(machine: Machine) -> None:
    refused = ERRNO | errno.EACCES
    for family in (2, 10):
        for protocol in (0, 6):
            assert _answer(machine, "socket", family, _STREAM_NOW, protocol, tcp=True) == ALLOW
            assert _answer(machine, "socket", family, _STREAM_NOW, protocol) == refused
        for kind, protocol in ((1, 262), (1, 132), (2, 0), (2, 17), (3, 1), (2, 1)):
            assert _answer(machine, "socket", family, kind, protocol, tcp=True) == refused
    for family in (1, 17, 29, 30, 31, 38, 40, 43, 44):
        assert _answer(machine, "socket", family, 1, 0, tcp=True) == refused


@pytest.mark.parametrize("machine", _MACHINES)
def test_of_netlink_only_addresses_may_be_asked_for(machine: Machine) -> None:
    assert _answer(machine, "socket", 16, 3, 0) == ALLOW
    assert _answer(machine, "socket", 16, 3, 9) == ERRNO | errno.EACCES


@pytest.mark.parametrize("machine", _MACHINES)
def test_pairs_are_of_streams(machine: Machine) -> None:
    assert _answer(machine, "socketpair", 1, _STREAM_NOW, 0) == ALLOW
    assert _answer(machine, "socketpair", 1, 5, 0) == ALLOW
    assert _answer(machine, "socketpair", 1, 2, 0) == ERRNO | errno.EACCES
    assert _answer(machine, "socketpair", 30, 1, 0) == ERRNO | errno.EACCES


@pytest.mark.parametrize("machine", _MACHINES)
def test_what_connects_without_connect_is_closed_and_what_only_sends_is_not(machine: Machine) -> None:
    refused, fast = ERRNO | errno.EACCES, 0x20000000
    assert _answer(machine, "sendto", 3, 0, 4, fast | 0x4000) == refused
    assert _answer(machine, "sendto", 3, 0, 4, 0x4000) == ALLOW
    assert _answer(machine, "sendmmsg", 3, 0, 4, fast) == refused
    assert _answer(machine, "sendmsg", 3, 0, fast) == refused
    assert _answer(machine, "sendmsg", 3, 0, 0) == ALLOW
    assert _answer(machine, "setsockopt", 3, 6, 31) == refused
    assert _answer(machine, "setsockopt", 3, 6, 1) == ALLOW
    assert _answer(machine, "setsockopt", 3, 1, 31) == ALLOW
    assert _answer(machine, "listen", 3, 1) == refused


@pytest.mark.parametrize("machine", _MACHINES)
def test_threads_and_processes_may_be_made_and_namespaces_not(machine: Machine) -> None:
    assert _answer(machine, "clone", 0x3D0F00) == ALLOW
    assert _answer(machine, "clone", 17) == ALLOW
    for flag in (0x80, 0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert _answer(machine, "clone", 17 | flag) == ERRNO | errno.EPERM
    assert _answer(machine, "clone3", 0) == ERRNO | errno.ENOSYS
    assert _answer(machine, "unshare", 0x10000000) == ERRNO | errno.EPERM


@pytest.mark.parametrize("machine", _MACHINES)
def test_the_terminal_of_somebody_else_is_not_typed_into(machine: Machine) -> None:
    assert _answer(machine, "ioctl", 0, 0x5412) == ERRNO | errno.EPERM
    assert _answer(machine, "ioctl", 0, 0x5413) == ALLOW


@pytest.mark.parametrize("machine", _MACHINES)
def test_kernels_whose_landlock_lets_files_be_cut_have_that_closed_here(machine: Machine) -> None:
    refused, read, cut, write = ERRNO | errno.EACCES, 0, 0o1000, 1
    assert _answer(machine, "truncate", 0, 0) == ALLOW
    assert _answer(machine, "truncate", 0, 0, truncate=True) == refused
    assert _answer(machine, "openat", 0, 0, read | cut) == ALLOW
    assert _answer(machine, "openat", 0, 0, read | cut, truncate=True) == refused
    assert _answer(machine, "openat", 0, 0, read, truncate=True) == ALLOW
    assert _answer(machine, "openat", 0, 0, write | cut, truncate=True) == ALLOW  # writing is for Landlock to hold


@pytest.mark.parametrize("machine", _MACHINES)
def test_another_machines_calls_end_the_process_and_x32_does_not_exist(machine: Machine) -> None:
    steps = program(machine, rules(tcp=True, truncate=False))
    assert _run(steps, 0x40000003, machine.numbers["socket"], (2, 1, 0, 0, 0, 0)) == KILL_PROCESS
    assert _run(steps, machine.arch, 0x40000000 | 41, (2, 1, 0, 0, 0, 0)) == ERRNO | errno.ENOSYS
    assert _run(steps, machine.arch, 3, (0,) * 6) == ALLOW


@pytest.mark.parametrize("machine", _MACHINES)
def test_every_jump_of_a_program_stays_inside_it(machine: Machine) -> None:
    steps = program(machine, rules(tcp=True, truncate=True))
    assert len(steps) < 4096  # BPF_MAXINSNS
    for at, step in enumerate(steps):
        assert max(step.if_true, step.if_false) < 256
        assert at + 1 + max(step.if_true, step.if_false) < len(steps) or step.code == seccomp.RETURN
        assert len(step.packed()) == 8


@pytest.mark.parametrize("name", MACHINES)
def test_the_numbers_are_those_of_the_kernels_headers(name: str) -> None:
    if not _HEADERS[name].exists():
        pytest.skip("the kernel's headers are not installed")
    text = _HEADERS[name].read_text()
    stated = {call: int(number) for call, number in re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.M)}
    ours = MACHINES[name].numbers
    assert {call: number for call, number in ours.items() if call in stated} == {
        call: number for call, number in stated.items() if call in ours
    }
    assert len(ours.keys() & stated.keys()) > 30
