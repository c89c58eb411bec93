"""The proxy in the parent through which an experiment reaches the hosts that it may, and no others."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from agentctl.sandbox.isolation.hosts import HostPort

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

    Args:
        allowed: What may be reached.
        environ: Where HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name a proxy that this machine needs itself.
    """
    yield Proxy(0, "")
