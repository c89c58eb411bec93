"""A process that is confined does not get out: every way that we know is tried, with the isolation on and off."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentctl.sandbox.isolation.confinement import Confinement, offered
from agentctl.sandbox.isolation.environment import reduced
from tests.support import escaping
from tests.support.escaping import Task

pytestmark = [
    pytest.mark.real_process,
    pytest.mark.skipif(sys.platform != "linux", reason="seccomp and Landlock are of Linux"),
]

_PASSWORD = {"ESCAPING_PASSWORD": "hunter2"}


@dataclass
class Arrivals:
    """What came to sockets that nobody may reach."""

    port: int = 0
    came: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[tuple[Task, Arrivals]]:
    """A task, and what arrives at its sockets."""
    base = tmp_path_factory.mktemp("e", numbered=True)
    (base / "kept").mkdir()
    for name in ("secret", "plain"):
        (base / "kept" / name).write_text(name)
    arrivals = Arrivals()
    with ExitStack() as stack:
        stack.enter_context(_listening(arrivals, str(base / "s")))
        pair = socket.socketpair()
        for end in pair:
            stack.enter_context(end)
        other = subprocess.Popen(["sleep", "600"], env={**os.environ, **_PASSWORD})
        stack.callback(other.wait)
        stack.callback(other.kill)
        database = sqlite3.connect(base / "open.sqlite")
        stack.callback(database.close)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE kept (a)")
        yield (
            Task(
                mode="off",
                port=arrivals.port,
                proxy_port=None,
                unix=str(base / "s"),
                postgres=postgres_url,
                outside="",
                inside="",
                secret=str(base / "kept" / "secret"),
                other=other.pid,
                database=str(base / "open.sqlite"),
                inherited=pair[0].fileno(),
            ),
            arrivals,
        )


@pytest.fixture(scope="module")
def off(task: tuple[Task, Arrivals], tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """What all attempts come to without isolation."""
    return _run(*task, tmp_path_factory.mktemp("off"), env={**os.environ, **_PASSWORD})


@dataclass(frozen=True)
class Answer:
    """What a process that tries to get out said, and what it did."""

    said: dict[str, Any]
    arrived: list[str]
    changed: dict[str, tuple[object, object]]

    @property
    def got_out(self) -> set[str]:
        """Attempts that succeeded."""
        return {name for name, outcome in self.said["attempts"].items() if outcome == "done"}


def test_without_isolation_every_attempt_succeeds(off: Answer) -> None:
    failed = {name: why for name, why in off.said["attempts"].items() if why != "done"}
    expected = {"keyring"}  # it asks for a key that is not there
    assert set(failed) - escaping.OF_SOME_KERNELS - expected == set(), failed
    assert "Required key not available" in failed["keyring"]
    assert {"stream", "datagram", "udp", "unix"} <= set(off.arrived)
    assert len(off.changed) >= 10


def test_the_kernel_alone_lets_nothing_out(task: tuple[Task, Arrivals], off: Answer, tmp_path: Path) -> None:
    if not offered().is_kernel:
        pytest.skip("this kernel has no seccomp or no Landlock")
    answer = _run(replace(task[0], mode="kernel"), task[1], tmp_path)
    assert answer.got_out == set()
    assert answer.arrived == []
    assert answer.changed == {}
    assert "Operation not permitted" in answer.said["attempts"]["keyring"]
    assert set(answer.said["works"].values()) == {"done"}, answer.said["works"]
    assert answer.said["layers"] == {"text": "seccomp + landlock (network closed, writes held to 4 places)"}
    assert off.got_out


def test_the_kernel_alone_lets_out_to_the_port_of_the_proxy_and_no_other(
    task: tuple[Task, Arrivals], tmp_path: Path
) -> None:
    if not offered(Confinement(proxy_port=1)).is_kernel:
        pytest.skip("this kernel's Landlock knows no ports")
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        port = proxy.getsockname()[1]
        answer = _run(replace(task[0], mode="kernel", proxy_port=port), task[1], tmp_path)
    assert answer.got_out == set()
    assert answer.arrived == []
    assert answer.changed == {}
    assert set(answer.said["works"].values()) == {"done"}, answer.said["works"]
    assert answer.said["layers"] == {"text": "seccomp + landlock (network held to the proxy, writes held to 4 places)"}


def test_the_first_kernels_with_landlock_hold_all_but_signals(task: tuple[Task, Arrivals], tmp_path: Path) -> None:
    if not offered().is_kernel:
        pytest.skip("this kernel has no seccomp or no Landlock")
    answer = _run(replace(task[0], mode="old_kernel"), task[1], tmp_path)
    assert answer.got_out == {"signal_to_another", "signal_to_the_parent"}
    assert answer.arrived == []
    assert answer.changed == {}
    broken = {name for name, outcome in answer.said["works"].items() if outcome != "done"}
    assert broken == {"files_of_its_own"}  # it moves a file from one of its folders to another


def test_the_hook_alone_stops_what_python_does_and_says_what_allows_it(
    task: tuple[Task, Arrivals], tmp_path: Path
) -> None:
    answer = _run(replace(task[0], mode="hook"), task[1], tmp_path)
    assert answer.got_out & escaping.BY_PYTHON == set()
    outcomes = answer.said["attempts"]
    port, outside = task[0].port, tmp_path / "outside"
    assert outcomes["look_up"] == (
        f"Confined: [Errno 13] isolation: an experiment may not reach localhost:{port} "
        f"(allowed by --allow-host localhost:{port}, or --isolation off)"
    )
    assert f"may not reach 127.0.0.1:{port} (allowed by --allow-host 127.0.0.1:{port}" in outcomes["httpx_sync"]
    assert f"may not write {outside / 'write'} (allowed by --isolation off)" in outcomes["write"]
    assert "may not start curl: on this system it would not be held" in outcomes["curl"]
    assert f"may not reach the socket {task[0].unix} " in outcomes["unix_path"]
    assert f"reach localhost:{port}" in answer.said["said"]
    assert set(answer.said["works"].values()) == {"done"}, answer.said["works"]
    assert answer.said["layers"] == {"text": "audit hook (network closed, writes held to 4 places)"}


def test_a_process_that_runs_threads_already_is_not_confined_but_told(tmp_path: Path) -> None:
    if not offered().is_kernel:
        pytest.skip("this kernel has no seccomp or no Landlock")
    code = (
        "import threading, time\n"
        "from agentctl.errors import IsolationFailed\n"
        "from agentctl.sandbox.isolation.confinement import Confinement, confine\n"
        "from pathlib import Path\n"
        "for places, n in (((Path('missing'),), 0), ((), 1)):\n"
        "    for _ in range(n): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "    try: confine(Confinement(writable=places))\n"
        "    except IsolationFailed as error: print(error.message, '|', error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout.splitlines() == [
        "the isolation of this experiment cannot be put on: [Errno 2] No such file or directory: 'missing' "
        "| --isolation off runs without it",
        "the isolation of this experiment cannot be put on: [Errno 16] another thread runs already "
        "| --isolation off runs without it",
    ], done.stderr


def _run(task: Task, arrivals: Arrivals, base: Path, env: dict[str, str] | None = None) -> Answer:
    outside, inside = base / "outside", base / "inside"
    outside.mkdir()
    inside.mkdir()
    for name in escaping.ATTEMPTS:
        (outside / name).write_text("kept")
    connection = sqlite3.connect(outside / "database.sqlite")
    connection.execute("CREATE TABLE kept (a)")
    connection.commit()
    connection.close()
    before, n_arrived = _seen(outside), len(arrivals.came)
    given = env if env is not None else reduced({**os.environ, **_PASSWORD}, allow=(), given={})
    said = replace(task, outside=str(outside), inside=str(inside)).run(given)
    after = _seen(outside)
    changed = {name: (before.get(name), after.get(name)) for name in before | after}
    return Answer(
        said, arrivals.came[n_arrived:], {name: (was, now) for name, (was, now) in changed.items() if was != now}
    )


def _seen(folder: Path) -> dict[str, object]:
    return {
        path.name: (
            path.lstat().st_mode,
            path.lstat().st_nlink,
            path.is_file() and path.read_bytes(),
            os.listxattr(path, follow_symlinks=False),
        )
        for path in folder.iterdir()
    }


@contextmanager
def _listening(arrivals: Arrivals, path: str) -> Iterator[None]:
    """Takes what comes by TCP, UDP and local sockets, and notes it before the next one is taken."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        arrivals.port = tcp.getsockname()[1]
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", arrivals.port))
        local = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        for one, address in zip(local, (path, "\0" + path), strict=True):
            one.bind(address)
            one.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(path + ".dgram")
        stop, stopped = socket.socketpair()
        stack.enter_context(stop)
        stack.enter_context(stopped)
        named = {tcp: "stream", udp: "udp", local[0]: "unix", local[1]: "unix", datagrams: "datagram"}
        thread = threading.Thread(target=_take, args=(named, stopped, arrivals))
        thread.start()
        try:
            yield
        finally:
            stop.close()
            thread.join()


def _take(named: dict[socket.socket, str], stopped: socket.socket, arrivals: Arrivals) -> None:
    import selectors

    with selectors.DefaultSelector() as selector:
        for one in (*named, stopped):
            selector.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                one = key.fileobj
                assert isinstance(one, socket.socket)
                if one is stopped:
                    return
                arrivals.came.append(named[one])
                if one.type == socket.SOCK_DGRAM:
                    one.recv(100)
                    continue
                connection = one.accept()[0]
                with connection:
                    connection.settimeout(0.05)
                    try:
                        connection.recv(1000)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                    except OSError:
                        continue
