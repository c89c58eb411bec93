"""What a shell sees of a process: its exit code, its pipes, its signals."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from langgraph.graph import MessagesState, StateGraph

from agentctl.testing import build_thread
from tests.support.processes import TIMEOUT_S, Shell

N_TURNS = 3
LONG = "a long answer " * 20_000

_WAITING = """
import threading
from langgraph.graph import MessagesState, StateGraph


def wait(state):
    with open({fifo!r}, "w") as started:
        started.write("started")
    threading.Event().wait()


graph = StateGraph(MessagesState).add_node("wait", wait).set_entry_point("wait").compile()
"""

pytestmark = pytest.mark.real_process


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder with a store whose one thread is longer than a pipe holds."""
    graph = StateGraph(MessagesState).add_node("wait", lambda _: {"messages": [("ai", LONG)]})
    turns = [{"messages": [("human", LONG)]}] * N_TURNS
    build_thread(graph.set_entry_point("wait").compile(), tmp_path / "app.sqlite", "t-1", *turns)
    return Shell(tmp_path, variables={"AGENTCTL_STORE": "app.sqlite"})


@pytest.mark.parametrize(
    "command", ["agentctl show t-1 --messages --all", "agentctl show t-1 --json", "agentctl history t-1"]
)
def test_a_reader_that_goes_away_ends_the_process_at_once_and_without_a_traceback(shell: Shell, command: str) -> None:
    with shell.start(command) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.wait(TIMEOUT_S) in (0, 141)
        assert process.stderr.read() == ""


def test_a_pipe_closed_before_anything_is_written_exits_141(shell: Shell) -> None:
    with shell.start("agentctl show t-1 --json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 141
        assert process.stderr.read() == ""


def test_ctrl_c_while_the_command_is_still_loaded_exits_130_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import signal\n\nsignal.raise_signal(signal.SIGINT)\n", encoding="utf-8")
    with Shell(tmp_path, variables={"PYTHONPATH": str(tmp_path)}).start("agentctl --help") as process:
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (130, "interrupted\n")


def test_ctrl_c_in_the_middle_of_a_replay_exits_130_and_leaves_the_source_alone(shell: Shell) -> None:
    fifo = shell.cwd / "started"
    os.mkfifo(fifo)
    (shell.cwd / "waiting.py").write_text(_WAITING.format(fifo=str(fifo)), encoding="utf-8")
    before = (shell.cwd / "app.sqlite").read_bytes()
    with shell.start("agentctl replay t-1@before:wait --graph waiting.py:graph --debug-store debug.sqlite") as process:
        assert fifo.read_text(encoding="utf-8") == "started"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "interrupted"
    assert (shell.cwd / "app.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("agentctl undo t-1", 2, "undo"),
        ("agentctl history", 2, "TARGET"),
        ("agentctl history t-1@step:", 2, "^"),
        ("agentctl history t-2", 3, "t-2"),
        ("agentctl history t-1 --store missing.sqlite", 4, "missing.sqlite"),
    ],
)
def test_the_exit_code_says_what_kind_of_error_it_was(shell: Shell, command: str, code: int, said: str) -> None:
    done = shell.type(command)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: ")
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (shell.cwd / "missing.sqlite").exists()
