"""Nothing but public addresses is connected to, whatever a page, a name or a redirect says."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.web.network import RECORDED_POLICY
from graphs.research_report.web.addresses import PUBLIC_ONLY
from graphs.research_report.web.downloading import Network
from graphs.research_report.web.fetching import Fetcher
from tests.support.certificates import Authority
from tests.support.web import NOT_FOUND, PUBLIC, TEXT, TODAY, Wire, html, http, wired

PRIVATE = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "reserved",
    "10.0.0.1": "private",
    "100.64.0.1": "private",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.169.254": "link-local",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.8": "reserved",
    "192.0.2.1": "documentation",
    "192.88.99.1": "tunnel",
    "192.168.0.1": "private",
    "198.18.0.1": "reserved",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::127.0.0.1": "reserved",
    "::ffff:127.0.0.1": "IPv4-mapped",
    "::ffff:8.8.8.8": "IPv4-mapped",
    "::ffff:0:127.0.0.1": "IPv4-mapped",
    "64:ff9b::127.0.0.1": "NAT64",
    "64:ff9b::8.8.8.8": "NAT64",
    "64:ff9b:1::7f00:1": "NAT64",
    "100::1": "reserved",
    "2001::1": "tunnel",
    "2001:10::1": "reserved",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "tunnel",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fe80::1": "link-local",
    "fe80::1%1": "link-local",
    "fec0::1": "private",
    "ff02::1": "multicast",
}
ALLOWED = ("8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001:810::200e")


@pytest.mark.parametrize(("address", "kind"), PRIVATE.items())
def test_production_refuses_what_is_not_public(address: str, kind: str) -> None:
    assert kind in str(PUBLIC_ONLY.problem(ip_address(address), 443))


@pytest.mark.parametrize("address", ALLOWED)
def test_production_allows_what_is_public(address: str) -> None:
    assert PUBLIC_ONLY.problem(ip_address(address), 443) is None


@pytest.mark.parametrize("port", [22, 25, 6379, 8080, 0])
def test_production_asks_the_ports_of_the_web_alone(port: int) -> None:
    assert PUBLIC_ONLY.problem(ip_address("8.8.8.8"), port) == f"port {port} may not be asked"


@given(st.ip_addresses())
def test_nothing_that_the_standard_library_calls_private_is_allowed(address: IPv4Address | IPv6Address) -> None:
    is_allowed = PUBLIC_ONLY.problem(address, 443) is None
    assert not (is_allowed and (address.is_private or address.is_multicast or address.is_reserved))


def test_the_recorded_policy_is_productions_but_for_documentation_addresses() -> None:
    others = {address for address in PRIVATE if RECORDED_POLICY.problem(ip_address(address), 443) is None}
    assert others == {"2001:db8::1"}


@pytest.mark.parametrize("address", [*PRIVATE])
def test_a_name_that_leads_to_a_private_address_is_never_connected_to(address: str) -> None:
    wire = Wire(lambda _: NOT_FOUND)
    page = wired(wire, {"a.example": [address]}, policy=PUBLIC_ONLY).fetch("https://a.example/")
    assert (page.text, str(page.reason).partition(":")[0], wire.connected) == (None, "address", [])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0177.1",
        "127.1",
        "0",
        "127.0.0.1.",
        "１２７.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "0xa9fea9fe",
        "[fe80::1]",
        "[fd00::1]",
        "10.1",
        "224.0.0.1",
    ],
)
def test_an_address_in_a_url_is_checked_in_every_spelling(host: str) -> None:
    wire = Wire(lambda _: NOT_FOUND)
    page = wired(wire, lambda _: pytest.fail("an address is not resolved")).fetch(f"http://{host}/")
    assert str(page.reason).startswith("address: it is at ")
    assert wire.connected == []


@pytest.mark.parametrize(
    "addresses", [(PUBLIC, "10.0.0.1"), ("10.0.0.1", PUBLIC), (PUBLIC, "::1"), (PUBLIC, "::ffff:10.0.0.1")]
)
def test_a_name_with_one_private_address_among_public_ones_is_refused(addresses: tuple[str, ...]) -> None:
    wire = Wire(lambda _: NOT_FOUND)
    page = wired(wire, {"a.example": addresses}).fetch("https://a.example/")
    assert str(page.reason).startswith("address: ")
    assert wire.connected == []


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST", "foo.localhost"])
def test_names_of_this_machine_are_refused_when_they_are_resolved(host: str) -> None:
    wire = Wire(lambda _: NOT_FOUND)
    names = {"localhost": ["127.0.0.1"], "foo.localhost": ["::1"]}
    assert "loopback" in str(wired(wire, names).fetch(f"http://{host}/").reason)
    assert wire.connected == []


def test_the_address_that_was_checked_is_the_one_that_is_connected_to() -> None:
    """A name that answers differently each time is asked once for each connection, and each answer is checked."""
    asked = iter([[PUBLIC], ["203.0.113.2"], ["127.0.0.1"]])
    wire = Wire(lambda address: NOT_FOUND if address == PUBLIC else http(b"", "302 Found", location="/next"))
    page = wired(wire, lambda _: next(asked)).fetch("http://rebinding.example/")
    assert page.reason == "address: rebinding.example is at 127.0.0.1: a loopback address"
    assert wire.connected == [(PUBLIC, 80), ("203.0.113.2", 80)]


def test_a_name_that_changes_between_check_and_connection_gains_nothing() -> None:
    asked = iter([[PUBLIC], ["127.0.0.1"]])
    wire = Wire(lambda _: NOT_FOUND)
    assert str(wired(wire, lambda _: next(asked)).fetch("http://rebinding.example/").reason).startswith("address: ")
    assert wire.connected == [(PUBLIC, 80)]


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:169.254.169.254]/",
        "//intranet.example/",
        "http://intranet.example./",
        "https://mixed.example/",
    ],
)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_each_redirect_is_checked_again(target: str, status: str) -> None:
    wire = Wire(lambda address: NOT_FOUND if not wire.sent[1:] else http(b"", status, location=target))
    names = {"a.example": [PUBLIC], "intranet.example": ["10.0.0.7"], "mixed.example": [PUBLIC, "10.0.0.7"]}
    page = wired(wire, names).fetch("http://a.example/")
    assert (page.url, str(page.reason).partition(":")[0]) == ("http://a.example/", "address")
    assert {address for address, _ in wire.connected} == {PUBLIC}


def test_a_redirect_of_robots_txt_is_checked_too() -> None:
    wire = Wire(lambda _: http(b"", "302 Found", location="http://169.254.169.254/robots.txt"))
    page = wired(wire, {"a.example": [PUBLIC]}).fetch("http://a.example/")
    assert page.reason == "address: it is at 169.254.169.254: a link-local address"
    assert wire.connected == [(PUBLIC, 80)]


def test_a_redirect_to_another_port_is_refused() -> None:
    wire = Wire(
        lambda address: NOT_FOUND if not wire.sent[1:] else http(b"", "302 Found", location="//a.example:6379/")
    )
    assert "port 6379" in str(wired(wire, {"a.example": [PUBLIC]}).fetch("http://a.example/").reason)


def test_host_header_and_server_name_stay_the_names() -> None:
    wire = Wire(lambda _: http(html()))
    page = wired(wire, {"a.example": [PUBLIC]}).fetch("https://a.example/x?utm_source=y")
    assert page.text == TEXT
    assert wire.connected == [(PUBLIC, 443)] * 2
    assert wire.server_names == ["a.example"] * 2
    assert b"GET /x HTTP/1.1\r\nHost: a.example\r\n" in b"".join(wire.sent)


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    wire = Wire(lambda _: http(html()), refusing=frozenset({PUBLIC}))
    page = wired(wire, {"a.example": [PUBLIC, "203.0.113.2"]}).fetch("https://a.example/")
    assert page.text == TEXT
    assert {address for address, _ in wire.connected} == {"203.0.113.2"}


def test_a_name_without_an_address_is_unavailable() -> None:
    def nobody(host: str) -> list[str]:
        raise OSError("no such host")

    assert (
        wired(Wire(lambda _: NOT_FOUND), nobody).fetch("https://a.example/").reason
        == "unavailable: a.example has no address"
    )
    assert (
        wired(Wire(lambda _: NOT_FOUND), {}).fetch("https://a.example/").reason
        == "unavailable: a.example has no address"
    )


def test_production_does_not_read_this_machine() -> None:
    """With nothing passed in: the real resolver, the real connector, the policy of production."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"):
            page = Fetcher().fetch(f"http://{host}:{server.server_port}/")
            assert str(page.reason).startswith("address: ")
            page = Fetcher().fetch(f"http://{host}/")
            assert str(page.reason).startswith("address: ")


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = html() if self.path == "/" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def secure_port(tmp_path: Path) -> Iterator[tuple[int, ssl.SSLContext]]:
    """A server that speaks TLS as `a.example`, and a context that trusts who signed for it."""
    authority = Authority()
    with HTTPServer(("127.0.0.1", 0), _Hello) as server:
        server.socket = authority.serving("a.example", tmp_path).wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_port, authority.trusting()
        finally:
            server.shutdown()
            thread.join()


def test_certificates_are_checked_against_the_name(secure_port: tuple[int, ssl.SSLContext]) -> None:
    port, trusting = secure_port
    policy = replace(PUBLIC_ONLY.except_for(["127.0.0.1/32"]), ports=frozenset({port}))
    network = Network("test/1.0", policy=policy, resolver=lambda _: [ip_address("127.0.0.1")], tls=lambda: trusting)
    fetcher = Fetcher(network, today=lambda: TODAY)
    assert fetcher.fetch(f"https://a.example:{port}/").text == TEXT
    assert "certificate" in str(fetcher.fetch(f"https://b.example:{port}/").reason)
    untrusting = replace(network, tls=ssl.create_default_context)
    assert "certificate" in str(Fetcher(untrusting).fetch(f"https://a.example:{port}/").reason)
