"""A process that tries to get out: everything that code could do to reach, read or change what is not its own.

`python -m tests.support.escaping` reads its task (see `Task`) from stdin, lets itself be confined as that says, makes
every attempt, and prints what came of each as JSON: `done`, or the error.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import mmap
import os
import signal
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Mode = Literal["off", "kernel", "old_kernel", "hook"]

ATTEMPTS: dict[str, Callable[[Task], object]] = {}
BY_PYTHON: set[str] = set()
"""Attempts that the audit hook alone has to stop too."""
OF_SOME_KERNELS = frozenset(
    {
        "mptcp", "vsock", "raw", "packet", "fast_open", "io_uring", "ptrace", "memory_of_another",
        "environment_of_another", "files_of_another", "limits_of_another", "xattr", "curl", "a_device",
        "name_of_the_machine", "interfaces_of_the_machine", "another_user",
    }
)  # fmt: skip
"""Attempts that may fail without any isolation: by the kernel's build, its settings, the user, or what is installed."""


@dataclass(frozen=True)
class Task:
    """What to try, and how to be confined before.

    Attributes:
        mode: `off`; `kernel` without the hook, which would be first to refuse; `old_kernel` with no more of Landlock
            than its first version had; `hook` without the kernel.
        port: TCP and UDP port on loopback that nobody may reach.
        proxy_port: The port that may be connected to, or None.
        unix: Path of a listening stream socket; `.dgram` beside it is one for datagrams, `@NAME` in the abstract space.
        postgres: libpq URL of a server on a socket in the file system.
        outside: Folder with one file for each attempt, named like it.
        inside: Folder that may be written.
        secret: File that may not be read.
        other: Process that is not the attempter's.
        database: A database that is open elsewhere; it may be written, its folder not.
        inherited: Descriptor of a connected socket that the parent left open.
    """

    mode: Mode
    port: int
    proxy_port: int | None
    unix: str
    postgres: str
    outside: str
    inside: str
    secret: str
    other: int
    database: str
    inherited: int

    def run(self, env: dict[str, str]) -> dict[str, dict[str, str]]:
        """Returns `attempts`, `works`, `said` and `layers` of a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.escaping"],
            input=json.dumps(asdict(self)),
            env=env,
            pass_fds=(self.inherited,),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, dict[str, str]] = json.loads(done.stdout)
        return answer


def by_python(function: Callable[[Task], object]) -> Callable[[Task], object]:
    BY_PYTHON.add(function.__name__)
    return attempt(function)


def attempt(function: Callable[[Task], object]) -> Callable[[Task], object]:
    ATTEMPTS[function.__name__] = function
    return function


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(returned: int) -> int:
    if returned < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned


def _syscall(*arguments: Any) -> int:
    return _checked(_libc().syscall(*(ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)))


def _raise_if(error: int) -> None:
    if error:
        raise OSError(-error, os.strerror(-error))


def _file(task: Task, name: str) -> Path:
    return Path(task.outside) / name


# The network


@by_python
def tcp(task: Task) -> None:
    socket.create_connection(("127.0.0.1", task.port), timeout=5).close()


@by_python
def udp(task: Task) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.sendto(b"udp", ("127.0.0.1", task.port))


@by_python
def look_up(task: Task) -> None:
    socket.getaddrinfo("localhost", task.port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:  # what a look-up needs
        own.connect(("127.0.0.1", task.port))


@by_python
def mptcp(task: Task) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as own:
        own.connect(("127.0.0.1", task.port))


@by_python
def tcp6_to_ipv4(task: Task) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as own:
        own.connect(("::ffff:127.0.0.1", task.port))


@by_python
def raw(_: Task) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@by_python
def packet(_: Task) -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


@by_python
def vsock(_: Task) -> None:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()


@attempt
def fast_open(task: Task) -> None:
    with socket.socket() as own:
        own.sendto(b"fast", socket.MSG_FASTOPEN, ("127.0.0.1", task.port))


@by_python
def listen(_: Task) -> None:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.listen()


@attempt
def listen_unbound(_: Task) -> None:
    with socket.socket() as own:
        own.listen()


@by_python
def unix_path(task: Task) -> None:
    with socket.socket(socket.AF_UNIX) as own:
        own.connect(task.unix)


@by_python
def unix_abstract(task: Task) -> None:
    with socket.socket(socket.AF_UNIX) as own:
        own.connect("\0" + task.unix)


@by_python
def unix_datagram(task: Task) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        own.sendto(b"datagram", task.unix + ".dgram")


@by_python
def unix_datagram_by_a_pair(task: Task) -> None:
    for own in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        with own:
            own.sendto(b"datagram", task.unix + ".dgram")


@attempt
def postgres_by_a_socket(task: Task) -> None:
    import psycopg

    with psycopg.connect(task.postgres, connect_timeout=5) as connection:
        connection.execute("SELECT 1")


@attempt
def postgres_by_tcp(task: Task) -> None:
    import psycopg

    try:
        psycopg.connect(f"host=127.0.0.1 port={task.port} user=a dbname=a connect_timeout=5").close()
    except psycopg.OperationalError as error:
        if "received invalid response" not in str(error):  # what the listener gives is no Postgres
            raise


@by_python
def httpx_sync(task: Task) -> None:
    import httpx

    httpx.get(f"http://127.0.0.1:{task.port}/").raise_for_status()


@by_python
def httpx_async(task: Task) -> None:
    import httpx

    async def ask() -> None:
        async with httpx.AsyncClient() as client:
            (await client.get(f"http://127.0.0.1:{task.port}/")).raise_for_status()

    asyncio.run(ask())


@by_python
def requests(task: Task) -> None:
    import requests as library

    library.get(f"http://127.0.0.1:{task.port}/", timeout=5).raise_for_status()


@by_python
def urllib(task: Task) -> None:
    from urllib.request import urlopen

    urlopen(f"http://127.0.0.1:{task.port}/", timeout=5).close()


@by_python
def curl(task: Task) -> None:
    subprocess.run(["curl", "-sS", f"http://127.0.0.1:{task.port}/"], check=True, capture_output=True)


@by_python
def another_python(task: Task) -> None:
    code = f"import socket; socket.create_connection(('127.0.0.1', {task.port}))"
    subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True)


@attempt
def forked(task: Task) -> None:
    child = os.fork()
    if child == 0:
        try:
            os._exit(socket.socket().connect_ex(("127.0.0.1", task.port)))
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        raise OSError("the child did not reach it")


@attempt
def a_thread(task: Task) -> None:
    failed: list[BaseException] = []

    def reach() -> None:
        try:
            tcp(task)
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=reach)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


@attempt
def libc_connect(task: Task) -> None:
    libc = _libc()
    own = _checked(libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0))
    address = (2).to_bytes(2, sys.byteorder) + task.port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
    try:
        _checked(libc.connect(own, address, 16))
    finally:
        os.close(own)


@attempt
def io_uring(_: Task) -> None:
    os.close(_syscall(425, 1, ctypes.create_string_buffer(120)))


@attempt
def inherited_socket(task: Task) -> None:
    os.write(task.inherited, b"GET / HTTP/1.1\r\n\r\n")


# Other processes


@attempt
def environment_variable(_: Task) -> None:
    os.environ["ESCAPING_PASSWORD"]


@attempt
def environment_of_the_parent(_: Task) -> None:
    if b"PATH=" not in Path(f"/proc/{os.getppid()}/environ").read_bytes():
        raise OSError("it is not there")


@attempt
def environment_of_another(task: Task) -> None:
    if b"ESCAPING_PASSWORD" not in Path(f"/proc/{task.other}/environ").read_bytes():
        raise OSError("it is not there")


@attempt
def command_line_of_the_parent(_: Task) -> None:
    Path(f"/proc/{os.getppid()}/cmdline").read_bytes()


@attempt
def memory_of_another(task: Task) -> None:
    Path(f"/proc/{task.other}/maps").read_bytes()
    os.close(os.open(f"/proc/{task.other}/mem", os.O_RDWR))


@attempt
def files_of_another(task: Task) -> None:
    process = os.pidfd_open(task.other)
    os.close(_syscall(438, process, 0, 0))


@attempt
def ptrace(task: Task) -> None:
    seize, detach = 0x4206, 17
    libc = _libc()
    _checked(libc.ptrace(ctypes.c_long(seize), task.other, None, None))
    libc.ptrace(ctypes.c_long(detach), task.other, None, None)


@attempt
def signal_to_another(task: Task) -> None:
    os.kill(task.other, 0)


@attempt
def signal_to_the_parent(_: Task) -> None:
    os.kill(os.getppid(), 0)


@attempt
def keyring(_: Task) -> None:
    _syscall(250, 0, -1, 0)  # KEYCTL_GET_KEYRING_ID of the thread's keyring: ENOKEY where it may be asked


@attempt
def name_of_the_machine(_: Task) -> None:
    socket.sethostname(socket.gethostname())


@attempt
def interfaces_of_the_machine(_: Task) -> None:
    new_link, acknowledged, up = 16, 0x5, 1
    request = struct.pack("=IHHII", 32, new_link, acknowledged, 1, 0) + struct.pack("=BBHiII", 0, 0, 0, 1, up, up)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as own:
        own.send(request)
        error: int = struct.unpack_from("=i", own.recv(1000), 16)[0]
    _raise_if(error)


@attempt
def another_user(_: Task) -> None:
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        raise PermissionError("it is still the same user")


@attempt
def shared_memory(_: Task) -> None:
    made = _syscall(29 if os.uname().machine == "x86_64" else 194, 0, 4096, 0o600)
    _libc().shmctl(made, 0, None)


@attempt
def limits_of_another(task: Task) -> None:
    import resource

    resource.prlimit(task.other, resource.RLIMIT_NOFILE)


# Files


@by_python
def write(task: Task) -> None:
    _file(task, "write").write_text("changed")


@by_python
def write_new(task: Task) -> None:
    _file(task, "new").write_text("new")


@attempt
def read_and_cut(task: Task) -> None:
    os.close(os.open(_file(task, "read_and_cut"), os.O_RDONLY | os.O_TRUNC))


@by_python
def truncate(task: Task) -> None:
    os.truncate(_file(task, "truncate"), 0)


@by_python
def rename(task: Task) -> None:
    _file(task, "rename").rename(_file(task, "renamed"))


@by_python
def move_in(task: Task) -> None:
    _file(task, "move_in").rename(Path(task.inside) / "moved")


@by_python
def move_out(task: Task) -> None:
    (Path(task.inside) / "own").write_text("own")
    (Path(task.inside) / "own").rename(_file(task, "move_out"))


@by_python
def link(task: Task) -> None:
    os.link(_file(task, "link"), _file(task, "linked"))


@by_python
def symlink(task: Task) -> None:
    _file(task, "symlinked").symlink_to("anywhere")


@by_python
def write_through_a_link(task: Task) -> None:
    own = Path(task.inside) / "link"
    own.unlink(missing_ok=True)
    own.symlink_to(_file(task, "write_through_a_link"))
    own.write_text("changed")


@by_python
def remove(task: Task) -> None:
    _file(task, "remove").unlink()


@by_python
def make_folder(task: Task) -> None:
    _file(task, "folder").mkdir()


@by_python
def chmod(task: Task) -> None:
    _file(task, "chmod").chmod(0o777)
    if _file(task, "chmod").stat().st_mode & 0o777 != 0o777:
        raise OSError("nothing changed")


@by_python
def xattr(task: Task) -> None:
    os.setxattr(_file(task, "xattr"), "user.own", b"1")
    os.getxattr(_file(task, "xattr"), "user.own")


@attempt
def libc_write(task: Task) -> None:
    own = _checked(_libc().open(os.fsencode(_file(task, "libc_write")), os.O_WRONLY))
    os.write(own, b"changed")
    os.close(own)


@by_python
def a_shell_writes(task: Task) -> None:
    file = _file(task, "a_shell_writes")
    subprocess.run(["/bin/sh", "-c", f"echo changed > {file}"], check=True, capture_output=True)


@attempt
def sqlite(task: Task) -> None:
    connection = sqlite3.connect(_file(task, "database.sqlite"))
    try:
        connection.execute("INSERT INTO kept VALUES (2)")
        connection.commit()
    finally:
        connection.close()


@attempt
def mapped(task: Task) -> None:
    own = os.open(_file(task, "mapped"), os.O_RDWR)
    with mmap.mmap(own, 4) as memory:
        memory[:1] = b"X"
    os.close(own)


@attempt
def a_device(task: Task) -> None:
    device = Path(task.inside) / "device"
    os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    device.unlink()


@attempt
def read_a_secret(task: Task) -> None:
    Path(task.secret).read_text()


# What has to work all the same

WORKS: dict[str, Callable[[Task], object]] = {}


def works(function: Callable[[Task], object]) -> Callable[[Task], object]:
    WORKS[function.__name__] = function
    return function


@works
def files_of_its_own(task: Task) -> None:
    own = Path(task.inside) / "folder"
    own.mkdir(exist_ok=True)
    (own / "a").write_text("a")
    (own / "a").replace(Path(task.inside) / "b")
    os.truncate(Path(task.inside) / "b", 0)
    (Path(task.inside) / "b").unlink()
    (own / "touched").touch()
    assert (own / "touched").exists()


@works
def copies_with_their_modes(task: Task) -> None:
    import shutil

    shutil.copy2(__file__, task.inside)


@works
def a_database_of_its_own(task: Task) -> None:
    connection = sqlite3.connect(Path(task.inside) / "own.sqlite")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS kept (a)")
    connection.execute("INSERT INTO kept VALUES (1)")
    connection.commit()
    connection.close()


@works
def a_database_in_a_folder_of_another(task: Task) -> None:
    connection = sqlite3.connect(task.database)
    connection.execute("INSERT INTO kept VALUES (1)")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


@works
def event_loops(_: Task) -> None:
    asyncio.run(asyncio.to_thread(time.monotonic))


@works
def nowhere(_: Task) -> None:
    Path(os.devnull).write_text("nothing")


@works
def modules(_: Task) -> None:
    import xml.dom.minidom  # noqa: F401

    Path("/proc/self/status").read_text()
    Path("/proc/meminfo").read_text()


@works
def beside_a_secret(task: Task) -> None:
    Path(task.secret).with_name("plain").read_text()


@works
def its_own_signals(_: Task) -> None:
    os.kill(os.getpid(), 0)
    signal.raise_signal(signal.SIGCONT)


def programs(_: Task) -> None:
    subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)
    child = subprocess.Popen(["sleep", "60"])
    child.kill()
    child.wait()


def the_proxy(task: Task) -> None:
    if task.proxy_port is not None:
        socket.create_connection(("127.0.0.1", task.proxy_port), timeout=5).close()


def main() -> None:
    """Confines this process, makes all attempts and prints what came of them."""
    from agentctl.sandbox.isolation import confinement, landlock, seccomp
    from agentctl.sandbox.isolation.descriptors import close_others

    task = Task(**json.loads(sys.stdin.read()))
    said: dict[str, str] = {}
    layers = "off"
    if task.mode in ("kernel", "old_kernel"):
        sys.addaudithook = lambda _: None  # type: ignore[assignment]
    if task.mode == "old_kernel":
        landlock.abi = lambda: 1
    if task.mode == "hook":
        seccomp.is_available = lambda: False  # type: ignore[assignment]
        landlock.abi = lambda: 0  # type: ignore[assignment]
    if task.mode != "off":
        close_others(())
        database = tuple(Path(task.database + ending) for ending in ("", "-wal", "-shm"))
        allowed = confinement.Confinement(task.proxy_port, (Path(task.inside), *database), (Path(task.secret),))
        layers = confinement.confine(allowed, refused=lambda what: said.setdefault(what, "")).text
    checks = WORKS | ({} if task.mode == "hook" else {"programs": programs}) | {"the_proxy": the_proxy}
    answer = {
        "attempts": {name: _outcome(function, task) for name, function in ATTEMPTS.items()},
        "works": {name: _outcome(function, task) for name, function in checks.items()},
        "said": said,
        "layers": {"text": layers},
    }
    print(json.dumps(answer))


def _outcome(function: Callable[[Task], object], task: Task) -> str:
    try:
        function(task)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "done"


if __name__ == "__main__":
    main()
