"""`--isolation`: experiments in a process that reaches nothing, and the same answers as without."""

from __future__ import annotations

import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from agentctl.sandbox.isolation.confinement import Layers
from agentctl.testing import CliResult, run_cli
from tests.strangers.graphs import reaching
from tests.support import asking_models, ending, shop
from tests.support.cli import AGENT, CHECK, PATCH, Cli
from tests.support.openai_loopback import openai_loopback
from tests.support.postgres import new_database
from tests.support.processes import obey_ctrl_c
from tests.support.small_graph import graph_file

APART = ("--isolation", "best")
APPROVED = ("--resume", '{"decisions": [{"type": "approve"}]}')
VARYING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=\.)(?:replay|fork)-\d+|(?<=wall_s\": )[\d.]+"
)


def test_an_experiment_apart_says_what_one_in_the_process_of_the_command_says(cli: Cli) -> None:
    words = ("diagnose", AGENT, "--patch", PATCH, *APPROVED, "--check", CHECK, "-n", "4", "--json")
    here, apart = (cli(*words, "--isolation", level) for level in ("off", "best"))
    assert (apart.code, apart.err) == (here.code, here.err) == (0, "")
    assert apart.json["isolation"] != here.json["isolation"] == "in-process gate"
    assert _alike(apart) == _alike(here)


def test_what_ran_apart_is_told_beforehand_and_is_in_the_debug_store_and_in_the_case(cli: Cli) -> None:
    replay = cli("replay", f"{AGENT}@before:tools", environ={**os.environ, "AGENTCTL_ISOLATION": "best"})
    assert "  isolation: " in replay.err and "writes held to 2 places" in replay.err
    ((target, *_),) = replay.rows
    assert target == f"debug::{AGENT}.replay-1"
    assert {item["step"] for item in cli("history", target, "--json").json["items"]} == {1, 2, 3, 4, 5}
    assert cli("doctor", target).code == 0
    assert f"{AGENT}.replay-1" in cli("case", "show", AGENT.replace(" ", "-")).out


def test_what_ran_apart_comes_into_a_debug_store_of_postgres(cli: Cli, fresh_postgres_url: str) -> None:
    debug = ("--debug-store", fresh_postgres_url)
    here, apart = (
        cli("fork", AGENT, "--patch", PATCH, *APPROVED, "--json", "--isolation", level, *debug)
        for level in ("off", "best")
    )
    assert (apart.code, apart.err) == (0, "")
    assert _alike(apart) == _alike(here)
    thread, head = apart.json["runs"][0]["thread"], apart.json["runs"][0]["head"]
    assert thread == f"{AGENT}.fork-2"
    assert cli("show", f"debug::{thread}", "--json", *debug).json["id"] == head
    assert cli("diff", f"debug::{AGENT}.fork-1", f"debug::{thread}", "--exit-code", *debug).code in (0, 1)


