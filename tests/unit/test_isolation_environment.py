"""What the process of an experiment is given: environment, hosts, descriptors; and what is kept from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctl.errors import UsageError
from agentctl.sandbox.isolation.descriptors import close_others
from agentctl.sandbox.isolation.environment import reduced
from agentctl.sandbox.isolation.hosts import HostPort
from agentctl.sandbox.isolation.readable import private_places, readable_places

_SHELL = {
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": "/app",
    "HOME": "/srv/me",
    "OPENAI_API_KEY": "sk-1",
    "DATABASE_URL": "postgresql://me:pw@db/prod",
    "LANGGRAPH_AES_KEY": "0123456789abcdef",
    "LANGSMITH_API_KEY": "ls-1",
    "LANGSMITH_TRACING": "true",
    "HTTPS_PROXY": "http://me:pw@proxy:3128",
    "NO_PROXY": "*",
    "AGENTCTL_ENV": "production",
    "SSH_AUTH_SOCK": "/run/agent",
}
_UNTRACED = {"LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"}


def test_of_a_shells_environment_only_what_python_needs_passes() -> None:
    passed = reduced(_SHELL, allow=(), given={})
    assert set(passed) - _UNTRACED == {"PATH", "LC_ALL", "PYTHONPATH"}
    assert {passed[name] for name in _UNTRACED} == {"false"}


def test_names_that_are_allowed_pass_and_given_values_come_first() -> None:
    passed = reduced(_SHELL, allow={"OPENAI_API_KEY", "NOT_SET"}, given={"HOME": "/private", "PATH": "/usr/bin"})
    assert (passed["OPENAI_API_KEY"], passed["HOME"], passed["PATH"]) == ("sk-1", "/private", "/usr/bin")
    assert "NOT_SET" not in passed


def test_what_makes_effects_real_never_passes() -> None:
    assert "AGENTCTL_ENV" not in reduced(_SHELL, allow={"AGENTCTL_ENV"}, given={"AGENTCTL_ENV": "production"})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("api.openai.com:443", "api.openai.com", 443),
        ("API.OpenAI.com.", "api.openai.com", 443),
        ("localhost:8080", "localhost", 8080),
        ("127.0.0.1:1", "127.0.0.1", 1),
        ("[::1]:8080", "::1", 8080),
        ("[0:0:0:0:0:0:0:1]", "::1", 443),
        ("bücher.example:80", "xn--bcher-kva.example", 80),
        ("my_service:80", "my_service", 80),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str, port: int) -> None:
    assert HostPort.parse(text) == HostPort(host, port)
    assert HostPort.parse(str(HostPort(host, port))) == HostPort(host, port)


@pytest.mark.parametrize(
    "text",
    ["", ":443", "a:0", "a:65536", "a:x", "a:", "https://a", "a/b", "me:pw@a:443", "a b", "::1", "::1:80", "[::1",
     "[a]", "*.example.com", "a..b", "-a", "a\\b", "a\nb", "x" * 64, "é" * 80, "a:443:443", "a:４４３"],
)  # fmt: skip
def test_what_is_no_host_and_port_is_an_error_that_shows_the_form(text: str) -> None:
    with pytest.raises(UsageError) as error:
        HostPort.parse(text)
    assert error.value.message == f"this is no HOST:PORT: {text!r}"
    assert error.value.hint == "--allow-host api.example.com:443"


def test_a_host_without_a_port_is_an_error_where_one_has_to_be_named() -> None:
    with pytest.raises(UsageError):
        HostPort.parse("a.example", default_port=None)


def test_descriptors_that_are_not_to_be_kept_are_closed() -> None:
    child = os.fork()
    if child == 0:
        try:
            kept, closed = os.pipe()
            far = os.dup2(closed, 700)
            close_others({kept})
            os.fstat(kept)
            os.fstat(0)
            for gone in (closed, far):
                try:
                    os.fstat(gone)
                    os._exit(2)
                except OSError:
                    pass
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_everything_may_be_read_but_what_is_kept_and_other_processes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in (".ssh", ".config/gcloud", ".config/app", "project"):
        (home / folder).mkdir(parents=True)
    (home / ".netrc").write_text("")
    (home / "link").symlink_to(".ssh")
    places = set(readable_places(private_places(home)))
    assert {place for place in places if place.is_relative_to(home)} == {home / ".config/app", home / "project"}
    covered = {Path("/usr"), Path(f"/proc/{os.getpid()}"), Path("/proc/meminfo")}
    assert covered <= places | {Path("/").joinpath("usr").resolve()}
    assert not any(place.parent == Path("/proc") and place.name.isdigit() and place != Path(f"/proc/{os.getpid()}")
                   for place in places)  # fmt: skip
    assert not places & {Path("/"), Path("/proc"), *home.parents}


def test_where_a_folder_may_not_be_listed_what_is_known_to_be_in_it_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes, home = tmp_path / "homes", tmp_path / "homes" / "me"
    (home / ".ssh").mkdir(parents=True)
    (home / "project").mkdir()
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path) == homes:
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert {place for place in readable_places([home / ".ssh"]) if place.is_relative_to(homes)} == {home / "project"}
