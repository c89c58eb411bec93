"""The gate: calls that no ToolNode makes, threads, tools with a way of their own, and calls that lost their run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import RetryPolicy
from pydantic import Field

from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import CallBlocked
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.gate import running
from agentctl.sandbox.injection import sandboxed
from agentctl.sandbox.recordings import Recording
from tests.support.tools import World, answered, ask, call

A1 = {"order_id": "A1"}


def one_node(body: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("work", body)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph.compile()


def stubbed() -> Desk:
    return Desk(Policy(stubs={"lookup_order": "lost", "issue_refund": "paid"}))


def said(result: dict[str, Any]) -> str:
    return str(result["messages"][-1].content)


def served(desk: Desk) -> list[tuple[str, str]]:
    return [(report.name, report.served_by) for report in desk.calls]


def test_a_direct_call_in_a_node_is_answered_with_the_plain_value() -> None:
    world = World()
    lookup = world.lookup()
    graph = one_node(lambda state: {"messages": [lookup.invoke(A1)]})
    desk = stubbed()
    with sandboxed(graph, desk) as box:
        assert said(graph.invoke(ask())) == "lost"
        assert box.direct_tools == ("work|lookup_order",)
    assert [(report.name, report.id, report.args) for report in desk.calls] == [("lookup_order", "", A1)]
    assert world.n_ran == 0


def test_a_direct_call_with_the_models_tool_call_is_answered_with_a_tool_message() -> None:
    world = World()
    lookup = world.lookup()
    graph = one_node(lambda state: {"messages": [lookup.invoke(call("lookup_order", "c7", **A1))]})
    desk = Desk(Policy(), Recording.of([answered("lookup_order", "lost", A1)]).cursor())
    with sandboxed(graph, desk):
        message = graph.invoke(ask())["messages"][-1]
    assert (message.type, message.tool_call_id, message.content) == ("tool", "c7", "lost")
    assert world.n_ran == 0


def test_an_async_direct_call_is_answered() -> None:
    world = World()
    lookup = world.async_lookup()

    async def work(state: Any) -> Any:
        return {"messages": [await lookup.ainvoke(A1)]}

    graph = one_node(work)
    with sandboxed(graph, stubbed()):
        assert said(asyncio.run(graph.ainvoke(ask()))) == "lost"
    assert world.n_ran == 0


def test_an_unanswered_direct_call_stops_the_run_past_any_handler() -> None:
    world = World()
    refund = world.refund()
    handled: list[Exception] = []

    def work(state: Any) -> Any:
        try:
            return {"messages": [refund.invoke({"order_id": "A1", "amount": 1.0})]}
        except Exception as error:
            handled.append(error)
            return {"messages": ["handled"]}

    graph = one_node(work)
    desk = Desk(Policy())
    with sandboxed(graph, desk), pytest.raises(CallBlocked):
        graph.invoke(ask())
    assert handled == []
    assert served(desk) == [("issue_refund", "blocked")]
    assert world.n_ran == 0


def test_a_tool_built_inside_the_node_is_answered() -> None:
    world = World()
    graph = one_node(lambda state: {"messages": [world.lookup().invoke(A1)]})
    with sandboxed(graph, stubbed()):
        assert said(graph.invoke(ask())) == "lost"
    assert world.n_ran == 0


def test_a_tool_with_one_text_argument_is_known_by_that_arguments_name() -> None:
    world = World()
    lookup = world.lookup()
    graph = one_node(lambda state: {"messages": [lookup.invoke("A1")]})
    desk = stubbed()
    with sandboxed(graph, desk):
        graph.invoke(ask())
    assert desk.calls[0].args == A1


def test_tasks_of_the_functional_api_are_gated() -> None:
    world = World()
    lookup = world.lookup()

    @task
    def look(order_id: str) -> str:
        return str(lookup.invoke({"order_id": order_id}))

    @entrypoint()
    def flow(order_id: str) -> str:
        return look(order_id).result() + look(order_id).result()

    desk = stubbed()
    with sandboxed(flow, desk):
        assert flow.invoke("A1") == "lostlost"
    assert served(desk) == [("lookup_order", "stub")] * 2
    assert world.n_ran == 0


def test_threads_and_pools_that_a_node_starts_belong_to_its_run() -> None:
    world = World()
    lookup = world.lookup()

    def work(state: Any) -> Any:
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(lookup.invoke(A1)))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            answers += pool.map(lookup.invoke, [A1, A1])
        return {"messages": [" ".join(answers)]}

    graph = one_node(work)
    desk = stubbed()
    with sandboxed(graph, desk):
        assert said(graph.invoke(ask())) == "lost lost lost"
    assert len(desk.calls) == 3
    assert world.n_ran == 0


def test_a_pool_that_outlives_a_run_does_not_keep_its_desk() -> None:
    world = World()
    lookup = world.lookup()
    with ThreadPoolExecutor(1) as pool:
        graph = one_node(lambda state: {"messages": [pool.submit(lookup.invoke, A1).result()]})
        with sandboxed(graph, stubbed()):
            assert said(graph.invoke(ask())) == "lost"
        assert "delivered" in pool.submit(lookup.invoke, A1).result()
    assert world.n_ran == 1


def test_a_block_in_a_nodes_thread_is_in_the_ledger_and_the_tool_does_not_run() -> None:
    world = World()
    refund = world.refund()

    def work(state: Any) -> Any:
        thread = threading.Thread(target=refund.invoke, args=({"order_id": "A1", "amount": 1.0},))
        thread.start()
        thread.join()
        return {"messages": ["done"]}

    graph = one_node(work)
    desk = Desk(Policy())
    with sandboxed(graph, desk):
        graph.invoke(ask())
    assert served(desk) == [("issue_refund", "blocked")]
    assert world.n_ran == 0


def test_a_thread_that_outlives_its_run_is_blocked() -> None:
    world = World()
    lookup = world.lookup()
    may_call, threads = threading.Event(), []

    def late() -> None:
        may_call.wait(30)
        lookup.invoke(A1)

    def work(state: Any) -> Any:
        threads.append(threading.Thread(target=late))
        threads[0].start()
        return {"messages": ["started"]}

    graph = one_node(work)
    desk = stubbed()
    with sandboxed(graph), running(desk):
        graph.invoke(ask())
    may_call.set()
    threads[0].join()
    assert served(desk) == [("lookup_order", "blocked")]
    assert world.n_ran == 0


def call_without_context(function: Any) -> BaseException | None:
    """Calls a function in a thread started from an empty context, so that no run is carried into it."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    contextvars.Context().run(thread.start)
    thread.join()
    return raised[0] if raised else None


