"""The command as a real process: its script, long outputs in pipes, encodings, the folder it looks into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.catalog import CATALOG, sqlite_thread

pytestmark = pytest.mark.real_process
AGENTCTL = (sys.executable, "-m", "agentctl")
THREAD = CATALOG["agent"].thread


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sqlite_thread(tmp_path_factory.mktemp("store"), CATALOG["agent"])


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thread of several hundred checkpoints: more than a pipe holds."""
    path = tmp_path_factory.mktemp("long") / "long.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = CATALOG["linear"].build(saver)
        for _ in range(150):
            graph.invoke({"log": []}, {"configurable": {"thread_id": "t"}}, durability="sync")
    return path


def agentctl(*args: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENTCTL, *map(str, args)], capture_output=True, text=True, timeout=60, check=False, **options
    )  # type: ignore[call-overload,no-any-return]


def test_the_console_script_is_installed() -> None:
    script = Path(sys.executable).with_name("agentctl")
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("agentctl ")


def test_whoever_closes_the_pipe_early_ends_the_command_quietly(long: Path) -> None:
    with subprocess.Popen(
        [*AGENTCTL, "history", "t", "--store", str(long)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(60) == 141
    assert told == b""


def test_output_that_the_locale_cannot_write_is_escaped(store: Path) -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    shown = agentctl("show", THREAD, "--messages", "--store", store, env=environ)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_usage_error_under_json_is_one_document(store: Path) -> None:
    failed = agentctl("history", "--json")
    assert failed.returncode == 2
    assert failed.stdout.startswith('{"error": {"kind": "usage"')
    assert failed.stderr == ""


def test_looking_leaves_the_folder_as_it_was(store: Path) -> None:
    before = {file.name: file.read_bytes() for file in store.parent.iterdir()}
    for words in (["threads"], ["history", THREAD], ["show", THREAD], ["diff", f"{THREAD}@root..head"]):
        assert agentctl(*words, "--store", store, cwd=store.parent).returncode == 0
    assert {file.name: file.read_bytes() for file in store.parent.iterdir()} == before


def test_an_answer_that_cannot_be_written_is_an_error_of_the_place_it_goes_to(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agentctl", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
    assert done.returncode == 4
    assert done.stderr.startswith("error: cannot write: ")
    assert "Traceback" not in done.stderr
