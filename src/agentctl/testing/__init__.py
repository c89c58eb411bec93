"""For tests of agentctl and of applications that use it: commands in process, threads, a scripted model.

Example:
    from agentctl.testing import ScriptedModel, build_thread, run_cli

    build_thread(graph, tmp_path / "threads.sqlite", "t-1", {"messages": [("user", "hello")]})
    assert run_cli("history", "t-1", "--store", tmp_path / "threads.sqlite").code == 0

Each name is imported when it is asked for: `run_cli` needs no LangChain, `ScriptedModel` no command line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentctl.testing.commands import CliResult, run_cli
    from agentctl.testing.scripted import Script, ScriptedModel, Turn
    from agentctl.testing.threads import build_thread

_PLACES = {
    "CliResult": "commands",
    "run_cli": "commands",
    "Script": "scripted",
    "ScriptedModel": "scripted",
    "Turn": "scripted",
    "build_thread": "threads",
}

__all__ = ["CliResult", "Script", "ScriptedModel", "Turn", "build_thread", "run_cli"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
