"""Graph specs: every form that langgraph.json takes, what a failing import says, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from agentctl.errors import ConfigError, GraphFailed, NotFound, UsageError
from agentctl.sandbox.environment import import_path
from agentctl.sandbox.loading import LoadedGraph, load_graph, load_graph_async, require_context
from agentctl.sandbox.registry import ToolRegistry
from tests.support.tools import World, ask

PRELUDE = """
from langgraph.graph import END, START, MessagesState, StateGraph

builder = StateGraph(MessagesState)
builder.add_node("work", lambda state: {"messages": ["hello"]})
builder.add_edge(START, "work")
builder.add_edge("work", END)
"""


def write(folder: Path, text: str, name: str = "graph.py", *, prelude: str = PRELUDE) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(prelude + textwrap.dedent(text))
    return file


def load(folder: Path, text: str, attr: str = "graph", **options: Any) -> LoadedGraph:
    return load_graph(f"{write(folder, text)}:{attr}", **options)


def reply(graph: Any) -> str:
    return str(graph.invoke(ask())["messages"][-1].content)


@pytest.mark.parametrize(
    ("text", "attr", "kind"),
    [
        ("graph = builder.compile()", "graph", "graph"),
        ("", "builder", "builder"),
        ("def make():\n    return builder.compile()", "make", "function"),
        ("def make():\n    return builder", "make", "function"),
        (
            "def make(config):\n    assert config['configurable'] == {}\n    return builder",
            "make",
            "function",
        ),
        ("def make(config=None, more=3):\n    assert config is not None\n    return builder", "make", "function"),
        ("def make(more=3):\n    assert more == 3\n    return builder", "make", "function"),
        ("async def make():\n    return builder.compile()", "make", "function"),
        ("async def make(config):\n    return builder.compile()", "make", "function"),
        (
            "from contextlib import contextmanager\n@contextmanager\ndef make():\n    yield builder.compile()",
            "make",
            "function",
        ),
        (
            "from contextlib import asynccontextmanager as around\n@around\nasync def make(config):\n    yield builder",
            "make",
            "function",
        ),
        (
            "def build(tools, *, model=None, memory=None):\n    assert len(tools) == 1\n    return builder",
            "build",
            "build_graph",
        ),
        ("async def build(tools):\n    return builder", "build", "build_graph"),
    ],
)
def test_every_form_loads_and_runs(tmp_path: Path, text: str, attr: str, kind: str) -> None:
    registry = ToolRegistry()
    registry.register(World().lookup(), effect="read")
    with load(tmp_path, text, attr, registry=registry) as loaded:
        assert loaded.kind == kind
        assert loaded.nodes == ("work",)
        assert loaded.channels == ("messages",)
        assert reply(loaded.graph) == "hello"


def test_build_graph_is_given_the_model_and_the_memory_store(tmp_path: Path) -> None:
    text = """
    def build(tools, *, model=None, memory=None):
        assert (model, memory) == ("m", "s")
        return builder
    """
    load(tmp_path, text, "build", registry=ToolRegistry(), model="m", memory="s").close()


def test_build_graph_without_a_registry_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes its tools") as caught:
        load(tmp_path, "def build(tools):\n    return builder", "build")
    assert "registry" in (caught.value.hint or "")


def test_what_a_context_manager_opens_is_open_while_loaded_and_closed_after(tmp_path: Path) -> None:
    text = """
    from contextlib import asynccontextmanager
    log = []

    @asynccontextmanager
    async def make():
        log.append("open")
        builder.log = log
        try:
            yield builder.compile()
        finally:
            log.append("closed")
    """
    loaded = load(tmp_path, text, "make")
    log = loaded.graph.builder.log  # type: ignore[attr-defined]
    assert log == ["open"]
    loaded.close()
    loaded.close()
    assert log == ["open", "closed"]


def test_a_graph_loads_inside_a_running_loop(tmp_path: Path) -> None:
    file = write(tmp_path, "async def make():\n    return builder")

    async def main() -> str:
        async with await load_graph_async(f"{file}:make") as loaded:
            return str((await loaded.graph.ainvoke(ask()))["messages"][-1].content)

    assert asyncio.run(main()) == "hello"


def test_the_nearest_langgraph_json_is_the_project_and_its_folder_is_importable(tmp_path: Path) -> None:
    (tmp_path / "langgraph.json").write_text('{"dependencies": ["./lib"], "graphs": {}}')
    write(tmp_path, "WORD = 'shared'", "common_of_project.py", prelude="")
    write(tmp_path, "LIB = 1", "lib/lib_of_project.py", prelude="")
    text = "from common_of_project import WORD\nimport lib_of_project\ngraph = builder.compile()"
    file = write(tmp_path, text, "apps/agent/graph.py")
    with load_graph(f"{file}:graph") as loaded:
        assert loaded.spec.project == tmp_path
        assert loaded.spec.module == "apps.agent.graph"
        assert reply(loaded.graph) == "hello"


def test_relative_imports_in_a_package_work_without_a_project_file(tmp_path: Path) -> None:
    write(tmp_path, "", "shop/__init__.py", prelude="")
    write(tmp_path, "", "shop/agent/__init__.py", prelude="")
    write(tmp_path, "WORD = 'x'", "shop/words.py", prelude="")
    file = write(tmp_path, "from ..words import WORD\ngraph = builder.compile()", "shop/agent/graph.py")
    with load_graph(f"{file}:graph") as loaded:
        assert loaded.spec.module == "shop.agent.graph"


def test_relative_imports_work_where_the_folder_of_the_file_is_the_package(tmp_path: Path) -> None:
    write(tmp_path, "", "kiosk/__init__.py", prelude="")
    write(tmp_path, "WORD = 'x'", "kiosk/words.py", prelude="")
    file = write(tmp_path, "from .words import WORD\ngraph = builder.compile()", "kiosk/graph.py")
    with load_graph(f"{file}:graph") as loaded:
        assert loaded.spec.module == "kiosk.graph"


def test_a_relative_import_outside_a_package_says_how_to_name_the_module(tmp_path: Path) -> None:
    write(tmp_path, "WORD = 'x'", "loose/words.py", prelude="")
    with pytest.raises(GraphFailed) as caught:
        load(tmp_path / "loose", "from .words import WORD")
    assert "--graph package.module:attr" in (caught.value.hint or "")


def test_a_dotted_module_is_imported_from_the_working_folder(tmp_path: Path) -> None:
    write(tmp_path, "graph = builder.compile()", "shop2/graph.py")
    with load_graph("shop2.graph:graph", cwd=tmp_path) as loaded:
        assert reply(loaded.graph) == "hello"


def test_two_files_of_the_same_name_are_two_graphs(tmp_path: Path) -> None:
    first = write(tmp_path / "one", "WHICH = 1\ngraph = builder.compile()")
    second = write(tmp_path / "two", "WHICH = 2\ngraph = builder.compile(name='second')")
    with load_graph(f"{first}:graph") as one, load_graph(f"{second}:graph") as two:
        assert one.graph is not two.graph
        assert two.graph.name == "second"


def test_a_file_named_like_a_standard_module_loads_and_leaves_that_module_alone(tmp_path: Path) -> None:
    import json

    file = write(tmp_path, "graph = builder.compile()", "json.py")
    with load_graph(f"{file}:graph") as loaded:
        assert reply(loaded.graph) == "hello"
    assert sys.modules["json"] is json


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTL_ENV", "production")
    monkeypatch.setenv("KEPT", "before")
    write(tmp_path, "", "left_behind.py", prelude="")
    before = (list(sys.path), set(sys.modules), dict(os.environ), sys.dont_write_bytecode)
    text = """
    import os, left_behind
    assert "AGENTCTL_ENV" not in os.environ
    assert (os.environ["KEPT"], os.environ["NEW"]) == ("during", "1")
    graph = builder.compile()
    """
    load(tmp_path, text, env={"KEPT": "during", "NEW": "1"}).close()
    ours = {name for name in set(sys.modules) - before[1] if name in ("graph", "left_behind")}
    assert (list(sys.path), dict(os.environ), sys.dont_write_bytecode, ours) == (before[0], before[2], before[3], set())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.py", "left_behind.py"]


def test_what_is_loaded_inside_an_outer_path_stays_until_the_outer_one_ends(tmp_path: Path) -> None:
    write(tmp_path, "", "stays_loaded.py", prelude="")
    with import_path((tmp_path,)):
        load(tmp_path, "import stays_loaded\ngraph = builder.compile()").close()
        assert "stays_loaded" in sys.modules
        assert str(tmp_path) in sys.path
    assert "stays_loaded" not in sys.modules
    assert str(tmp_path) not in sys.path


def test_only_what_came_by_way_of_the_projects_folder_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "langgraph.json").write_text("{}")
    write(tmp_path, "", "lib/of_another_path.py", prelude="")
    text = f"import sys\nsys.path.append({str(tmp_path / 'lib')!r})\nimport of_another_path\ngraph = builder.compile()"
    file = write(tmp_path, text, "apps/deep/inside/graph.py")
    try:
        load_graph(f"{file}:graph").close()
        assert "of_another_path" in sys.modules
        assert not [name for name in sys.modules if name.partition(".")[0] == "apps"]
    finally:
        sys.modules.pop("of_another_path", None)
        sys.path.remove(str(tmp_path / "lib"))


def test_a_failed_load_leaves_nothing_behind_either(tmp_path: Path) -> None:
    before = (list(sys.path), dict(os.environ))
    with pytest.raises(GraphFailed):
        load(tmp_path, "import left_behind_2\n1 / 0", env={"NEW": "1"})
    assert (list(sys.path), dict(os.environ)) == before
    assert "graph" not in sys.modules


@pytest.mark.parametrize("spec", ["graph.py", "graph.py:", ":graph", "graph.py:a b", ""])
def test_a_spec_of_another_form_is_a_usage_error(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_graph(spec)
    assert "path.py:attr" in (caught.value.hint or "")


def test_a_missing_file_names_those_with_a_like_name(tmp_path: Path) -> None:
    write(tmp_path, "", "support.py")
    with pytest.raises(NotFound) as caught:
        load_graph("suport.py:graph", cwd=tmp_path)
    assert caught.value.candidates == ({"file": "support.py"},)
    assert "support.py:graph" in (caught.value.hint or "")


def test_a_missing_attribute_names_the_graphs_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        load(tmp_path, "graph = builder.compile()\nNOT_ONE = 3", "grpah")
    place = str(tmp_path / "graph.py")
    assert {"graph": f"{place}:graph"} in caught.value.candidates
    assert {"graph": f"{place}:NOT_ONE"} not in caught.value.candidates
    assert f"{place}:graph" in (caught.value.hint or "")


def test_a_missing_module_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no module"):
        load_graph("no_such_pkg.graph:graph", cwd=tmp_path)


@pytest.mark.parametrize("text", ["graph = 3", "def graph():\n    return 3", "def graph(a, b):\n    return builder"])
def test_what_is_no_graph_and_gives_none_is_a_usage_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        load(tmp_path, text)


def test_an_import_that_fails_shows_the_users_own_traceback(tmp_path: Path) -> None:
    with pytest.raises(GraphFailed, match="ZeroDivisionError") as caught:
        load(tmp_path, "def deep():\n    return 1 / 0\ndeep()")
    assert caught.value.exit_code == 6
    assert "in deep" in caught.value.traceback
    assert "agentctl" not in caught.value.traceback.replace(str(tmp_path), "")
    assert "importlib" not in caught.value.traceback


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(GraphFailed, match="SyntaxError") as caught:
        load(tmp_path, "def :")
    assert "graph.py" in caught.value.traceback


def test_a_factory_that_fails_is_the_graphs_failure(tmp_path: Path) -> None:
    with pytest.raises(GraphFailed, match="no database"):
        load(tmp_path, "def graph():\n    raise RuntimeError('no database')")


def test_a_module_that_exits_is_the_graphs_failure(tmp_path: Path) -> None:
    with pytest.raises(GraphFailed, match="SystemExit"):
        load(tmp_path, "raise SystemExit(3)")


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.environ['SHOP_API_KEY']",
        "raise ValueError('set the SHOP_API_KEY environment variable')",
        "try:\n    raise KeyError('x')\nexcept KeyError as e:\n    raise RuntimeError('no SHOP_API_KEY') from e",
        "def graph():\n    import os\n    return os.environ['SHOP_API_KEY']",
    ],
)
def test_a_missing_environment_variable_is_named_with_the_option_that_gives_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(GraphFailed, match="environment variable SHOP_API_KEY") as caught:
        load(tmp_path, text)
    assert "--env SHOP_API_KEY=DUMMY" in (caught.value.hint or "")


def test_a_variable_that_is_set_is_not_blamed(tmp_path: Path) -> None:
    with pytest.raises(GraphFailed) as caught:
        load(tmp_path, "raise ValueError('SHOP_API_KEY is wrong')", env={"SHOP_API_KEY": "x"})
    assert "environment variable" not in caught.value.message


def test_a_package_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(GraphFailed) as caught:
        load(tmp_path, "import no_such_package_anywhere")
    assert "no_such_package_anywhere" in (caught.value.hint or "")


def test_a_damaged_project_file_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "langgraph.json").write_text("{")
    with pytest.raises(ConfigError):
        load(tmp_path, "graph = builder.compile()")


def test_the_graphs_own_checkpointer_and_store_are_replaced(tmp_path: Path) -> None:
    text = """
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.store.memory import InMemoryStore
    graph = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    """
    with load(tmp_path, text) as loaded:
        saver, store = InMemorySaver(), InMemoryStore()
        assert loaded.with_saver(saver, store).checkpointer is saver
        assert loaded.with_saver(saver, store).store is store
        unasked = loaded.with_saver(saver).store
        assert isinstance(unasked, InMemoryStore)
        assert unasked is not loaded.graph.store
        assert loaded.graph.checkpointer is not saver


def test_a_store_is_there_where_a_tool_asks_for_one(tmp_path: Path) -> None:
    text = """
    from typing import Annotated, Any
    from langchain_core.tools import tool
    from langgraph.prebuilt import InjectedStore, ToolNode

    @tool
    def remember(name: str, store: Annotated[Any, InjectedStore()]) -> str:
        "Remembers."
        return name

    builder.add_node("tools", ToolNode([remember]))
    builder.add_edge("work", "tools")
    graph = builder.compile()
    """
    with load(tmp_path, text) as loaded:
        assert isinstance(loaded.with_saver(None).store, InMemoryStore)
        assert [(tool.path, tool.tool.name) for tool in loaded.found.tools] == [("tools", "remember")]


def test_a_graph_without_a_store_stays_without_one(tmp_path: Path) -> None:
    with load(tmp_path, "graph = builder.compile()") as loaded:
        assert loaded.with_saver(InMemorySaver()).store is None


CONTEXTS = """
from dataclasses import dataclass
from typing import NotRequired, TypedDict
from pydantic import BaseModel

