"""Connections that reach only what the policy allows: the address that was checked is the one that is connected to."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import httpcore

from graphs.research_report.web.addresses import Address, AddressPolicy
from graphs.research_report.web.pages import Unreadable, Why
from graphs.research_report.web.urls import literal_address

Resolver = Callable[[str], Sequence[Address]]


def system_resolver(host: str) -> list[Address]:
    """Returns every address of a host, as the system knows them.

    Raises:
        OSError: there is none, or nobody can say.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(entry[4][0])) for entry in found))


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a fetch must be over, whatever trickles in meanwhile.

    Attributes:
        at_s: In seconds of the clock.
        clock: Returns seconds that only grow.
    """

    at_s: float
    clock: Callable[[], float]

    def left_s(self, timeout_s: float | None = None) -> float:
        """Returns the seconds that are left, at most `timeout_s`.

        Raises:
            Unreadable: none are.
        """
        left = self.at_s - self.clock()
        if left <= 0:
            raise Unreadable(Why.TIMEOUT, "the page took too long")
        return left if timeout_s is None else min(left, timeout_s)


class GuardedBackend(httpcore.NetworkBackend):
    """Opens connections for httpcore, each to an address that was resolved here and checked here.

    Every address that a name has must be allowed: a name that answers with a public and a private one is refused.
    TLS and the Host header go by the name, as httpcore does them.

    Args:
        policy: Which addresses may be asked.
        resolver: Returns the addresses of a name.
        connector: Opens a connection to an address; names never reach it.
        deadline: When the fetch must be over.
    """

    def __init__(
        self, policy: AddressPolicy, resolver: Resolver, connector: httpcore.NetworkBackend, deadline: Deadline
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._connector = connector
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connects to the first address that answers.

        Raises:
            Unreadable: an address is forbidden, or there is none.
            httpcore.ConnectError: none answers.
        """
        addresses = self._checked(host, port)
        problem: Exception | None = None
        for address in addresses:
            try:
                left_s = self._deadline.left_s(timeout)
                stream = self._connector.connect_tcp(str(address), port, left_s, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
                continue
            return TimedStream(stream, self._deadline)
        raise httpcore.ConnectError(f"{host} does not answer") from problem

    def _checked(self, host: str, port: int) -> Sequence[Address]:
        literal = literal_address(host)
        try:
            addresses = self._resolver(host) if literal is None else [literal]
        except OSError as error:
            raise Unreadable(Why.UNAVAILABLE, f"{host} has no address") from error
        if not addresses:
            raise Unreadable(Why.UNAVAILABLE, f"{host} has no address")
        for address in addresses:
            if problem := self._policy.problem(address, port):
                where = host if literal is None else "it"
                raise Unreadable(Why.ADDRESS, f"{where} is at {address}: {problem}")
        return addresses


class TimedStream(httpcore.NetworkStream):
    """A stream on which nothing outlasts the deadline, not even a body or headers that trickle in byte by byte."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Reads what is there."""
        return self._stream.read(max_bytes, self._deadline.left_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Writes all of it."""
        self._stream.write(buffer, self._deadline.left_s(timeout))

    def close(self) -> None:
        """Closes the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Speaks TLS from here on."""
        secured = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left_s(timeout))
        return TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Returns what the connection knows of itself."""
        return self._stream.get_extra_info(info)
