"""A time in which this process reaches nothing: no address looked up, no connection made, no program started.

It works through an audit hook, which cannot be taken away again once it is there; so there is one for the process, and
it is asleep outside such times. What C libraries do without Python it does not see.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_EVENTS: Final = {
    "socket.connect": "connect",
    "socket.getaddrinfo": "look up",
    "socket.gethostbyname": "look up",
    "socket.sendto": "send to",
    "socket.sendmsg": "send to",
    "subprocess.Popen": "start",
    "os.posix_spawn": "start",
    "os.system": "start",
}
"""Source: the table of audit events of CPython 3.11."""


class ReachedOut(RuntimeError):
    """Code reached for the outside in a time in which nothing may be reached."""


class _Watch:
    def __init__(self) -> None:
        self.depth = 0
        self.is_installed = False

    def hook(self, event: str, args: tuple[object, ...]) -> None:
        if self.depth and event in _EVENTS:
            raise ReachedOut(f"tried to {_EVENTS[event]} {_target(event, args)}")


_WATCH: Final = _Watch()


@contextmanager
def offline() -> Generator[None]:
    """Raises ReachedOut inside whatever reaches for the outside, in all threads, for the time of the block."""
    if not _WATCH.is_installed:
        sys.addaudithook(_WATCH.hook)
        _WATCH.is_installed = True
    _WATCH.depth += 1
    try:
        yield
    finally:
        _WATCH.depth -= 1


def _target(event: str, args: tuple[object, ...]) -> str:
    """Returns what was reached for: the host and port, or the program."""
    if event.startswith("socket."):
        address = args[1] if event in ("socket.connect", "socket.sendto", "socket.sendmsg") else args[0]
        return ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)
    return str(args[0])
