"""ToolNodes in the sandbox: answers instead of calls, sync and async, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import CallBlocked, canonical_args
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.gate import running
from agentctl.sandbox.injection import sandboxed
from agentctl.sandbox.recordings import Recording
from agentctl.sandbox.registry import ToolRegistry
from agentctl.sandbox.replies import Substitute
from agentctl.sandbox.walk import walk
from agentctl.testing import ScriptedModel
from tests.support.tools import World, agent, answered, ask, call, calling, once, thread, tool_messages

A1 = {"order_id": "A1"}


def run(graph: Any, desk: Desk, *, asynchronously: bool = False, name: str = "t") -> dict[str, Any]:
    with sandboxed(graph, desk):
        if asynchronously:
            result = asyncio.run(graph.ainvoke(ask(), thread(name), durability="sync"))
        else:
            result = graph.invoke(ask(), thread(name), durability="sync")
    return dict(result)


def served(desk: Desk) -> list[tuple[str, str]]:
    return [(report.name, report.served_by) for report in desk.calls]


both = pytest.mark.parametrize("asynchronously", [False, True], ids=["sync", "async"])


@both
def test_a_call_is_answered_and_its_tool_does_not_run(asynchronously: bool) -> None:
    world = World()
    graph = agent([world.lookup()], once(call("lookup_order", "c1", **A1)))
    desk = Desk(Policy(), Recording.of([answered("lookup_order", "lost", A1, call_id="r1")]).cursor())
    result = run(graph, desk, asynchronously=asynchronously)
    (message,) = tool_messages(result)
    assert (message.content, message.tool_call_id, message.name) == ("lost", "c1", "lookup_order")
    assert result["messages"][-1].content == "lost"
    assert served(desk) == [("lookup_order", "recorded")]
    assert world.n_ran == 0


@both
def test_a_call_without_an_answer_stops_the_run_even_where_errors_become_messages(asynchronously: bool) -> None:
    world = World()
    node = ToolNode([world.refund()], handle_tool_errors=True)
    graph = agent([], once(call("issue_refund", "c1", order_id="A1", amount=120.0)), tool_node=node)
    desk = Desk(Policy())
    with pytest.raises(CallBlocked) as caught:
        run(graph, desk, asynchronously=asynchronously)
    assert caught.value.report.args == {"order_id": "A1", "amount": 120.0}
    assert served(desk) == [("issue_refund", "blocked")]
    assert not [write for write in graph.get_state(thread()).tasks if write.error]
    assert world.n_ran == 0


@both
def test_parallel_calls_are_each_answered_and_reported_once(asynchronously: bool) -> None:
    world = World()
    calls = [call("lookup_order", f"c{i}", order_id=f"A{i}") for i in range(6)]
    graph = agent([world.lookup()], once(*calls))
    policy = Policy(stubs={"lookup_order": "lost"})
    desk = Desk(policy)
    result = run(graph, desk, asynchronously=asynchronously)
    assert [message.tool_call_id for message in tool_messages(result)] == [f"c{i}" for i in range(6)]
    assert sorted(report.id for report in desk.calls) == [f"c{i}" for i in range(6)]
    assert world.n_ran == 0


@both
def test_one_blocked_call_of_several_stops_the_run_and_none_runs(asynchronously: bool) -> None:
    world = World()
    calls = [call("lookup_order", "c1", **A1), call("issue_refund", "c2", order_id="A1", amount=1.0)]
    graph = agent([world.lookup(), world.refund()], once(*calls))
    desk = Desk(Policy(stubs={"lookup_order": "lost"}))
    with pytest.raises(CallBlocked):
        run(graph, desk, asynchronously=asynchronously)
    assert sorted(served(desk)) == [("issue_refund", "blocked"), ("lookup_order", "stub")]
    assert world.n_ran == 0


def test_runs_side_by_side_keep_their_own_desks() -> None:
    world = World()
    graph = agent([world.lookup()], once(call("lookup_order", "c1", **A1)))
    desks = [Desk(Policy(stubs={"lookup_order": f"answer {i}"})) for i in range(20)]

    async def one(number: int) -> str:
        with running(desks[number]):
            result = await graph.ainvoke(ask(), thread(f"t{number}"), durability="sync")
        return str(result["messages"][-1].content)

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*(one(number) for number in range(20))))

    with sandboxed(graph):
        replies = asyncio.run(all_of_them())
    assert replies == [f"answer {i}" for i in range(20)]
    assert all(served(desk) == [("lookup_order", "stub")] for desk in desks)
    assert world.n_ran == 0


def test_a_block_stops_only_its_own_run() -> None:
    world = World()
    graph = agent([world.lookup()], once(call("lookup_order", "c1", **A1)))
    desks = [Desk(Policy(stubs={"lookup_order": "lost"} if number % 2 else {})) for number in range(6)]

    async def one(number: int) -> str:
        try:
            with running(desks[number]):
                result = await graph.ainvoke(ask(), thread(f"t{number}"), durability="sync")
        except CallBlocked:
            return "blocked"
        return str(result["messages"][-1].content)

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*(one(number) for number in range(6))))

    with sandboxed(graph):
        assert asyncio.run(all_of_them()) == ["blocked", "lost"] * 3
    assert world.n_ran == 0


def test_outside_the_sandbox_tools_run_and_everything_is_as_it_was() -> None:
    world = World()
    lookup = world.lookup()
    node = ToolNode([lookup])
    before = dict(vars(node)), lookup.func
    graph = agent([], once(call("lookup_order", "c1", **A1)), tool_node=node)
    run(graph, Desk(Policy(stubs={"lookup_order": "lost"})))
    assert (dict(vars(node)), lookup.func) == before
    result = graph.invoke(ask(), thread("real"), durability="sync")
    assert json.loads(tool_messages(result)[0].text)["status"] == "delivered"
    assert world.n_ran == 1


def test_a_sandbox_that_ends_with_an_error_is_undone_too() -> None:
    world = World()
    lookup = world.lookup()
    node = ToolNode([lookup])
    before = dict(vars(node)), lookup.func
    graph = agent([], once(call("lookup_order", "c1", **A1)), tool_node=node)
    with pytest.raises(CallBlocked):
        run(graph, Desk(Policy()))
    assert (dict(vars(node)), lookup.func) == before


def test_inside_the_sandbox_but_outside_a_run_tools_still_run() -> None:
    world = World()
    graph = agent([world.lookup()], once(call("lookup_order", "c1", **A1)))
    with sandboxed(graph):
        graph.invoke(ask(), thread(), durability="sync")
    assert world.n_ran == 1


@both
def test_middleware_around_tool_calls_keeps_running(asynchronously: bool) -> None:
    world = World()
    seen: list[str] = []

    def wrapper(request: Any, execute: Any) -> Any:
        seen.append(request.tool_call["args"]["order_id"])
        changed = {**request.tool_call, "args": {"order_id": "B2"}}
        message = execute(request.override(tool_call=changed))
        return message.model_copy(update={"content": message.content.upper()})

    node = ToolNode([world.lookup()], wrap_tool_call=wrapper)
    graph = agent([], once(call("lookup_order", "c1", **A1)), tool_node=node)
    desk = Desk(Policy(stubs={"lookup_order": "lost"}))
    result = run(graph, desk, asynchronously=asynchronously)
    assert tool_messages(result)[0].content == "LOST"
    assert seen == ["A1"]
    assert desk.calls[0].args == {"order_id": "B2"}
    assert world.n_ran == 0


def test_an_error_type_that_the_node_does_not_handle_still_aborts() -> None:
    @tool
    def flaky(order_id: str) -> str:
        """Fails."""
        raise KeyError(order_id)

    node = ToolNode([flaky], handle_tool_errors=(ValueError,))
    graph = agent([], once(call("flaky", "c1", **A1)), tool_node=node)
    with pytest.raises(KeyError):
        run(graph, Desk(Policy(effects=Effects(said={"flaky": "state"}))))


@both
def test_arguments_are_still_validated_by_the_tools_own_schema(asynchronously: bool) -> None:
    world = World()
    graph = agent([world.refund()], once(call("issue_refund", "c1", order_id="A1", amount="a lot")))
    desk = Desk(Policy(stubs={"issue_refund": "paid"}))
    (message,) = tool_messages(run(graph, desk, asynchronously=asynchronously))
    assert message.status == "error"
    assert "amount" in message.text
    assert desk.calls == ()
    assert world.n_ran == 0


def test_a_tool_that_words_its_own_validation_errors_still_does() -> None:
    world = World()
    refund = world.refund(handle_validation_error="say an amount")
    graph = agent([refund], once(call("issue_refund", "c1", order_id="A1")))
    (message,) = tool_messages(run(graph, Desk(Policy(stubs={"issue_refund": "paid"}))))
    assert (message.status, message.content) == ("error", "say an amount")


def test_injected_arguments_are_not_part_of_the_call() -> None:
    ran: list[str] = []

    @tool
    def remember(
        name: str,
        state: Annotated[dict[str, Any], InjectedState],
        store: Annotated[Any, InjectedStore()],
        tool_call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
    ) -> str:
        """Remembers a name."""
        ran.append(name)
        return name

    graph = agent([remember], once(call("remember", "c1", name="Ada")), store=InMemoryStore())
    desk = Desk(Policy(), Recording.of([answered("remember", "ok", {"name": "Ada"})]).cursor())
    run(graph, desk)
    assert [(report.args, report.served_by) for report in desk.calls] == [({"name": "Ada"}, "recorded")]
    assert ran == []


def test_an_injected_argument_that_the_model_forged_is_not_part_of_the_call_a_tool_sees() -> None:
    seen: list[Any] = []

    @tool
    def peek(name: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Looks at the state."""
        seen.append(sorted(state))
        return name

    graph = agent([peek], once(call("peek", "c1", name="Ada", state={"forged": True})))
    run(graph, Desk(Policy(effects=Effects(said={"peek": "state"}))))
    assert seen == [["messages"]]


