"""The process of an experiment as its parent sees it: started with next to nothing, and ended whatever it does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from agentctl.experiments.isolated.channel import Channel
from agentctl.sandbox.isolation.confinement import Confinement

INTERRUPTED_S: Final = 5.0
"""How long a child may take to end its runs after Ctrl-C."""

_LINE_CHARS: Final = 64 * 1024
_PUMPED_S: Final = 1.0
"""How long what a child printed is waited for once it has ended: a program that it started may hold its output open."""

_CHILD: Final = "agentctl.experiments.isolated.child"


@dataclass(frozen=True, slots=True)
class Folders:
    """The private folders of one child.

    Attributes:
        work: Its working folder, home and place for temporary files; empty when it starts.
        runs: Where its debug threads are while they run.
        handed: Where the parent puts the rows that it copies; the child only reads there.
    """

    work: Path
    runs: Path
    handed: Path

    @property
    def scratch(self) -> Path:
        """The file of its debug threads."""
        return self.runs / "runs.sqlite"

    @property
    def writable(self) -> tuple[Path, ...]:
        """What it may write."""
        return self.work, self.runs


@dataclass(frozen=True, slots=True)
class Child:
    """A running child, its folders, and the channel to it."""

    process: subprocess.Popen[str]
    folders: Folders
    channel: Channel
    pump: threading.Thread

    def interrupt(self) -> None:
        """Does to it what Ctrl-C does to a command; it has a moment to end its runs."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(INTERRUPTED_S)
        self.end()

    def end(self, *, patience_s: float = 0.0) -> int:
        """Ends it and whatever it started in its group; returns how it ended.

        Args:
            patience_s: How long it may take to end by itself.
        """
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self.pump.join(_PUMPED_S)
        return code


@contextmanager
def private_folders() -> Iterator[Folders]:
    """Makes the folders of a child, for its user alone; they are gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="agentctl-", ignore_cleanup_errors=True) as name:
        base = Path(name).resolve()
        folders = Folders(base / "work", base / "runs", base / "handed")
        for folder in (folders.work, folders.runs, folders.handed):
            folder.mkdir(mode=0o700)
        yield folders
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def started(
    folders: Folders, confinement: Confinement, environ: Mapping[str, str], on_output: Callable[[str], None]
) -> Iterator[Child]:
    """Starts a child, and ends it with the block.

    It has a process group and a session of its own, so no terminal, and nothing that is open here but its end of the
    channel.

    Args:
        folders: Its folders.
        confinement: What it confines itself to.
        environ: All of its environment.
        on_output: Given what the code of the graph prints, line by line, from another thread.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        allowed = {
            "proxy_port": confinement.proxy_port,
            "writable": list(map(str, confinement.writable)),
            "unreadable": list(map(str, confinement.unreadable)),
        }
        words = [str(theirs.fileno()), json.dumps(allowed), str(os.getpid())]
        process = subprocess.Popen(
            [sys.executable, "-u", "-P", "-m", _CHILD, *words],
            cwd=folders.work,
            env={**environ, "HOME": str(folders.work), "TMPDIR": str(folders.work)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            close_fds=True,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        assert process.stdout is not None
        pump = threading.Thread(target=_pump, args=(process.stdout, on_output), name="agentctl-output", daemon=True)
        pump.start()
        child = Child(process, folders, Channel(ours), pump)
        try:
            yield child
        finally:
            child.end()
            if not pump.is_alive():
                process.stdout.close()


def _pump(output: IO[str], on_output: Callable[[str], None]) -> None:
    with suppress(ValueError, OSError):
        while line := output.readline(_LINE_CHARS):
            on_output(line)
