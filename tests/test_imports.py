"""What a command leaves out of its process: looking imports neither LangGraph nor anything that LangGraph imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.cli.commands import COMMANDS
from tests.catalog import CATALOG, sqlite_thread

RUN = """
import sys
from agentctl.cli.main import main
from agentctl.cli.env import real_env
argv = sys.argv[2:]
code = main(argv, real_env(argv))
loaded = sorted(name for name in sys.argv[1].split(",") if name in sys.modules)
print("exit", code, "loaded", *loaded, file=sys.stderr)
"""
HEAVY = ("langgraph", "langchain_core", "langchain", "langgraph_sdk", "psycopg", "httpx", "openai")
LOOKING = (
    ["threads"],
    ["threads", "--grep", "refund"],
    ["history", "{thread}"],
    ["history", "{thread}", "--json"],
    ["show", "{thread}"],
    ["show", "{thread}", "--messages"],
    ["show", "{thread}", "--call", "lookup_order"],
    ["diff", "{thread}@root...head"],
    ["resolve", "{thread}@call:lookup_order"],
    ["size"],
    ["size", "{thread}", "--by", "message"],
    ["doctor", "{thread}"],
    ["doctor", "--all"],
    ["copy", "{thread}", "--to", "{folder}/copy.sqlite"],
)


def loaded_by(*args: str, among: tuple[str, ...]) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", RUN, ",".join(among), *args], capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sqlite_thread(tmp_path_factory.mktemp("store"), CATALOG["agent"])


@pytest.mark.real_process
@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_a_looking_command_leaves_langgraph_out(words: list[str], store: Path, tmp_path: Path) -> None:
    thread = CATALOG["agent"].thread
    args = [word.format(thread=thread, folder=tmp_path) for word in words]
    assert loaded_by(*args, "--store", str(store), among=HEAVY) == "exit 0 loaded"


@pytest.mark.real_process
def test_a_history_in_a_pipe_imports_no_more_than_it_needs(store: Path) -> None:
    others = ("agentctl.experiments", "agentctl.sandbox", "agentctl.datasets", "agentctl.casebook", "jmespath",
              "agentctl.cli.diagnose", "rich.console")  # fmt: skip
    thread = CATALOG["agent"].thread
    assert loaded_by("history", thread, "--store", str(store), among=others) == "exit 0 loaded"


@pytest.mark.real_process
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_the_list_of_commands_imports_none_of_them(word: str) -> None:
    modules = (place.partition(":")[0] for _, place, _ in COMMANDS)
    others = (*HEAVY, *modules, "agentctl.stores", "agentctl.config", "agentctl.experiments", "agentctl.sandbox")
    assert loaded_by(word, among=others) == "exit 0 loaded"


@pytest.mark.real_process
def test_the_testing_module_imports_no_langchain_until_a_model_is_asked_for() -> None:
    code = """
import sys
import agentctl.testing
assert "langchain_core" not in sys.modules
from agentctl.testing import ScriptedModel
assert "langchain_core" in sys.modules and ScriptedModel.__name__ == "ScriptedModel"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
