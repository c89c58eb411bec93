"""What the process of an experiment may still do, and the layers that hold it to that."""

from __future__ import annotations

import errno
import os
import pwd
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentctl.errors import IsolationFailed
from agentctl.sandbox.isolation import kernel, landlock, seccomp
from agentctl.sandbox.isolation.hook import Watch
from agentctl.sandbox.isolation.readable import private_places, readable_places

Level = Literal["strict", "best", "off"]


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a process may still do.

    Attributes:
        proxy_port: The one TCP port, on loopback, that may be connected to; None where nothing may be reached at all.
        writable: Files and folders, which exist, that may be written; a folder with all that is beneath it.
        unreadable: Files and folders that may not be read, beside the keys and passwords in the home of the user.
    """

    proxy_port: int | None = None
    writable: tuple[Path, ...] = ()
    unreadable: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Layers:
    """What holds a process.

    Attributes:
        network: `seccomp`, the kernel, for whatever runs in the process and its children; or `hook`, the audit hook of
            Python, for Python code alone.
        files: The same for writing files.
        n_writable: Number of places that may be written.
        is_proxied: Whether the proxy may be asked.
    """

    network: Literal["seccomp", "hook"]
    files: Literal["landlock", "hook"]
    n_writable: int = 0
    is_proxied: bool = False

    @property
    def is_kernel(self) -> bool:
        """Whether the kernel holds all of it, which is what `strict` asks for."""
        return self.network == "seccomp" and self.files == "landlock"

    @property
    def text(self) -> str:
        """What plan and report say."""
        layers = " + ".join(dict.fromkeys((self.network, self.files))).replace("hook", "audit hook")
        network = "held to the proxy" if self.is_proxied else "closed"
        places = "1 place" if self.n_writable == 1 else f"{self.n_writable} places"
        return f"{layers} (network {network}, writes held to {places})"


def offered(confinement: Confinement | None = None) -> Layers:
    """Returns what this system gives for a confinement; nothing is put on."""
    confinement = confinement or Confinement()
    filters, rules = seccomp.is_available(), landlock.abi()
    is_proxied = confinement.proxy_port is not None
    return Layers(
        network="seccomp" if filters and (not is_proxied or rules >= landlock.HOLDS_PORTS) else "hook",
        files="landlock" if rules >= landlock.HOLDS_TRUNCATE or (rules and filters) else "hook",
        n_writable=len(confinement.writable),
        is_proxied=is_proxied,
    )


def confine(confinement: Confinement, *, refused: Callable[[str], None] = lambda _: None) -> Layers:
    """Holds this process, and all that it starts, to a confinement, for good.

    It is for the first moment of a process: what is open already stays open, and no other thread may run.

    Args:
        confinement: What it may still do.
        refused: Told each attempt that the audit hook stops, such as "reach api.example.com:443".

    Raises:
        IsolationFailed: A layer that `offered` promises could not be put on. The process is to end.
    """
    layers = offered(confinement)
    try:
        _hold_by_kernel(confinement)
    except OSError as error:
        raise IsolationFailed(
            f"the isolation of this experiment cannot be put on: {error}", hint="--isolation off runs without it"
        ) from error
    watch = Watch(
        proxy_port=confinement.proxy_port,
        writable=tuple(path.resolve() for path in confinement.writable),
        may_start=layers.network == "seccomp",
        refused=refused,
    )
    sys.addaudithook(watch.hook)
    return layers


def _hold_by_kernel(confinement: Confinement) -> None:
    filters, rules = seccomp.is_available(), landlock.abi()
    if not filters and not rules:
        return
    if len(list(Path("/proc/self/task").iterdir())) > 1:  # threads of other languages count
        raise OSError(errno.EBUSY, "another thread runs already")
    kernel.give_up_privileges()
    if rules:
        landlock.restrict(
            writable=(*confinement.writable, Path(os.devnull)),
            readable=tuple(readable_places((*confinement.unreadable, *private_places(_home())))),
            port=confinement.proxy_port,
        )
    if filters:
        closed = seccomp.rules(tcp=confinement.proxy_port is not None, truncate=0 < rules < landlock.HOLDS_TRUNCATE)
        seccomp.put_on(closed)


def _home() -> Path:
    """Returns the home of the user, whatever the environment says; a user without one has none of its files kept."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path(os.devnull)