@both
def test_a_stub_answers_an_async_only_tool_whichever_way_the_graph_runs(asynchronously: bool) -> None:
    world = World()
    graph = agent([world.async_lookup()], once(call("lookup_order", "c1", **A1)))
    desk = Desk(Policy(stubs={"lookup_order": "lost"}))
    assert tool_messages(run(graph, desk, asynchronously=asynchronously))[0].content == "lost"
    assert world.n_ran == 0


@both
def test_an_async_only_sandbox_tool_stands_in_whichever_way_the_graph_runs(asynchronously: bool) -> None:
    world, sandbox = World(), World()
    registry = ToolRegistry()
    registry.register(sandbox.async_lookup(), effect="read")
    graph = agent([world.lookup()], once(call("lookup_order", "c1", **A1)))
    desk = Desk(Policy(registry=registry))
    (message,) = tool_messages(run(graph, desk, asynchronously=asynchronously))
    assert (message.tool_call_id, json.loads(message.text)["status"]) == ("c1", "delivered")
    assert served(desk) == [("lookup_order", "stub")]
    assert (world.n_ran, sandbox.n_ran) == (0, 1)


@both
def test_a_graph_built_on_the_sandbox_registry_runs_its_tools_and_counts_them_once(asynchronously: bool) -> None:
    sandbox = World()
    registry = ToolRegistry()
    lookup = registry.register(sandbox.lookup(), effect="read")
    graph = agent([lookup], once(call("lookup_order", "c1", **A1)))
    desk = Desk(Policy(registry=registry))
    run(graph, desk, asynchronously=asynchronously)
    assert served(desk) == [("lookup_order", "stub")]
    assert desk.calls[0].result == '{"order_id": "A1", "status": "delivered"}'
    assert sandbox.n_ran == 1


