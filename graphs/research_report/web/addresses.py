"""Which network addresses may be asked: a policy that is a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# The tables of the standard library change between patch releases of Python, and call NAT64 addresses global:
# a rule that protects must not depend on either. Sources: the IANA special-purpose registries of IPv4 and IPv6.
_NOT_PUBLIC: dict[str, tuple[str, ...]] = {
    "an unspecified address": ("0.0.0.0/32", "::/128"),
    "a loopback address": ("127.0.0.0/8", "::1/128"),
    "a link-local address": ("169.254.0.0/16", "fe80::/10"),
    "a private address": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"),
    "a multicast address": ("224.0.0.0/4", "ff00::/8"),
    "an IPv4-mapped address": ("::ffff:0:0/96", "::ffff:0:0:0/96"),
    "a NAT64 address": ("64:ff9b::/96", "64:ff9b:1::/48"),
    "a tunnel's address": ("2002::/16", "2001::/32", "192.88.99.0/24"),
    "a documentation address": (
        "192.0.2.0/24",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "2001:db8::/32",
        "3fff::/20",
    ),
    "a reserved address": ("0.0.0.0/8", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "2001::/23"),
}
_GLOBAL_UNICAST = IPv6Network("2000::/3")


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Which addresses and ports may be asked.

    Attributes:
        refused: Networks that may not be, each with what its addresses are called.
        ports: The ports that may be asked.
        allowed: Exceptions: networks that may be asked although they are refused otherwise.
    """

    refused: tuple[tuple[Network, str], ...]
    ports: frozenset[int]
    allowed: tuple[Network, ...] = ()

    def problem(self, address: Address, port: int) -> str | None:
        """Returns what forbids an address, None where nothing does."""
        if port not in self.ports:
            return f"port {port} may not be asked"
        if any(address in network for network in self.allowed):
            return None
        named = next((name for network, name in self.refused if address in network), None)
        if named is None and address.version == 6 and address not in _GLOBAL_UNICAST:
            named = "a reserved address"
        return named

    def except_for(self, networks: Iterable[str]) -> AddressPolicy:
        """Returns this policy with networks that may be asked as well."""
        return replace(self, allowed=(*self.allowed, *map(ip_network, networks)))


PUBLIC_ONLY = AddressPolicy(
    refused=tuple((ip_network(text), name) for name, texts in _NOT_PUBLIC.items() for text in texts),
    ports=frozenset({80, 443}),
)
