"""Which effect a tool has, and who says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents import SubAgentMiddleware
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models import FakeListChatModel
from langchain_core.tools import BaseTool, tool

from agentctl.sandbox.effects import Effects, origin_effect
from agentctl.sandbox.registry import ToolRegistry
from tests.support.tools import World

FILE_TOOLS = {"ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep"}


def named(tools: Any) -> dict[str, BaseTool]:
    return {made.name: made for made in tools}


def test_the_todo_list_touches_graph_state_only() -> None:
    (write_todos,) = TodoListMiddleware().tools
    assert origin_effect(write_todos) == "state"


def test_files_in_graph_state_are_state_and_a_shell_never_is() -> None:
    tools = named(FilesystemMiddleware(backend=StateBackend()).tools)
    assert {name for name, made in tools.items() if origin_effect(made) == "state"} == FILE_TOOLS
    assert Effects(said={"execute": "read"}).of("execute", tools["execute"]) == "write"


def test_files_on_disk_are_not_state(tmp_path: Path) -> None:
    disk = FilesystemBackend(root_dir=str(tmp_path), virtual_mode=True)
    for backend in (disk, CompositeBackend(default=StateBackend(), routes={"/disk/": disk})):
        tools = named(FilesystemMiddleware(backend=backend).tools)
        assert {origin_effect(tools[name]) for name in FILE_TOOLS} == {None}


def test_files_of_several_backends_in_graph_state_are_state() -> None:
    backend = CompositeBackend(default=StateBackend(), routes={"/memories/": StateBackend()})
    tools = named(FilesystemMiddleware(backend=backend).tools)
    assert {origin_effect(tools[name]) for name in FILE_TOOLS} == {"state"}


def test_running_a_subagent_is_state() -> None:
    subagent: Any = {
        "name": "researcher",
        "description": "Looks.",
        "system_prompt": "Look.",
        "tools": [],
        "model": FakeListChatModel(responses=["x"]),
    }
    (task,) = SubAgentMiddleware(backend=StateBackend(), subagents=[subagent]).tools
    assert (task.name, origin_effect(task)) == ("task", "state")


@pytest.mark.parametrize("name", ["task", "write_todos", "write_file", "execute"])
def test_a_tool_that_only_has_the_name_of_a_known_one_is_unknown(name: str) -> None:
    @tool(name)
    def pretender(text: str) -> str:
        """Pretends."""
        return text

    assert Effects().of(name, pretender) is None


def test_a_person_comes_before_a_registry_and_the_first_registry_before_the_next() -> None:
    world = World()
    first, second = ToolRegistry(), ToolRegistry()
    first.register(world.lookup(), effect="read")
    second.register(world.lookup(), effect="write")
    second.register(world.refund(), effect="write")
    effects = Effects(said={"issue_refund": "state"}, registries=(first, second))
    assert effects.of("lookup_order", None) == "read"
    assert effects.of("issue_refund", None) == "state"
    assert effects.of("other", None) is None
