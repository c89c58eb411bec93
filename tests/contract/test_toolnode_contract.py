"""The private names of LangGraph and LangChain that the sandbox relies on."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from langchain_core.tools import base as tools_base
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.pregel import Pregel

from agentctl.sandbox import toolnodes


@tool
def sample(
    order_id: str,
    state: Annotated[dict[str, Any], InjectedState],
    store: Annotated[Any, InjectedStore()],
    call_id: Annotated[str, InjectedToolCallId],
    runtime: ToolRuntime,
    amount: float = 1.0,
) -> str:
    """Does nothing."""
    return order_id


@pytest.mark.parametrize("name", ["_execute_tool_sync", "_execute_tool_async"])
def test_a_tool_node_executes_a_request_in_a_method_of_its_own(name: str) -> None:
    parameters = list(inspect.signature(getattr(ToolNode, name)).parameters)
    assert parameters == ["self", "request", "input_type", "config"]
    assert inspect.iscoroutinefunction(getattr(ToolNode, name)) is name.endswith("async")


@pytest.mark.parametrize(
    ("method", "called"),
    [
        ("_run_one", "self._execute_tool_sync("),
        ("_arun_one", "self._execute_tool_async("),
        ("_arun_one", "self._execute_tool_sync("),
    ],
)
def test_every_way_through_a_tool_node_ends_in_these_methods(method: str, called: str) -> None:
    assert called in inspect.getsource(getattr(ToolNode, method))


def test_a_tool_node_invokes_tools_nowhere_else() -> None:
    source = inspect.getsource(ToolNode)
    assert source.count(".invoke(") == source.count(".ainvoke(") == 1


def test_a_request_says_what_is_called() -> None:
    assert set(inspect.signature(ToolCallRequest).parameters) == {"tool_call", "tool", "state", "runtime"}


def test_a_tool_node_knows_the_injected_arguments_of_its_tools() -> None:
    assert toolnodes.wants_store(ToolNode([sample]))

    @tool
    def plain(order_id: str) -> str:
        """Does nothing."""
        return order_id

    assert not toolnodes.wants_store(ToolNode([plain]))


def test_injected_arguments_are_told_from_the_models() -> None:
    given = {"order_id": "A1", "state": {}, "store": None, "runtime": None, "call_id": "c1"}
    assert toolnodes.model_args(sample, given) == {"order_id": "A1"}


@pytest.mark.parametrize("name", ["run", "arun"])
def test_a_tool_is_called_by_run_with_its_input_first_and_the_call_id_by_name(name: str) -> None:
    parameters = inspect.signature(inspect.unwrap(getattr(BaseTool, name))).parameters
    assert list(parameters)[1] == "tool_input"
    assert parameters["tool_call_id"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["config"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(("name", "inner"), [("invoke", "self.run("), ("ainvoke", "self.arun(")])
def test_invoke_leads_to_run(name: str, inner: str) -> None:
    assert inner in inspect.getsource(getattr(BaseTool, name))


def test_a_structured_tool_without_a_coroutine_leads_to_invoke() -> None:
    assert "self.invoke" in inspect.getsource(StructuredTool.ainvoke)


def test_no_tool_class_of_langchain_core_overrides_run() -> None:
    classes = [found for found in _subclasses(BaseTool) if found.__module__.startswith("langchain_core.")]
    assert classes
    assert not [found for found in classes if {"run", "arun"} & vars(found).keys()]


def test_validation_raises_what_the_tool_would_raise() -> None:
    @tool
    def pay(amount: float, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Pays."""
        return str(amount)

    with pytest.raises(ValueError, match="amount"):
        toolnodes.rejection(pay, {"amount": "a lot", "state": {}}, "c1")
    assert toolnodes.rejection(pay, {"amount": "1.5", "state": {}}, "c1") is None


@pytest.mark.parametrize("name", ["_format_output", "_handle_tool_error", "_handle_validation_error"])
def test_the_functions_that_word_a_rejection_are_there(name: str) -> None:
    assert callable(getattr(tools_base, name))


def test_a_builder_tells_plain_edges_from_conditional_ones() -> None:
    builder = StateGraph(MessagesState)
    for name in ("a", "b", "c"):
        builder.add_node(name, lambda state: {})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_conditional_edges("b", lambda state: "c", ["c"])
    graph: Any = builder.compile()
    assert ("a", "b") in graph.builder.edges
    assert list(graph.builder.branches) == ["b"]


def test_a_nodes_config_ends_with_the_nodes_own_task() -> None:
    seen: list[Any] = []
    builder = StateGraph(MessagesState)
    builder.add_node("a", lambda state, config: seen.append(config) or {})
    builder.add_edge(START, "a")
    builder.compile().invoke({"messages": []})
    assert seen[0]["configurable"]["checkpoint_ns"].startswith("a:")
    assert toolnodes.namespace_of(seen[0]) == ""
    assert toolnodes.namespace_of({"configurable": {"checkpoint_ns": "a:1|b:2"}}) == "a:1"


def test_a_graph_is_copied_with_another_checkpointer_store_and_cache() -> None:
    assert {"checkpointer", "store", "cache"} <= inspect.signature(Pregel.__init__).parameters.keys()


def _subclasses(base: type[Any]) -> list[type[Any]]:
    return [found for direct in base.__subclasses__() for found in (direct, *_subclasses(direct))]
