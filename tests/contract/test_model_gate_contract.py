"""The private names of LangChain's chat models and LangGraph's tasks that recorded answers are given by."""

from __future__ import annotations

import inspect
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel._algo import task_path_str
from langgraph.types import Send

from agentctl.sandbox.models import asking
from agentctl.stores.reading import layout
from tests.support.recorded import Asked, models_run


def test_every_public_method_of_a_chat_model_goes_by_way_of_the_gate() -> None:
    for name in ("_generate_with_cache", "_agenerate_with_cache", "stream", "astream"):
        assert "messages" in inspect.signature(getattr(BaseChatModel, name)).parameters or "stream" in name
    for method, inner in (("generate", "_generate_with_cache"), ("agenerate", "_agenerate_with_cache")):
        assert inner in inspect.getsource(getattr(BaseChatModel, method))
    for method, inner in (("invoke", "generate_prompt"), ("ainvoke", "agenerate_prompt")):
        assert inner in inspect.getsource(getattr(BaseChatModel, method))
    assert all(hasattr(BaseChatModel, name) for name in ("_iter_v2_events", "_aiter_v2_events"))
    assert all(hasattr(BaseLLM, name) for name in ("generate", "agenerate", "stream", "astream"))


def test_every_answer_of_a_model_has_an_id_that_is_no_bare_uuid() -> None:
    with models_run():
        said = Asked(script=lambda *_: AIMessage("hello")).invoke("hello")
    assert str(said.id).startswith("lc_run--")


def test_a_task_knows_its_namespace_its_path_and_the_channels_it_reads() -> None:
    found: list[tuple[Any, Any, list[str]]] = []

    def look() -> None:
        config: Any = var_child_runnable_config.get()
        read = config["configurable"]["__pregel_read"]
        path, ns = config["metadata"]["langgraph_path"], config["configurable"]["checkpoint_ns"]
        found.append((ns.partition(":")[0], task_path_str(tuple(path)), sorted(read.args[1])))
        assert config["configurable"]["__pregel_scratchpad"].resume == []
        assert asking.asking() is not None

    def node(state: MessagesState) -> None:
        look()

    graph = StateGraph(MessagesState).add_node("node", node)
    graph.add_conditional_edges(START, lambda state: ["node", Send("node", state)])
    graph.compile().invoke({"messages": "hello"})
    assert [path for _, path, _ in sorted(found)] == [layout.pull_path("node"), layout.send_path(0)]
    assert {"messages", layout.TASKS} <= set(found[0][2])

    found.clear()

    @task
    def inner() -> None:
        look()

    @entrypoint()
    def work(state: dict[str, Any]) -> None:
        look()
        inner().result()

    work.invoke({})
    assert [path for _, path, _ in found] == [
        layout.pull_path("work"),
        "~__pregel_push, ~__pregel_pull, work, 0000000000, 0000000001",
    ]
    assert layout.START in found[0][2]


def test_code_outside_a_run_belongs_to_no_task() -> None:
    assert asking.asking() is None