@dataclass
class Data:
    user_id: str
    tier: str = "basic"

class Typed(TypedDict):
    user_id: str
    tier: NotRequired[str]

class Model(BaseModel):
    user_id: str
    tier: str = "basic"

def make(schema):
    builder = StateGraph(MessagesState, context_schema=schema)
    builder.add_node("work", lambda state: {})
    builder.add_edge(START, "work")
    return builder.compile()

data, typed, model = make(Data), make(Typed), make(Model)
"""


@pytest.mark.parametrize("attr", ["data", "typed", "model"])
def test_a_context_schema_without_a_context_is_refused_naming_its_fields(tmp_path: Path, attr: str) -> None:
    with load(tmp_path, CONTEXTS, attr) as loaded:
        assert loaded.context_fields == ("user_id", "tier")
        with pytest.raises(UsageError, match=r"user_id, tier \(optional\)") as caught:
            require_context(loaded.graph, None)
        assert "--context" in (caught.value.hint or "")
        assert require_context(loaded.graph, {"user_id": "u"}) == {"user_id": "u"}
        with pytest.raises(UsageError, match="lacks user_id"):
            require_context(loaded.graph, {"tier": "gold"})
        with pytest.raises(UsageError, match="unknown usr"):
            require_context(loaded.graph, {"user_id": "u", "usr": "x"})


def test_a_graph_without_a_context_schema_takes_what_it_is_given(tmp_path: Path) -> None:
    with load(tmp_path, "graph = builder.compile()") as loaded:
        assert loaded.context_fields == ()
        assert require_context(loaded.graph, None) is None


def test_the_models_that_a_graph_holds_are_named(tmp_path: Path) -> None:
    text = """
    from langchain_core.language_models import FakeListChatModel
    model = FakeListChatModel(responses=["hi"])
    builder.add_node("think", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge("work", "think")
    graph = builder.compile()
    """
    with load(tmp_path, text) as loaded:
        assert loaded.model == "FakeListChatModel"