def test_a_sandbox_tool_gets_the_injected_arguments_that_it_asks_for() -> None:
    world = World()
    registry = ToolRegistry()

    @registry.register(effect="read")
    def lookup_order(order_id: str, runtime: ToolRuntime) -> str:
        """Looks an order up."""
        return f"{order_id} {runtime.tool_call_id} {len(runtime.state['messages'])}"

    @tool("lookup_order")
    def real(order_id: str, runtime: ToolRuntime) -> str:
        """Looks an order up."""
        world.ran.append(("lookup_order", {}))
        return "real"

    graph = agent([real], once(call("lookup_order", "c1", **A1)))
    (message,) = tool_messages(run(graph, Desk(Policy(registry=registry))))
    assert message.content == "A1 c1 2"
    assert world.n_ran == 0


def test_an_error_of_a_sandbox_tool_is_treated_like_the_tools_own() -> None:
    registry = ToolRegistry()

    @registry.register(effect="read")
    def lookup_order(order_id: str) -> str:
        """Looks an order up."""
        raise ValueError("no such order")

    world = World()
    node = ToolNode([world.lookup()], handle_tool_errors=True)
    graph = agent([], once(call("lookup_order", "c1", **A1)), tool_node=node)
    desk = Desk(Policy(registry=registry))
    (message,) = tool_messages(run(graph, desk))
    assert message.status == "error"
    assert desk.calls[0].result == "ValueError: no such order"
    assert world.n_ran == 0


def test_what_a_state_tool_calls_is_decided_like_any_other_call() -> None:
    world = World()
    lookup = world.lookup()

    @tool
    def digest(order_id: str) -> str:
        """Sums an order up."""
        return f"sum: {lookup.invoke({'order_id': order_id})}"

    graph = agent([digest, lookup], once(call("digest", "c1", **A1)))
    effects = Effects(said={"digest": "state"})
    desk = Desk(Policy(effects=effects, stubs={"lookup_order": "lost"}))
    assert tool_messages(run(graph, desk))[0].content == "sum: lost"
    assert served(desk) == [("digest", "state"), ("lookup_order", "stub")]
    blocked = Desk(Policy(effects=effects))
    with pytest.raises(CallBlocked):
        run(graph, blocked, name="t2")
    assert served(blocked) == [("digest", "state"), ("lookup_order", "blocked")]
    assert world.n_ran == 0


