"""One spelling for each address of the web."""

from __future__ import annotations

import re
import string
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import SplitResult, quote, unquote_to_bytes, urljoin, urlsplit, urlunsplit

import idna

from graphs.research_report.web.addresses import Address
from graphs.research_report.web.pages import Unreadable, Why

MAX_URL_CHARS = 2000
_DEFAULT_PORTS = {"http": 80, "https": 443}
_TRACKING = re.compile(
    "g(clid|clsrc|braid)|wbraid|(d|fb|tw|tt|y)clid|msclkid|igshid|li_fat_id|mc_(cid|eid)|mkt_tok|_(ga|gl|hsenc|hsmi)"
    "|ref_(src|url)|s_cid|wickedid|(utm|mtm|pk|hsa|oly|vero)_.*"
)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset((string.ascii_letters + string.digits + "-._~").encode())
_PATH_SAFE = "/!$&'()*+,;=:@%"
_QUERY_SAFE = "/?!$&'()*+,;=:@%[]|"
# As inet_aton reads them: hexadecimal, octal, decimal.
_NUMBERS = (
    (re.compile("0[xX]([0-9a-fA-F]*)"), 16),
    (re.compile("0([0-7]+)"), 8),
    (re.compile("(0|[1-9][0-9]{0,99})"), 10),
)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")


def normalise(url: str) -> str:
    """Returns the one spelling of an http or https URL.

    Scheme and host are lower case and the host is in ASCII, an IP address is in its usual form however it was written,
    default port, trailing dot, fragment and tracking parameters are gone, dot segments are resolved, and only those
    characters are escaped that have to be. The order of parameters is kept: it may mean something.

    Raises:
        Unreadable: it is no such URL, or holds what only serves to deceive: credentials, control characters,
            backslashes.
    """
    text = url.strip()
    if len(text) > MAX_URL_CHARS:
        raise Unreadable(Why.URL, f"it is longer than {MAX_URL_CHARS} characters")
    if _FORBIDDEN.search(text):
        raise Unreadable(Why.URL, "it holds a space, a control character or a backslash")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise Unreadable(Why.URL, f"it cannot be read: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise Unreadable(Why.URL, f"{parts.scheme or 'no scheme'}: only http and https are read")
    if "@" in parts.netloc:
        raise Unreadable(Why.URL, "it holds credentials")
    host = _netloc(normal_host(parts.hostname or ""), port, _DEFAULT_PORTS[parts.scheme])
    path = _without_dots(_escaped(parts.path, _PATH_SAFE)) or "/"
    return urlunsplit(SplitResult(parts.scheme, host, path, _query(parts.query), ""))


def resolved(base: str, target: str) -> str:
    """Returns the normalised URL that a redirect leads to.

    Args:
        base: Where it was met.
        target: What it says: a URL, or a part of one.

    Raises:
        Unreadable: it leads nowhere that may be read.
    """
    try:
        return normalise(urljoin(base, target.strip()))
    except ValueError as error:
        raise Unreadable(Why.URL, f"it redirects to what is no URL: {error}") from error


def normal_host(host: str) -> str:
    """Returns a host in ASCII and lower case, or an IP address in its usual form, without brackets.

    Raises:
        Unreadable: it is neither a name nor an address.
    """
    if ":" in host:
        return str(_ipv6(host))
    try:
        name = idna.encode(unquote_to_bytes(host).decode(), uts46=True, std3_rules=False).decode()
    except (idna.IDNAError, UnicodeError):
        name = unquote_to_bytes(host).decode(errors="replace")
    name = name.lower().removesuffix(".")
    address = literal_address(name)
    if address is not None:
        return str(address)
    if not name or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise Unreadable(Why.URL, f"{host!r} is not a host")
    return name


def literal_address(host: str) -> Address | None:
    """Returns the address that a host is written as, None for a name.

    IPv4 in every spelling that a resolver would take: one to four parts, each decimal, octal or hexadecimal.

    Raises:
        Unreadable: it ends in a number and is no address.
    """
    if ":" in host:
        return _ipv6(host)
    parts = host.split(".")
    if not re.fullmatch("[0-9]+|0[xX][0-9a-fA-F]*", parts[-1]):
        return None
    numbers = [_number(part) for part in parts]
    last_limit = 256 ** (5 - len(numbers)) if len(numbers) <= 4 else 0
    if any(number is None for number in numbers):
        raise Unreadable(Why.URL, f"{host!r} is not an address")
    known = [number for number in numbers if number is not None]
    if any(number > 255 for number in known[:-1]) or known[-1] >= last_limit:
        raise Unreadable(Why.URL, f"{host!r} is not an address")
    leading = sum(number * 256 ** (3 - place) for place, number in enumerate(known[:-1]))
    return IPv4Address(leading + known[-1])


def _number(text: str) -> int | None:
    """Returns the number that a part of an address is, None where it is none; no name is long enough to be slow."""
    for form, base in _NUMBERS:
        if found := form.fullmatch(text):
            return int(found[1] or "0", base)
    return None


def _ipv6(host: str) -> IPv6Address:
    try:
        address = IPv6Address(host)
    except AddressValueError as error:
        raise Unreadable(Why.URL, f"{host!r} is not an address") from error
    if address.scope_id is not None:
        raise Unreadable(Why.URL, f"{host!r} names an interface of this machine")
    return address


def _netloc(host: str, port: int | None, default: int) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port in (None, default) else f"{bracketed}:{port}"


def _query(query: str) -> str:
    kept = (part for part in query.split("&") if part and not _is_tracking(part.partition("=")[0]))
    return "&".join(_escaped(part, _QUERY_SAFE) for part in kept)


def _is_tracking(name: str) -> bool:
    return bool(_TRACKING.fullmatch(unquote_to_bytes(name).decode(errors="replace").lower()))


def _escaped(text: str, safe: str) -> str:
    """Escapes what must be, upper case, and undoes escapes that need not be; a lone `%` is one that must be."""

    def one(match: re.Match[str]) -> str:
        byte = int(match[0][1:], 16)
        return chr(byte) if byte in _UNRESERVED else match[0].upper()

    lone = re.sub("%(?![0-9A-Fa-f]{2})", "%25", text)
    return quote(_ESCAPE.sub(one, lone), safe=safe)


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept) if path else ""
