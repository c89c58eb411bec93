"""The audit hook that says what a confined process tried and what allows it.

Where the kernel holds the process the hook only says it better; elsewhere it is what holds it, for Python code.

Source: the table of audit events of CPython 3.11.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

Event = tuple[object, ...]
"""The arguments of an audit event."""

_LOOK_UPS: Final = frozenset(
    {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
)
_TALKS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_STARTS: Final = frozenset({"subprocess.Popen", "os.posix_spawn", "os.system", "os.exec", "pty.spawn"})
_CHANGES: Final = {
    "os.remove": (0,), "os.rmdir": (0,), "os.mkdir": (0,), "os.truncate": (0,), "os.rename": (0, 1), "os.link": (1,),
    "os.symlink": (1,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,), "os.setxattr": (0,),
    "os.removexattr": (0,), "shutil.rmtree": (0,), "shutil.move": (0, 1),
}  # fmt: skip
"""Which arguments are paths that are changed."""

_WITHOUT_FOLDER: Final = frozenset({"os.truncate", "os.setxattr", "os.removexattr"})
"""Events of `os` whose last argument is no descriptor of a folder that paths are relative to, -1 for none."""

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_HERE: Final = "127.0.0.1"
_HARMLESS_FAMILIES: Final = frozenset({-1, int(socket.AF_UNIX), int(getattr(socket, "AF_NETLINK", -1))})
_KIND_MASK: Final = 0xF
_PORTS: Final = {"http": 80, "https": 443}
_DEVICE: Final = Path(os.devnull)

_SWITCH: Final = "--isolation off"


class Confined(PermissionError):
    """Code tried what the isolation of its experiment does not allow."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What a hook goes by.

    Attributes:
        proxy_port: The one port that may be connected to, or None.
        writable: Real paths of what may be written, with all beneath.
        may_start: Whether programs may be started: the kernel holds them too.
        refused: Told each attempt that is stopped.
    """

    proxy_port: int | None
    writable: tuple[Path, ...]
    may_start: bool
    refused: Callable[[str], None] = field(compare=False)

    def hook(self, event: str, args: Event) -> None:
        """Raises Confined where an event is of something that is not allowed. For `sys.addaudithook`."""
        if event.startswith("socket."):
            self._network(event, args)
        elif event == "open" or event in _CHANGES:
            for path in _changed(event, args):
                if not self._may_write(path):
                    self._refuse(f"write {os.fsdecode(path)}", _SWITCH)
        elif event in _STARTS and not self.may_start:
            self._refuse(f"start {_program(args)}: on this system it would not be held", _SWITCH)

    def _network(self, event: str, args: Event) -> None:
        if event in _TALKS:
            self._talk(args[1] if len(args) > 1 else None)
        elif event in _LOOK_UPS:
            self._look_up(event, args)
        elif event == "socket.__new__":
            self._open(args)
        elif event == "socket.bind":
            self._refuse(f"listen at {_shown(args[1])}", _SWITCH)

    def _talk(self, address: object) -> None:
        if address is None or address == (_HERE, self.proxy_port):
            return
        if isinstance(address, tuple):
            self._refuse_host(*address[:2])
        self._refuse(f"reach the socket {_shown(address)}", _SWITCH)

    def _look_up(self, event: str, args: Event) -> None:
        host, port = args[0], args[1] if event == "socket.getaddrinfo" else None
        if isinstance(host, tuple):
            host, port = host[:2]
        if host and (_shown(host), _shown(port)) != (_HERE, str(self.proxy_port)):
            self._refuse_host(host, port)

    def _open(self, args: Event) -> None:
        _, family, kind, protocol = args
        if family in _HARMLESS_FAMILIES:
            return
        is_inet = family in (socket.AF_INET, socket.AF_INET6)
        is_tcp = isinstance(kind, int) and kind & _KIND_MASK == socket.SOCK_STREAM and protocol in (0, -1, 6)
        if not is_inet or not is_tcp:
            self._refuse(f"open a socket that is not plain TCP ({family}, {kind}, {protocol})", _SWITCH)
        if self.proxy_port is None:
            self._refuse("open a network socket", f"--allow-host HOST:PORT, or {_SWITCH}")

    def _refuse_host(self, host: object, port: object) -> None:
        name, number = _shown(host), _PORTS.get(_shown(port), port) or _PORTS["https"]
        place = f"[{name}]:{number}" if ":" in name else f"{name}:{number}"
        # It came past the proxy, where there is one: the host may be allowed, and its client not know of proxies.
        clients = "" if self.proxy_port is None else " for clients that go by HTTPS_PROXY"
        self._refuse(f"reach {place}", f"--allow-host {place}{clients}, or {_SWITCH}")

    def _refuse(self, what: str, allowed_by: str) -> None:
        self.refused(what)
        raise Confined(errno.EACCES, f"isolation: an experiment may not {what} (allowed by {allowed_by})")

    def _may_write(self, path: str | bytes) -> bool:
        place = Path(os.path.realpath(os.fsdecode(path)))
        return place == _DEVICE or any(place.is_relative_to(inside) for inside in self.writable)


def _changed(event: str, args: Event) -> Iterator[str | bytes]:
    """Yields the paths that an event changes. One that is relative to an open folder is for the kernel to judge."""
    if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITES):
        return
    folder = args[-1] if event.startswith("os.") and event not in _WITHOUT_FOLDER else -1
    for index in (0,) if event == "open" else _CHANGES[event]:
        path = args[index]
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if isinstance(path, str | bytes) and (folder in (-1, None) or Path(os.fsdecode(path)).is_absolute()):
            yield path


def _shown(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, str | bytes) else str(value)


def _program(args: Event) -> str:
    return _shown(args[0]) if args and args[0] else "a program"
