"""Code that a command has to run, and that ends, prints or raises where it should not."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.testing import run_cli
from tests.support.processes import Shell

GRAPH = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    note: str

{before}
{kind} node(state):
    {inside}
    return {{"note": "said"}}

graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
"""
PRINTING = (
    'import os, subprocess; print("IN PYTHON"); os.write(1, b"PAST PYTHON\\n"); subprocess.run(["echo", "BESIDE"])'
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from langgraph.checkpoint.sqlite import SqliteSaver

    path = tmp_path_factory.mktemp("code") / "threads.sqlite"
    names: dict[str, object] = {}
    exec(GRAPH.format(before="", kind="def", inside="pass"), names)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = names["graph"].builder.compile(checkpointer=saver)  # type: ignore[attr-defined]
        graph.invoke({"note": "asked"}, {"configurable": {"thread_id": "t"}}, durability="sync")
    return path


def written(folder: Path, *, before: str = "", inside: str = "pass", kind: str = "def") -> str:
    (folder / "app.py").write_text(GRAPH.format(before=before, inside=inside, kind=kind))
    return "app.py:graph"


def test_what_a_graph_prints_is_no_part_of_the_answer_whichever_way_it_prints(store: Path, tmp_path: Path) -> None:
    graph = written(tmp_path, before=PRINTING, inside=PRINTING)
    done = Shell(tmp_path).type(f"agentctl replay t@root --store {store} --graph {graph} --json").ok()
    assert done.json["schema"] == "agentctl.replay/1"
    for text in ("IN PYTHON", "PAST PYTHON", "BESIDE"):
        assert done.err.splitlines().count(text) == 2


@pytest.mark.parametrize("raising", ["raise SystemExit(0)", "raise KeyboardInterrupt", "raise BaseException('own')"])
def test_a_module_that_ends_the_process_at_import_is_a_graph_that_failed(
    store: Path, tmp_path: Path, raising: str
) -> None:
    graph = written(tmp_path, before=raising)
    failed = run_cli("replay", "t@root", "--store", store, "--graph", graph, cwd=tmp_path)
    assert (failed.code, failed.out) == (6, "")
    assert "error: " in failed.err and "cannot be loaded" in failed.err


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_node_that_ends_the_process_never_ends_it_as_done(store: Path, tmp_path: Path, kind: str) -> None:
    graph = written(tmp_path, inside="raise SystemExit(0)", kind=kind)
    failed = run_cli("replay", "t@root", "--store", store, "--graph", graph, cwd=tmp_path)
    assert failed.code == 6
    assert "SystemExit" in failed.out + failed.err


@pytest.mark.parametrize("attribute", ["at_import", "plain", "in_a_loop"])
def test_a_saver_that_ends_the_process_is_a_store_that_cannot_be_read(tmp_path: Path, attribute: str) -> None:
    code = "import sys\ndef plain(): sys.exit(0)\nasync def in_a_loop(): sys.exit(0)\n"
    (tmp_path / "saver.py").write_text(code + ("sys.exit(0)\n" if attribute == "at_import" else ""))
    failed = run_cli("threads", "--store", f"saver.py:{attribute}", cwd=tmp_path)
    assert (failed.code, failed.out) == (4, "")
    assert "SystemExit: 0" in failed.err and "Traceback" not in failed.err


def test_a_check_that_ends_the_process_decides_nothing(store: Path, tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "check.yaml").write_text("fails_when: {python: 'check.py:fails'}\n")
    graph = written(tmp_path)
    failed = run_cli("replay", "t@root", "--store", store, "--graph", graph, "--check", "check.yaml", cwd=tmp_path)
    assert failed.code == 6
    assert "the check check.py cannot be imported: SystemExit: 0" in failed.err


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_process_without_one_of_its_streams_runs(store: Path, tmp_path: Path, closed: str) -> None:
    words = shlex.join([sys.executable, "-m", "agentctl", "threads", "--store", str(store)])
    done = subprocess.run(["sh", "-c", f"{words} {closed}"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
