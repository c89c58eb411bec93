"""Real `agentctl` processes, forked from one that has loaded it and has no threads: Python and LangGraph load once.

That process is this module, run with `-m`. A message on its socket is a JSON list of a folder, an environment and the
words of a command, with what the command gets as stdout and stderr and a pipe for what comes of it: its process id,
and when it has ended its exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TextIO

REPOSITORY = Path(__file__).parents[2]
_LOADED = (
    "agentctl.cli.main",
    "agentctl.cli.opening",
    "agentctl.experiments.application",
    "agentctl.experiments.workflows.runs",
    "agentctl.sandbox.registries",
    "agentctl.stores.sqlite.reader",
    "langchain.agents",
    "langgraph.checkpoint.postgres",
    "langgraph.checkpoint.sqlite",
)
_MESSAGE_BYTES = 1 << 20


class Forks:
    """Starts commands in processes of their own."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forked", str(theirs.fileno())],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def start(self, words: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> Forked:
        """Starts `agentctl` with these words."""
        pipes = [os.pipe() for _ in range(3)]
        socket.send_fds(self._socket, [json.dumps([str(cwd), dict(environ), *words]).encode()], [w for _, w in pipes])
        for _, write_end in pipes:
            os.close(write_end)
        return Forked(*(os.fdopen(read_end, encoding="utf-8") for read_end, _ in pipes))

    def close(self) -> None:
        """Ends the process that they are forked from."""
        self._socket.close()
        self._parent.wait()


class Forked:
    """A process that runs a command, as `subprocess.Popen` would show it; its output fits into a pipe."""

    def __init__(self, stdout: TextIO, stderr: TextIO, told: TextIO) -> None:
        self.stdout, self.stderr, self._told = stdout, stderr, told
        self.returncode: int | None = None
        self._pid = int(told.readline())

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wait()
        for stream in (self.stdout, self.stderr, self._told):
            stream.close()

    def send_signal(self, number: int) -> None:
        """Sends it a signal unless it was seen to have ended."""
        if self.returncode is None:
            os.kill(self._pid, number)

    def kill(self) -> None:
        """Ends it at once, where it still runs."""
        if self.returncode is None and not select.select([self._told], [], [], 0)[0]:
            self.send_signal(signal.SIGKILL)

    def wait(self, timeout_s: float | None = None) -> int:
        """Returns its exit code, or the number of the signal that ended it, negative."""
        if self.returncode is None:
            assert select.select([self._told], [], [], timeout_s)[0], f"still runs after {timeout_s} s"
            self.returncode = int(self._told.readline())
        return self.returncode

    def communicate(self, timeout_s: float) -> tuple[str, str]:
        """Waits for its end and returns the rest of its stdout and stderr."""
        with self:
            self.wait(timeout_s)
            return self.stdout.read(), self.stderr.read()


def _serve(asked: socket.socket) -> None:
    for name in _LOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for the commands
    while True:
        message, streams, _, _ = socket.recv_fds(asked, _MESSAGE_BYTES, 3)
        if not message:
            return
        if os.fork() == 0:
            asked.close()
            _keep(message, *streams)
        for stream in streams:
            os.close(stream)


def _keep(message: bytes, stdout: int, stderr: int, told: int) -> None:
    """Forks the command, tells its id and its end, and never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        os.close(told)
        _become(message, stdout, stderr)
    os.close(stdout)
    os.close(stderr)
    os.write(told, f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(message: bytes, stdout: int, stderr: int) -> None:
    """Runs the command, and never returns to what it was forked in."""
    from agentctl.cli.main import run

    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.close(stdout)
    os.close(stderr)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
    cwd, environ, *words = json.loads(message)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["agentctl", *words]
    # A test run in the background of a shell ignores SIGINT, and its children would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code: object = 1
    try:
        run()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as _asked:
        _serve(_asked)
