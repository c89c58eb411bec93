"""IP addresses: IPv4 becomes one of 240.0.0.0/4, IPv6 one of 2001:db8::/32.

The three documentation networks of IPv4 hold 762 addresses, too few to keep different ones different; 240.0.0.0/4 is
reserved, nothing on the internet has such an address, and it has 268 million. A mask (`/24`) stays.

Source: RFC 1112 section 4 and the IANA IPv4 special-purpose registry; RFC 3849.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from agentctl.masking.keys import Key
from agentctl.masking.tokens.draws import Draws

_IPV4: Final = ipaddress.IPv4Network("240.0.0.0/4")
_IPV6: Final = ipaddress.IPv6Network("2001:db8::/32")
_HOST_BITS: Final = 64


def ip_token(address: str, key: Key, attempt: int) -> str:
    """Returns an address of the same version that nothing has."""
    draws = Draws(key, "ip", address, attempt)
    if ":" not in address:
        return str(_IPV4[1 + draws.below(_IPV4.num_addresses - 2)])
    return str(_IPV6[1 + draws.below(1 << _HOST_BITS)])
