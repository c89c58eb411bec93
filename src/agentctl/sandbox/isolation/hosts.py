"""The places on the network that an experiment may reach, as `HOST:PORT`."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from agentctl.errors import UsageError

_DEFAULT_PORT: Final = 443
_FORM: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]?#]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_LABELS: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*")
_MAX_HOST_CHARS: Final = 253


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host in one spelling (small letters, ASCII, no dot at its end) and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, *, default_port: int | None = _DEFAULT_PORT) -> HostPort:
        """Returns what `HOST:PORT`, `HOST` or `[IPV6]:PORT` means.

        Args:
            text: What was given.
            default_port: The port of a host that is named alone; None where a port has to be named.

        Raises:
            UsageError: It is none of the forms.
        """
        form = _FORM.fullmatch(text.strip())
        port = (int(form["port"]) if form["port"] else default_port) if form else None
        host = _one_spelling(form["host"]) if form else None
        if host is None or port is None or not 0 < port < 2**16:
            raise UsageError(f"this is no HOST:PORT: {text!r}", hint="--allow-host api.example.com:443")
        return cls(host, port)


def _one_spelling(host: str) -> str | None:
    """Returns a host as it is compared; None where it can be none."""
    literal = host.strip("[]")
    try:
        return ipaddress.ip_address(literal).compressed
    except ValueError:
        pass
    if literal != host:
        return None
    try:
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return None
    return name if len(name) <= _MAX_HOST_CHARS and _LABELS.fullmatch(name) else None