def test_a_call_that_lost_its_run_is_stopped_for_a_tool_of_the_graph() -> None:
    world = World()
    lookup = world.lookup()
    raised: list[BaseException | None] = []

    def work(state: Any) -> Any:
        raised.append(call_without_context(lambda: lookup.invoke(A1)))
        return {"messages": ["done"]}

    graph = one_node(work)
    desk = stubbed()
    with sandboxed(graph, desk):
        graph.invoke(ask())
    assert isinstance(raised[0], CallBlocked)
    assert served(desk) == [("lookup_order", "blocked")]
    assert world.n_ran == 0


def test_a_call_that_lost_its_run_and_is_of_no_known_tool_is_an_escape() -> None:
    world = World()

    def work(state: Any) -> Any:
        assert call_without_context(lambda: world.lookup().invoke(A1)) is None
        return {"messages": ["done"]}

    graph = one_node(work)
    desk = stubbed()
    with sandboxed(graph, desk):
        graph.invoke(ask())
    assert served(desk) == [("lookup_order", "escaped")]
    assert desk.side_effects.escaped == world.n_ran == 1


def test_a_tools_function_called_past_the_tool_is_stopped() -> None:
    world = World()
    refund: Any = world.refund()
    graph = one_node(lambda state: {"messages": [refund.func("A1", amount=2.0)]})
    desk = stubbed()
    with sandboxed(graph, desk), pytest.raises(CallBlocked):
        graph.invoke(ask())
    assert desk.calls[0].args == {"order_id": "A1", "amount": 2.0}
    assert world.n_ran == 0


def test_a_tools_coroutine_called_past_the_tool_is_stopped() -> None:
    world = World()
    lookup: Any = world.async_lookup()

    async def work(state: Any) -> Any:
        return {"messages": [await lookup.coroutine("A1")]}

    graph = one_node(work)
    desk = stubbed()
    with sandboxed(graph, desk), pytest.raises(CallBlocked):
        asyncio.run(graph.ainvoke(ask()))
    assert world.n_ran == 0


class Shouting(BaseTool):
    """A tool with methods of its own, the async one by way of the other."""

    name: str = "shout"
    description: str = "Shouts."
    heard: list[str] = Field(default_factory=list)

    def _run(self, word: str) -> str:
        self.heard.append(word)
        return word.upper()

    async def _arun(self, word: str) -> str:
        return self._run(word)


def test_a_tools_own_method_called_past_the_tool_is_stopped() -> None:
    shout = Shouting()
    desk = stubbed()
    with sandboxed(one_node(lambda state: {"messages": [shout._run("a")]}), desk) as box, pytest.raises(CallBlocked):
        box.graph.invoke(ask())
    assert (desk.calls[0].name, desk.calls[0].args, shout.heard) == ("shout", {"word": "a"}, [])


@pytest.mark.parametrize("sync", [True, False])
def test_a_tools_own_methods_run_where_the_tool_is_let_through(sync: bool) -> None:
    shout = Shouting()

    async def work(state: Any) -> Any:
        return {"messages": [shout.invoke({"word": "a"}) if sync else await shout.ainvoke({"word": "a"})]}

    desk = Desk(Policy(effects=Effects(said={"shout": "state"})))
    with sandboxed(one_node(work), desk) as box:
        assert said(asyncio.run(box.graph.ainvoke(ask()))) == "A"
    assert served(desk) == [("shout", "state")]