def test_a_state_tool_that_calls_itself_is_decided_anew_each_time() -> None:
    @tool
    def nest(depth: int) -> str:
        """Goes deeper."""
        return "end" if depth == 0 else f"({nest.invoke({'depth': depth - 1})})"

    graph = agent([nest], once(call("nest", "c1", depth=2)))
    desk = Desk(Policy(effects=Effects(said={"nest": "state"})))
    assert tool_messages(run(graph, desk))[0].content == "((end))"
    assert served(desk) == [("nest", "state")] * 3


def test_an_interrupt_inside_a_state_tool_pauses_and_resumes() -> None:
    @tool
    def confirm(order_id: str) -> str:
        """Asks a person."""
        return str(interrupt(f"refund {order_id}?"))

    graph = agent([confirm], once(call("confirm", "c1", **A1)))
    with sandboxed(graph):
        with running(Desk(Policy(effects=Effects(said={"confirm": "state"})))):
            paused = graph.invoke(ask(), thread(), durability="sync")
        with running(Desk(Policy(effects=Effects(said={"confirm": "state"})))):
            result = graph.invoke(Command(resume="yes"), thread(), durability="sync")
    assert paused["__interrupt__"][0].value == "refund A1?"
    assert tool_messages(result)[0].content == "yes"


def test_a_tool_that_returns_content_and_artifact_gives_both_from_a_stub_in_the_registry() -> None:
    def lookup_order(order_id: str) -> tuple[str, dict[str, str]]:
        """Looks an order up."""
        return "found", {"order": order_id}

    made = StructuredTool.from_function(lookup_order, response_format="content_and_artifact")
    registry = ToolRegistry()
    registry.register(made, effect="read")
    graph = agent([World().lookup()], once(call("lookup_order", "c1", **A1)))
    (message,) = tool_messages(run(graph, Desk(Policy(registry=registry))))
    assert (message.content, message.artifact) == ("found", {"order": "A1"})


def test_a_name_that_no_tool_has_gets_the_nodes_own_answer_unless_there_is_one() -> None:
    world = World()
    graph = agent([world.lookup()], once(call("loookup", "c1", **A1)))
    desk = Desk(Policy())
    (message,) = tool_messages(run(graph, desk))
    assert "not a valid tool" in message.text
    assert desk.calls == ()
    recorded = Desk(Policy(), Recording.of([answered("loookup", "try lookup_order", A1, status="error")]).cursor())
    (message,) = tool_messages(run(graph, recorded, name="t2"))
    assert (message.content, message.status) == ("try lookup_order", "error")
    assert served(recorded) == [("loookup", "recorded")]


def test_a_fork_answers_each_later_call_of_the_turn_with_the_same_arguments() -> None:
    world = World()

    def script(messages: list[Any]) -> AIMessage:
        said = [message.text for message in messages if isinstance(message, ToolMessage)]
        return AIMessage(",".join(said)) if len(said) > 1 else calling(call("lookup_order", f"c{len(said)}", **A1))

    graph = agent([world.lookup()], script)
    key = ("lookup_order", canonical_args(A1))
    desk = Desk(Policy(substituted={key: Substitute("lost")}))
    assert run(graph, desk)["messages"][-1].content == "lost,lost"
    assert served(desk) == [("lookup_order", "answered")] * 2
    assert world.n_ran == 0


def test_the_sandbox_within_a_sandbox_leaves_the_outer_one_whole() -> None:
    world = World()
    node = ToolNode([world.lookup()])
    before = dict(vars(node))
    graph = agent([], once(call("lookup_order", "c1", **A1)), tool_node=node)
    with sandboxed(graph, Desk(Policy(stubs={"lookup_order": "outer"}))) as box:
        run(graph, Desk(Policy(stubs={"lookup_order": "inner"})), name="t1")
        result = graph.invoke(ask(), thread("t2"), durability="sync")
        assert box.direct_tools == ()
    assert tool_messages(result)[0].content == "outer"
    assert dict(vars(node)) == before
    assert world.n_ran == 0


def test_the_shape_of_a_final_answer_is_no_tool_that_a_graph_can_call() -> None:
    class Verdict(BaseModel):
        """The answer."""

        text: str

    @tool
    def look_up(order_id: str) -> str:
        """Looks an order up."""
        return order_id

    model = ScriptedModel(script=lambda turn: AIMessage("", tool_calls=[turn.call("Verdict", {"text": "x"})]))
    agent = create_agent(model, tools=[look_up], response_format=ToolStrategy(Verdict))
    assert {found.tool.name for found in walk(agent).tools} == {"look_up"}
