"""The audit hook, event by event: what it stops, what it lets pass, and what it says of it."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from agentctl.sandbox.isolation.confinement import Layers
from agentctl.sandbox.isolation.hook import Confined, Event, Watch

_INET, _INET6, _UNIX = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
_STREAM, _DGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM
_PROXY_PORT = 4711


def _watch(*, port: int | None = None, writable: tuple[Path, ...] = (), may_start: bool = True) -> Watch:
    return Watch(port, writable, may_start, lambda _: None)


def _said(watch: Watch, event: str, *args: object) -> str:
    with pytest.raises(Confined) as error:
        watch.hook(event, args)
    assert error.value.errno == errno.EACCES
    return str(error.value)


@pytest.mark.parametrize(
    ("event", "args", "what", "allowed_by"),
    [
        ("socket.getaddrinfo", ("a.example", 80, 0, 0, 0), "reach a.example:80", "--allow-host a.example:80"),
        ("socket.getaddrinfo", (b"a.example", "https", 0, 0, 0), "reach a.example:443", "--allow-host a.example:443"),
        ("socket.getaddrinfo", ("a.example", None, 0, 0, 0), "reach a.example:443", "--allow-host a.example:443"),
        ("socket.getaddrinfo", ("127.0.0.1", 9, 0, 0, 0), "reach 127.0.0.1:9", "--allow-host 127.0.0.1:9"),
        ("socket.gethostbyname", ("a.example",), "reach a.example:443", "--allow-host a.example:443"),
        ("socket.getnameinfo", (("10.0.0.1", 25),), "reach 10.0.0.1:25", "--allow-host 10.0.0.1:25"),
        ("socket.connect", (None, ("10.0.0.1", 5432)), "reach 10.0.0.1:5432", "--allow-host 10.0.0.1:5432"),
        ("socket.connect", (None, ("::1", 80, 0, 0)), "reach [::1]:80", "--allow-host [::1]:80"),
        ("socket.connect", (None, "/run/db"), "reach the socket /run/db", "--isolation off"),
        ("socket.connect", (None, b"\0db"), "reach the socket \0db", "--isolation off"),
        ("socket.sendto", (None, ("10.0.0.1", 53)), "reach 10.0.0.1:53", "--allow-host 10.0.0.1:53"),
        ("socket.__new__", (None, _INET, _STREAM, 0), "open a network socket", "--allow-host HOST:PORT"),
        ("socket.__new__", (None, _INET, _DGRAM, 0), "open a socket that is not plain TCP (2, 2, 0)", "--isolation"),
        ("socket.bind", (None, ("0.0.0.0", 80)), "listen at ('0.0.0.0', 80)", "--isolation off"),
    ],
)
def test_each_way_out_is_stopped_and_what_allows_it_is_said(
    event: str, args: Event, what: str, allowed_by: str
) -> None:
    said: list[str] = []
    with pytest.raises(Confined) as error:
        Watch(None, (), True, said.append).hook(event, args)
    assert said == [what]
    assert error.value.strerror.startswith(f"isolation: an experiment may not {what} (allowed by {allowed_by}")


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("socket.connect", (None, ("127.0.0.1", _PROXY_PORT))),
        ("socket.getaddrinfo", ("127.0.0.1", _PROXY_PORT, 0, 0, 0)),
        ("socket.getaddrinfo", (None, 0, 0, 0, 0)),
        ("socket.gethostname", ()),
        ("socket.sendmsg", (None, None)),
        ("socket.__new__", (None, _INET, _STREAM | 0o4000, 6)),
        ("socket.__new__", (None, _INET6, _STREAM, -1)),
        ("socket.__new__", (None, _UNIX, _STREAM, 0)),
        ("socket.__new__", (None, -1, -1, -1)),
        ("import", ("json", None, None, None, None)),
    ],
)
def test_the_proxy_and_what_reaches_nobody_pass(event: str, args: Event) -> None:
    _watch(port=_PROXY_PORT).hook(event, args)


def test_a_client_that_does_not_know_of_the_proxy_is_told_of_it() -> None:
    watch = _watch(port=_PROXY_PORT)
    said = _said(watch, "socket.getaddrinfo", "a.example", 443, 0, 0, 0)
    assert said.endswith(
        "(allowed by --allow-host a.example:443 for clients that go by HTTPS_PROXY, or --isolation off)"
    )
    assert "127.0.0.1:4712" in _said(watch, "socket.connect", None, ("127.0.0.1", 4712))


def test_programs_are_started_only_where_the_kernel_holds_them_too() -> None:
    started = ("subprocess.Popen", ("curl", ["curl"], None, None))
    _watch(may_start=True).hook(*started)
    assert "may not start curl: on this system it would not be held" in _said(
        _watch(may_start=False), started[0], *started[1]
    )
    assert "may not start sh -c true" in _said(_watch(may_start=False), "os.system", b"sh -c true")


def test_only_what_is_writable_is_written_whatever_way_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    monkeypatch.chdir(inside)
    watch = _watch(writable=(inside.resolve(),))
    write, read = os.O_WRONLY | os.O_CREAT, os.O_RDONLY
    for path in (inside / "a", str(inside / "a"), os.fsencode(inside / "a"), "a", 7, os.devnull):
        watch.hook("open", (path, "w", write))
    for path in (outside / "a", inside / "link" / "a", inside / ".." / "out" / "a", "../out/a", tmp_path):
        assert "may not write" in _said(watch, "open", path, "w", write)
        watch.hook("open", (path, "r", read))
    assert "may not write" in _said(watch, "open", outside / "a", None, read | os.O_TRUNC)


def test_every_path_that_a_change_touches_counts_and_one_beneath_an_open_folder_is_left_to_the_kernel(
    tmp_path: Path,
) -> None:
    watch = _watch(writable=(tmp_path / "in",))
    own, other = str(tmp_path / "in" / "a"), str(tmp_path / "b")
    watch.hook("os.rename", (own, own, -1, -1))
    watch.hook("os.link", (other, own, -1, -1))
    watch.hook("os.remove", ("a", 5))
    for event, args in {
        "os.rename": (own, other, -1, -1),
        "os.link": (own, other, -1, -1),
        "os.symlink": ("anywhere", other, -1),
        "os.remove": (other, 5),
        "os.mkdir": (other, 0o777, -1),
        "os.chmod": (other, 0o777, -1),
        "os.truncate": (other, 10),
        "shutil.rmtree": (other, None),
        "shutil.move": (own, other),
    }.items():
        assert f"may not write {other} " in _said(watch, event, *args)


def test_what_is_in_force_is_said_in_a_few_words() -> None:
    assert Layers("seccomp", "landlock", 2).text == "seccomp + landlock (network closed, writes held to 2 places)"
    assert Layers("hook", "landlock", 1, is_proxied=True).text == (
        "audit hook + landlock (network held to the proxy, writes held to 1 place)"
    )
    assert Layers("hook", "hook", 0).text == "audit hook (network closed, writes held to 0 places)"
    assert [Layers("seccomp", "landlock").is_kernel, Layers("hook", "landlock").is_kernel] == [True, False]
