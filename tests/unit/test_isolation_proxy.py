"""The proxy of an experiment: what it passes on, what it refuses, and that nothing a client sends ends it."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

from agentctl.errors import ConfigError
from agentctl.sandbox.isolation.hosts import HostPort
from agentctl.sandbox.isolation.proxy import Proxy, proxy

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_TIMEOUT_S = 30.0
_LARGE_BYTES = 3_000_000


@dataclass
class Host:
    """A server on loopback: where it is, and what came."""

    place: HostPort
    came: list[bytes] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[socket.socket, bytes], None], address: str = "127.0.0.1") -> Iterator[Host]:
    """Reads the head of each request, notes it and leaves the rest to `answer`, one connection at a time."""
    with socket.create_server((address, 0)) as listening:
        host = Host(HostPort(address, listening.getsockname()[1]))

        def serve() -> None:
            while True:
                connection = listening.accept()[0]
                with connection:
                    connection.settimeout(_TIMEOUT_S)
                    head = b""
                    while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                        head += data
                    if not head:
                        return
                    host.came.append(head)
                    answer(connection, head)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield host
        finally:
            socket.create_connection((address, host.place.port)).close()
            thread.join()


def answering(reply: bytes) -> Callable[[socket.socket, bytes], None]:
    return lambda connection, _: connection.sendall(reply)


def _authorization(running: Proxy) -> str:
    parts = urlsplit(running.url)
    return "Proxy-Authorization: Basic " + b64encode(f"{parts.username}:{parts.password}".encode()).decode()


def _open(running: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=_TIMEOUT_S)


def _read(connection: socket.socket) -> bytes:
    got = b""
    while data := connection.recv(65536):
        got += data
    return got


def _ask(running: Proxy, *lines: str, body: bytes = b"", known: bool = True) -> bytes:
    """Returns all that the proxy answers to a request."""
    head = [*lines, _authorization(running)] if known else list(lines)
    with _open(running) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode("latin-1") + body)
        return _read(connection)


def _tunnel(running: Proxy, place: HostPort, early: bytes = b"") -> socket.socket:
    connection = _open(running)
    connection.sendall(
        f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{_authorization(running)}\r\n\r\n".encode() + early
    )
    got = b""
    while not got.endswith(b"\r\n\r\n"):
        got += connection.recv(1)
    assert got == b"HTTP/1.1 200 Connection established\r\n\r\n"
    return connection


def test_a_request_reaches_the_host_of_its_address_whatever_its_host_header_says() -> None:
    with serving(answering(_OK)) as host, proxy([host.place], environ={}) as running:
        answer = _ask(
            running,
            f"GET http://{host.place}/path?q=1 HTTP/1.1",
            "Host: api.example.com",
            "Authorization: Bearer mine",
            "Connection: keep-alive, X-Hop",
            "X-Hop: 1",
            "Proxy-Connection: keep-alive",
        )
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok")
    assert host.came == [
        f"GET /path?q=1 HTTP/1.1\r\nHost: {host.place}\r\nAuthorization: Bearer mine\r\n"
        "Connection: close\r\n\r\n".encode()
    ]
    assert (running.passed, running.refused) == ({str(host.place): 1}, {})


def test_a_host_that_is_not_allowed_is_refused_with_what_allows_it() -> None:
    with serving(answering(_OK)) as host, proxy([HostPort("a.example", 443)], environ={}) as running:
        plain = _ask(running, f"POST http://{host.place}/ HTTP/1.1", "Host: a", "Content-Length: 4", body=b"body")
        tunnel = _ask(running, f"CONNECT {host.place} HTTP/1.1", "Host: a")
        another_port = _ask(running, "CONNECT a.example:444 HTTP/1.1", "Host: a")
    text = f"agentctl: this experiment may not reach {host.place} (allowed by --allow-host {host.place})"
    for answer in (plain, tunnel):
        assert answer.startswith(f"HTTP/1.1 403 {text}\r\n".encode())
        assert answer.endswith(f'{{"error": {{"type": "agentctl_isolation", "message": "{text}"}}}}'.encode())
    assert another_port.startswith(b"HTTP/1.1 403 ")
    assert host.came == []
    assert (running.passed, running.refused) == ({}, {str(host.place): 2, "a.example:444": 1})


@pytest.mark.parametrize("credential", [None, "Basic YWdlbnRjdGw6d3Jvbmc=", "Bearer x"])
def test_who_does_not_know_the_password_of_this_run_gets_nowhere(credential: str | None) -> None:
    with serving(answering(_OK)) as host, proxy([host.place], environ={}) as running:
        headers = [f"Proxy-Authorization: {credential}"] if credential else []
        answer = _ask(running, f"CONNECT {host.place} HTTP/1.1", "Host: a", *headers, known=False)
    assert answer.startswith(b"HTTP/1.1 407 ")
    assert b'Proxy-Authenticate: Basic realm="agentctl"' in answer
    assert host.came == []


def test_two_runs_have_two_passwords() -> None:
    with proxy([], environ={}) as one, proxy([], environ={}) as other:
        assert urlsplit(one.url).password != urlsplit(other.url).password
        names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
        assert one.variables == dict.fromkeys(names, one.url)


@pytest.mark.parametrize(
    "target",
    [
        "/path",
        "*",
        "https://{place}/",
        "ftp://{place}/",
        "http://me:pw@{place}/",
        "http://{place}@a.example/",
        "http://{place}\\@a.example/",
        "http:///path",
        "http://{place}:1:2/",
        "http://[{place}]/",
        "//{place}/",
    ],
)
def test_an_address_that_could_be_read_in_two_ways_is_refused(target: str) -> None:
    with serving(answering(_OK)) as host, proxy([host.place], environ={}) as running:
        answer = _ask(running, f"GET {target.format(place=host.place)} HTTP/1.1", "Host: a")
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert host.came == []
        assert _ask(running, f"GET http://{host.place}/ HTTP/1.1", "Host: a").endswith(b"ok")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: a\rb\x00\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 200_000,
        b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"CONNECT a HTTP/9.9\r\n\r\n",
        "GET http://bücher/ HTTP/1.1\r\n\r\n".encode(),
    ],
)
def test_what_is_no_request_is_answered_as_that_and_the_next_one_is_served(sent: bytes) -> None:
    with serving(answering(_OK)) as host, proxy([host.place], environ={}) as running:
        with _open(running) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            assert re.match(rb"HTTP/1.1 [45]\d\d agentctl: ", _read(connection))
        assert _ask(running, f"GET http://{host.place}/ HTTP/1.1", "Host: a").endswith(b"ok")


def test_a_body_is_passed_on_as_it_is_framed_and_what_follows_it_is_not() -> None:
    def answer(connection: socket.socket, head: bytes) -> None:
        body = head.partition(b"\r\n\r\n")[2]
        while len(body) < _LARGE_BYTES and (data := connection.recv(1 << 20)):
            body += data
        assert body == b"x" * _LARGE_BYTES
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % _LARGE_BYTES + body)

    with serving(answer) as host, proxy([host.place], environ={}) as running:
        smuggled = b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"
        head = (f"POST http://{host.place}/ HTTP/1.1", "Host: a", f"Content-Length: {_LARGE_BYTES}")
        got = _ask(running, *head, body=b"x" * _LARGE_BYTES + smuggled)
    assert got.partition(b"\r\n\r\n")[2] == b"x" * _LARGE_BYTES
    assert len(host.came) == 1


def test_a_body_of_two_lengths_is_passed_on_with_one() -> None:
    with serving(answering(_OK)) as host, proxy([host.place], environ={}) as running:
        head = ("Host: a", "Content-Length: 100", "Transfer-Encoding: chunked")
        _ask(running, f"POST http://{host.place}/ HTTP/1.1", *head, body=b"2\r\nab\r\n0\r\n\r\n")
    assert b"content-length" not in host.came[0].lower()


def test_a_stream_passes_piece_by_piece() -> None:
    seen = threading.Event()

    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"7\r\ndata: 1\r\n")
        assert seen.wait(_TIMEOUT_S)  # nothing more before the first piece was seen
        connection.sendall(b"7\r\ndata: 2\r\n0\r\n\r\n")

    with serving(answer) as host, proxy([host.place], environ={}) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=_TIMEOUT_S)
        name, _, value = _authorization(running).partition(": ")
        client.request("GET", f"http://{host.place}/", headers={name: value})
        response = client.getresponse()
        assert response.read(7) == b"data: 1"
        seen.set()
        assert response.read() == b"data: 2"
        client.close()


def test_a_client_that_waits_to_be_told_is_told_to_go_on() -> None:
    with serving(answering(_OK)) as host, proxy([host.place], environ={}) as running, _open(running) as connection:
        head = f"POST http://{host.place}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n"
        connection.sendall(f"{head}{_authorization(running)}\r\n\r\n".encode())
        told = connection.recv(65536)  # the answer may come with it: this host does not wait for the body
        assert told.startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"body")
        assert (told + _read(connection)).endswith(b"ok")
    assert b"expect" not in host.came[0].lower()


def test_a_tunnel_takes_bytes_both_ways_and_each_side_ends_for_itself() -> None:
    def answer(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"first;")
        connection.sendall(head + _read(connection))

    sent = b"\x00\xff" * (_LARGE_BYTES // 2)
    with (
        serving(answer) as host,
        proxy([host.place], environ={}) as running,
        _tunnel(running, host.place, early=b"early\r\n\r\n") as connection,
    ):
        assert connection.recv(6) == b"first;"
        sender = threading.Thread(target=lambda: (connection.sendall(sent), connection.shutdown(socket.SHUT_WR)))
        sender.start()
        got = _read(connection)
        sender.join()
    assert got == b"early\r\n\r\n" + sent


def test_a_slow_client_keeps_nobody_waiting() -> None:
    with serving(answering(_OK)) as host, proxy([host.place], environ={}) as running, _open(running) as slow:
        slow.sendall(b"GET http://")
        assert _ask(running, f"GET http://{host.place}/ HTTP/1.1", "Host: a").endswith(b"ok")


def test_a_client_that_breaks_off_leaves_no_request_hanging() -> None:
    broken = threading.Event()

    def answer(connection: socket.socket, _: bytes) -> None:
        try:
            while connection.recv(65536):
                pass
        except ConnectionError:
            pass
        broken.set()

    with serving(answer) as host, proxy([host.place], environ={}) as running:
        with _open(running) as connection:
            head = f"POST http://{host.place}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n{_authorization(running)}"
            connection.sendall(f"{head}\r\n\r\npart".encode())
        assert broken.wait(_TIMEOUT_S)


def test_a_host_that_cannot_be_reached_or_does_not_answer_is_told_apart_from_one_that_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nowhere = HostPort("127.0.0.1", gone.getsockname()[1])
    with (
        serving(answering(b"")) as silent,
        serving(answering(b"SSH-2.0\r\n\r\n")) as other,
        proxy([nowhere, silent.place, other.place], environ={}) as running,
    ):
        places = (nowhere, silent.place, other.place)
        answers = [_ask(running, f"GET http://{place}/ HTTP/1.1", "Host: a") for place in places]
        tunnel = _ask(running, f"CONNECT {nowhere} HTTP/1.1", "Host: a")
    assert all(answer.startswith(b"HTTP/1.1 502 agentctl: ") for answer in (*answers, tunnel))
    assert f"{nowhere} cannot be reached".encode() in answers[0]
    for answer in answers[1:]:
        assert b"the host closed the connection, or answered what is no HTTP" in answer


def test_an_answer_that_is_cut_off_is_not_made_to_look_whole() -> None:
    with (
        serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")) as host,
        proxy([host.place], environ={}) as running,
        _open(running) as connection,
    ):
        head = f"GET http://{host.place}/ HTTP/1.1\r\nHost: a\r\n{_authorization(running)}\r\n\r\n"
        connection.sendall(head.encode())
        response = http.client.HTTPResponse(connection)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            response.begin()
            response.read()


def test_at_the_end_connections_are_cut_off_and_nothing_stays() -> None:
    n_threads = threading.active_count()
    reached = threading.Event()

    def answer(connection: socket.socket, _: bytes) -> None:
        reached.set()
        try:
            _read(connection)
        except ConnectionError:
            pass

    with serving(answer) as host:
        with proxy([host.place], environ={}) as running:
            connection = _tunnel(running, host.place, early=b"\r\n\r\n")
            assert reached.wait(_TIMEOUT_S)
        with connection:
            try:
                assert connection.recv(1) == b""
            except ConnectionError:
                pass
        with pytest.raises(ConnectionRefusedError):
            _open(running)
    assert threading.active_count() == n_threads


def test_a_proxy_that_the_machine_needs_is_gone_through_and_its_password_stays_here() -> None:
    with serving(answering(_OK), "127.0.0.2") as host, proxy([host.place], environ={}) as company:
        environ = {"HTTPS_PROXY": company.url, "http_proxy": company.url}
        with proxy([host.place], environ=environ) as running:
            plain = _ask(running, f"GET http://{host.place}/plain HTTP/1.1", "Host: a")
            with _tunnel(running, host.place) as connection:
                connection.sendall(b"GET /tunnel HTTP/1.1\r\n\r\n")
                tunneled = _read(connection)
        assert company.passed == {str(host.place): 2}
        with proxy([host.place], environ={**environ, "no_proxy": ".example.com, 127.0.0.2"}) as running:
            _ask(running, f"GET http://{host.place}/direct HTTP/1.1", "Host: a")
        assert company.passed == {str(host.place): 2}
    assert plain.endswith(b"ok")
    assert tunneled.endswith(b"ok")
    assert [head.split(b" ")[1] for head in host.came] == [b"/plain", b"/tunnel", b"/direct"]
    assert not any(b"Proxy-Authorization" in head for head in host.came)


def test_what_the_machines_own_proxy_refuses_is_said() -> None:
    place = HostPort("127.0.0.2", 9)
    with proxy([], environ={}) as company, proxy([place], environ={"all_proxy": company.url}) as running:
        answer = _ask(running, f"CONNECT {place} HTTP/1.1", "Host: a")
    assert answer.startswith(b"HTTP/1.1 502 agentctl: 127.0.0.2:9 cannot be reached: the proxy 127.0.0.1:")
    assert b"answered HTTP/1.1 403 agentctl: this experiment may not reach" in answer


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:1080", "https://127.0.0.1:3128", "http://"])
def test_a_proxy_that_cannot_be_chained_is_an_error_before_anything_runs(url: str) -> None:
    place = HostPort("api.example.com", 443)
    with pytest.raises(ConfigError) as error, proxy([place], environ={"https_proxy": url}):
        pass
    assert "no http:// proxy" in error.value.message
    assert error.value.hint is not None
    assert error.value.hint.startswith("NO_PROXY=api.example.com ")
    with proxy([place], environ={"https_proxy": url, "NO_PROXY": "example.com"}):
        pass