def test_a_copy_of_a_tool_that_is_let_through_runs() -> None:
    world = World()
    lookup = world.lookup()
    graph = one_node(lambda state: {"messages": [lookup.model_copy().invoke(A1)]})
    desk = Desk(Policy(effects=Effects(said={"lookup_order": "state"})))
    with sandboxed(graph, desk):
        graph.invoke(ask())
    assert served(desk) == [("lookup_order", "state")]
    assert world.n_ran == 1


class OwnWay(BaseTool):
    """A tool that goes round `run`."""

    name: str = "own_way"
    description: str = "Goes its own way."
    ran: list[Any] = Field(default_factory=list)

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return self._run(input)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return self._run(input)

    def _run(self, value: Any, **kwargs: Any) -> str:
        self.ran.append(value)
        return "ran"


@pytest.mark.parametrize("asynchronously", [False, True], ids=["sync", "async"])
def test_a_tool_class_with_its_own_invoke_is_gated(asynchronously: bool) -> None:
    own = OwnWay()

    async def work_async(state: Any) -> Any:
        return {"messages": [await own.ainvoke({"x": 1})]}

    graph = one_node(work_async if asynchronously else lambda state: {"messages": [own.invoke({"x": 1})]})
    desk = Desk(Policy(stubs={"own_way": "stub"}))
    with sandboxed(graph, desk):
        result = asyncio.run(graph.ainvoke(ask())) if asynchronously else graph.invoke(ask())
    assert said(result) == "stub"
    assert own.ran == []
    let = Desk(Policy(effects=Effects(said={"own_way": "state"})))
    with sandboxed(graph, let):
        result = asyncio.run(graph.ainvoke(ask())) if asynchronously else graph.invoke(ask())
    assert said(result) == "ran"
    assert (served(let), own.ran) == ([("own_way", "state")], [{"x": 1}])


def test_the_namespace_of_a_call_is_that_of_the_graph_which_makes_it() -> None:
    world = World()
    lookup = world.lookup()
    inner = one_node(lambda state: {"messages": [lookup.invoke(A1)]})
    outer = StateGraph(MessagesState)
    outer.add_node("check", inner)
    outer.add_node("direct", lambda state: {"messages": [lookup.invoke(A1)]})
    outer.add_edge(START, "check")
    outer.add_edge("check", "direct")
    desk = stubbed()
    graph = outer.compile()
    with sandboxed(graph, desk):
        graph.invoke(ask())
    inside, outside = (report.ns for report in desk.calls)
    assert inside.startswith("check:")
    assert outside == ""
    assert world.n_ran == 0


def test_a_tool_without_arguments_is_gated() -> None:
    ran: list[int] = []

    @tool
    def ping() -> str:
        """Pings."""
        ran.append(1)
        return "pong"

    graph = one_node(lambda state: {"messages": [ping.invoke({})]})
    with sandboxed(graph, Desk(Policy(stubs={"ping": "stub"}))):
        assert said(graph.invoke(ask())) == "stub"
    assert ran == []


def test_a_retry_policy_does_not_try_a_blocked_call_again() -> None:
    world = World()
    refund = world.refund()
    graph = StateGraph(MessagesState)
    graph.add_node(
        "work",
        lambda state: {"messages": [refund.invoke({"order_id": "A1", "amount": 1.0})]},
        retry_policy=RetryPolicy(max_attempts=3, initial_interval=0.0, retry_on=lambda error: True),
    )
    graph.add_edge(START, "work")
    compiled = graph.compile()
    desk = Desk(Policy())
    with sandboxed(compiled, desk), pytest.raises(CallBlocked):
        compiled.invoke(ask())
    assert served(desk) == [("issue_refund", "blocked")]
    assert world.n_ran == 0


def test_a_block_that_code_swallows_is_in_the_ledger_all_the_same() -> None:
    world = World()
    lookup = world.async_lookup()

    async def work(state: Any) -> Any:
        gathered = await asyncio.gather(lookup.ainvoke(A1), return_exceptions=True)
        return {"messages": [type(gathered[0]).__name__]}

    graph = one_node(work)
    desk = Desk(Policy())
    with sandboxed(graph, desk):
        assert said(asyncio.run(graph.ainvoke(ask()))) == "CallBlocked"
    assert desk.blocked is not None
    assert served(desk) == [("lookup_order", "blocked")]
    assert world.n_ran == 0


@pytest.mark.parametrize("wrapped", ["retry", "fallbacks", "config"])
def test_tools_wrapped_by_langchain_are_gated(wrapped: str) -> None:
    world = World()
    lookup = world.lookup()
    runnable = {
        "retry": lambda: lookup.with_retry(stop_after_attempt=2),
        "fallbacks": lambda: lookup.with_fallbacks([world.refund()]),
        "config": lambda: lookup.with_config(tags=["x"]),
    }[wrapped]()
    graph = one_node(lambda state: {"messages": [runnable.invoke(A1)]})
    desk = Desk(Policy())
    with sandboxed(graph, desk), pytest.raises(CallBlocked):
        graph.invoke(ask())
    assert served(desk) == [("lookup_order", "blocked")]
    assert world.n_ran == 0