def test_an_encrypted_thread_of_postgres_runs_apart_and_stays_encrypted_in_a_file(
    tmp_path: Path, postgres_url: str, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("Crypto")
    key = "0123456789abcdef"
    serde = EncryptedSerializer.from_pycryptodome_aes(key=key.encode())
    graph = graph_file(tmp_path)
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.serde = serde
        saver.setup()
        app = runpy.run_path(str(tmp_path / "small_app.py"))["graph"].builder.compile(checkpointer=saver)
        app.invoke({"note": ["a", "list"]}, {"configurable": {"thread_id": "t"}}, durability="sync")
    monkeypatch.setenv("LANGGRAPH_AES_KEY", key)
    words = ("replay", "t@before:second", "--store", fresh_postgres_url, "--graph", graph, *APART)
    with new_database(postgres_url) as debug:
        refused = run_cli(*words, "--debug-store", debug, cwd=tmp_path)
    assert refused.code == 5 and "t is encrypted" in refused.err and "hint: --debug-store FILE.sqlite" in refused.err
    done = run_cli(*words, "--json", cwd=tmp_path)
    assert (done.code, done.json["runs"][0]["status"]) == (0, "done"), done.err


def test_a_level_that_there_is_not_is_named_with_where_it_stands(cli: Cli) -> None:
    wrong = cli("replay", f"{AGENT}@before:tools", environ={**os.environ, "AGENTCTL_ISOLATION": "most"})
    assert (wrong.code, wrong.err.splitlines()) == (
        2,
        [
            "error: AGENTCTL_ISOLATION takes strict, best, off, not 'most'",
            "hint: --isolation best runs under what there is",
        ],
    )


def test_strict_refuses_where_the_kernel_does_not_hold_and_makes_no_thread(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "agentctl.experiments.isolated.apart.offered", lambda confinement: Layers("hook", "hook", n_writable=2)
    )
    refused = cli("replay", f"{AGENT}@before:tools", "--isolation", "strict")
    assert refused.code == 5
    assert "this system does not hold a process strictly: audit hook" in refused.err
    assert "hint: --isolation best" in refused.err
    assert cli("threads", "debug::").out == ""


@pytest.mark.parametrize(
    ("word", "code", "says"),
    [
        ("kill", 6, "the process of the experiment was ended by SIGKILL"),
        ("forged", 5, "a question about a thread that is not the experiment's"),
    ],
)
def test_a_process_that_ends_or_forges_is_told_and_what_had_run_is_kept(
    ended: Project, word: str, code: int, says: str
) -> None:
    done = ended("replay", "t@root", "--env", f"WAY={word}", *APART)
    assert done.code == code
    assert says in done.err and "hint: " in done.err and "Traceback" not in done.err
    assert done.out == ""
    (thread,) = ended("threads", "debug::", "--json").json["items"]
    assert thread["thread"] == "t.replay-1" and thread["error"] is None
    assert ended("doctor", "debug::t.replay-1").code in (0, 1)
    assert "t.replay-1" in ended("case", "show", "t").out
    assert ended("case", "close", "t", "--yes").code == 0


def test_a_node_that_holds_the_event_loop_is_ended_by_the_parent(
    ended: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.experiments.isolated.apart.GRACE_S", 0.3)
    done = ended("replay", "t@root", "--env", "WAY=hold", "--timeout", "0.5", *APART)
    assert done.code == 6
    assert "gave no sign for 0.8 s and was ended: a node holds the interpreter or the event loop" in done.err


def test_ctrl_c_ends_the_process_and_keeps_what_had_run(ended: Project, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    words = ("replay", "t@root", "--env", "WAY=wait", "--graph", ended.graph, *ended.stores, *APART)
    with subprocess.Popen(
        [sys.executable, "-m", "agentctl", *words],
        cwd=ended.folder,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=obey_ctrl_c,
    ) as command:
        assert command.stderr is not None and command.stdout is not None
        while "waiting" not in (line := command.stderr.readline()):
            assert line, "it ended before the node ran"
        command.send_signal(signal.SIGINT)
        assert command.stderr.read().splitlines()[-1] == "interrupted"
        assert command.stdout.read() == ""
    assert command.returncode == 130
    (thread,) = ended("threads", "debug::", "--json").json["items"]
    assert thread["thread"] == "t.replay-1"
    assert ended("history", "debug::t.replay-1", "--json").json["items"][0]["next"] == ["last"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_provider_of_the_model_is_reached_and_its_key_is_passed_and_no_other_host(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = cli.cwd / "agentctl.yaml"
    config.write_text(
        config.read_text().replace(f"{shop.__file__}:build_graph", f"{asking_models.__file__}:build_graph")
    )
    with openai_loopback(lambda turn: AIMessage("Refunded by the provider.")) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-parent")
        asked = cli(
            "replay", f"{AGENT}@before:tools",
            "--model", "openai:gpt-test", "--env", f"ANOTHER={provider.url.replace('127.0.0.1', 'localhost')}",
            "--json", *APART,
        )  # fmt: skip
    run = asked.json["runs"][0]
    assert (asked.code, run["status"], run["reply"]) == (0, "done", "Refunded by the provider.")
    assert len(provider.requests) == 1
    assert "held to the proxy" in asked.json["isolation"]
    (refused,) = [warning for warning in asked.json["warnings"] if "refused" in warning]
    assert "--allow-host localhost:" in refused


def test_nothing_is_reached_written_or_seen_from_a_process_apart(reached: Project) -> None:
    with _listening(reached.folder) as (environ, arrivals):
        target = ("replay", "t@root", "--json", *environ)
        apart = reached(*target, *APART)
        assert arrivals == [] and not (reached.folder / "file").exists()
        here = reached(*target, "--isolation", "off")
    assert apart.code == here.code == 0
    ways = [name for name in vars(reaching) if name.startswith("by_")]
    assert {way: text[:2] for way, text in _found(reached, here).items() if way in ways} == dict.fromkeys(ways, "ok")
    found = _found(reached, apart)
    assert [way for way in ways if found[way].startswith("ok")] == []
    assert found["by_environment"] == "KeyError"
    assert (found["folder"], found["home"]) == ("[]", "True")
    assert len(arrivals) == 3 and (reached.folder / "file").exists()
    assert any("stopped: the graph tried to " in warning for warning in apart.json["warnings"])
    assert "reaching out" in apart.err and "\x1b" not in apart.err


def _found(project: Project, done: CliResult) -> dict[str, str]:
    found: dict[str, str] = project("show", f"debug::{done.json['runs'][0]['thread']}", "--json").json["values"][
        "found"
    ]
    return found


@contextmanager
def _listening(folder: Path) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Listens on loopback and on a unix socket; gives the options that tell the graph, and what has arrived."""
    arrivals: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(folder / "s"))
        local.listen()
        for end in (tcp, local):
            threading.Thread(target=_answer, args=(end, arrivals), daemon=True).start()
        url = f"http://127.0.0.1:{tcp.getsockname()[1]}/"
        values = {"REACH_URL": url, "REACH_SOCKET": str(folder / "s"), "REACH_FILE": str(folder / "file")}
        yield tuple(word for name, value in values.items() for word in ("--env", f"{name}={value}")), arrivals


def _answer(end: socket.socket, arrivals: list[str]) -> None:
    while True:
        try:
            connection, _ = end.accept()
        except OSError:
            return
        with connection:
            arrivals.append(connection.recv(1000).decode("latin-1"))
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nhere")


@dataclass(frozen=True)
class Project:
    """A folder with a SQLite store of one thread `t` of a graph."""

    folder: Path
    graph: str

    def __call__(self, *words: str) -> CliResult:
        graph = ("--graph", self.graph) if words[0] == "replay" else ()
        return run_cli(*words, *graph, *(self.stores[-2:] if words[0] == "case" else self.stores), cwd=self.folder)

    @property
    def stores(self) -> tuple[str, ...]:
        return ("--store", "prod.sqlite", "--debug-store", "debug.sqlite")


def _project(folder: Path, graph: Any, file: str) -> Project:
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(folder / "prod.sqlite")) as saver:
        app = graph.builder.compile(checkpointer=saver, interrupt_before="*")
        app.invoke({"way": "none", "question": "out?"}, {"configurable": {"thread_id": "t"}}, durability="sync")
    return Project(folder, f"{file}:graph")


@pytest.fixture
def ended(tmp_path: Path) -> Project:
    return _project(tmp_path, ending.graph, ending.__file__)


@pytest.fixture
def reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "sk-1")
    return _project(tmp_path, reaching.graph, reaching.__file__)


def _alike(done: CliResult) -> str:
    """A document without what differs from run to run, and without how the rows of copies were kept."""
    return VARYING.sub("*", re.sub(r'"isolation": "[^"]*"|"n_(blobs|bytes)": \d+', "", done.out))
