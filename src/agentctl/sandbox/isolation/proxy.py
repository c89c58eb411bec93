"""The proxy in the parent through which an experiment reaches the hosts that it may, and no others."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from agentctl.errors import IsolationFailed
from agentctl.sandbox.isolation.hosts import HostPort
from agentctl.sandbox.isolation.relay import MAX_HEAD_BYTES, Gate, serve
from agentctl.sandbox.isolation.upstream import own_proxy

_HERE: Final = "127.0.0.1"
_PLAIN_PORT: Final = 80
_SECRET_BYTES: Final = 24
_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy.

    Attributes:
        port: Its TCP port on 127.0.0.1.
        url: What a client needs to use it, with the password of this one run.
        passed: How often each `host:port` was reached.
        refused: How often each `host:port` was refused.
    """

    port: int
    url: str
    passed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that lead clients here, in both spellings."""
        return {name: self.url for upper in _VARIABLES for name in (upper, upper.lower())}


@contextmanager
def proxy(allowed: Collection[HostPort], *, environ: Mapping[str, str] = os.environ) -> Iterator[Proxy]:
    """Serves the allowed hosts from a port on loopback until the block ends.

    A client has to know the password in the URL. It asks for a tunnel (CONNECT) or for an address of `http://`; hosts
    are looked up here, and what a request says is passed on, with no credentials added. Connections that are open when
    the block ends are cut off.

    Args:
        allowed: What may be reached.
        environ: Where HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name a proxy that this machine needs itself.

    Raises:
        ConfigError: One of those is a proxy that cannot be chained.
    """
    for place in allowed:
        own_proxy(place, "http" if place.port == _PLAIN_PORT else "https", environ)
    credential = f"agentctl:{secrets.token_urlsafe(_SECRET_BYTES)}"
    gate = Gate(frozenset(allowed), credential, dict(environ), Counter(), Counter())
    started: Future[tuple[int, Callable[[], None]]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(gate, started)), name="agentctl-proxy", daemon=True)
    thread.start()
    port, stop = started.result()
    try:
        yield Proxy(port, f"http://{credential}@{_HERE}:{port}", gate.passed, gate.refused)
    finally:
        stop()
        thread.join()


async def _serve(gate: Gate, started: Future[tuple[int, Callable[[], None]]]) -> None:
    """Serves until it is told to stop; `started` is given the port and what stops it."""
    stopped = asyncio.Event()
    try:
        server = await asyncio.start_server(partial(serve, gate=gate), _HERE, 0, limit=MAX_HEAD_BYTES)
    except OSError as error:
        started.set_exception(IsolationFailed(f"no port for the proxy of this experiment: {error}"))
        return
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.call_soon_threadsafe(stopped.set)

    started.set_result((server.sockets[0].getsockname()[1], stop))
    try:
        await stopped.wait()
    finally:
        server.close()
