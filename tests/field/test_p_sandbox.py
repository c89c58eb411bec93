"""Reports P: datasets made of threads, and replays whose tools run nothing real."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, messages_from_dict
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from agentctl.datasets import langsmith_upload
from agentctl.experiments.replay import replay
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recorder import record_thread
from agentctl.sandbox.registry import ToolRegistry
from agentctl.testing import CliResult, build_thread, run_cli
from tests.catalog import go
from tests.support.copies import stock_saver
from tests.support.damage import Rows, sqlite_rows
from tests.support.experiments import about_to_run, experiment_on
from tests.support.recorded import Asked, models_run, recording_at
from tests.support.tools import World, agent, call, calling

_RAN: list[str] = []


@tool
def stock(item: str) -> str:
    """Says how many there are."""
    _RAN.append(item)
    return "none"


@tool("stock")
def sandbox_stock(item: str) -> str:
    """Says how many there are."""
    return "seven"


def _agent(state: MessagesState) -> Any:
    if state["messages"][-1].type == "human":
        return {"messages": [AIMessage("", tool_calls=[{"name": "stock", "args": {"item": "lamp"}, "id": "c1"}])]}
    return {"messages": [AIMessage(f"in stock: {state['messages'][-1].content}")]}


def _shop() -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", _agent)
    graph.add_node("tools", ToolNode([stock]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()


def test_p7_the_plan_tells_what_really_answers_and_which_names_nobody_asks_for(tmp_path: Path) -> None:
    prod = tmp_path / "prod.sqlite"
    build_thread(_shop(), prod, "t", {"messages": [("human", "a lamp?")]})
    _RAN.clear()
    registry = ToolRegistry()
    registry.register(sandbox_stock, effect="read")
    policy = Policy(
        mode="sandbox",
        stubs={"stocks": "one"},
        registry=registry,
        effects=Effects(registries=(registry,)),
        live_reads=True,
        live=registry,
    )

    with experiment_on(prod, _shop(), tmp_path / "debug.sqlite", policy=policy) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "tools"))

    planned = {one.name: one.served_by for one in report.plan.tools}
    assert planned == {call.name: call.served_by for call in report.group.runs[0].tool_calls} == {"stock": "stub"}
    assert report.warnings == (
        "--stub stocks: no tool of the graph or the recording is called that; did you mean stock?",
    )
    assert _RAN == []


def _export(rows: Rows, thread: str, folder: Path, *words: str) -> CliResult:
    checked = ("--dataset", "d", "--check", "reply contains nothing of it", *words)
    return run_cli("export", thread, "--store", rows.url, *checked, cwd=folder, environ={})


def _examples(rows: Rows, thread: str, folder: Path) -> list[dict[str, Any]]:
    """Exports a thread to the neutral format and returns its lines."""
    done = _export(rows, thread, folder)
    assert done.code == 0, done.err
    return [json.loads(line) for line in (folder / "datasets" / "d" / "examples.jsonl").read_text("utf-8").splitlines()]


def test_p1_each_turn_begins_with_its_own_input_whatever_the_metadata_tells(rows: Rows, tmp_path: Path) -> None:
    rows.run("agent two turns", "turns")
    examples = _examples(rows, "turns", tmp_path)
    for id in rows.ids("turns"):
        rows.metadata("turns", id, lambda found: found.update(writes={"agent": {"messages": []}}))

    assert [one["inputs"]["input"] is not None for one in examples] == [True, True]
    assert all(one["metadata"]["steps"] for one in examples)
    assert _examples(rows, "turns", tmp_path) == examples


def test_p2_a_dataset_is_plain_json_lines_that_need_no_service(rows: Rows, tmp_path: Path) -> None:
    rows.run("agent two turns", "neutral")
    for one in _examples(rows, "neutral", tmp_path):
        assert {"id", "inputs", "outputs", "reference", "metadata", "split"} <= one.keys()
        assert {"source", "steps", "tool_calls"} <= one["metadata"].keys()


@pytest.mark.parametrize("case", ["agent approved", "agent corrected", "interrupt twice answered", "subgraph parallel"])
def test_p3_interrupts_forks_and_parallel_work_add_no_turn(rows: Rows, case: str, tmp_path: Path) -> None:
    rows.run(case, f"one turn, {case}")
    assert len(_examples(rows, f"one turn, {case}", tmp_path)) == 1


def test_p4_the_last_tool_call_is_there_where_the_graph_ends_at_its_tools(tmp_path: Path) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [calling(call("stock", "c1", item="lamp"))]})
    graph.add_node("tools", ToolNode([stock]))
    graph.add_edge(START, "agent").add_edge("agent", "tools")
    with sqlite_rows(tmp_path) as rows:
        build_thread(graph.compile(), Path(rows.url), "t", {"messages": [("human", "a lamp?")]})
        (one,) = _examples(rows, "t", tmp_path)

    assert [message["type"] for message in one["outputs"]["messages"]] == ["ai", "tool"]
    assert one["outputs"]["messages"][-1]["data"]["content"] == "none"


def test_p5_an_example_that_langsmith_would_refuse_for_its_size_is_named_before_anything_is_sent(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.run("agent two turns", "large")
    monkeypatch.setattr(langsmith_upload, "MAX_EXAMPLE_BYTES", 1000)
    done = _export(rows, "large", tmp_path, "--format", "langsmith")

    assert done.code == 2
    assert "bytes, more than LangSmith takes" in done.err
    assert "--format jsonl" in done.err


def test_p6_exported_messages_keep_every_field(tmp_path: Path) -> None:
    said = AIMessage(
        [{"type": "text", "text": "seven"}],
        id="ai-1",
        name="clerk",
        usage_metadata={"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
        response_metadata={"model_name": "m-1", "finish_reason": "stop"},
        additional_kwargs={"refusal": None},
    )
    asked = HumanMessage("how many?", id="h-1", name="ann")
    graph = StateGraph(MessagesState).add_node("agent", lambda state: {"messages": [said]}).add_edge(START, "agent")
    with sqlite_rows(tmp_path) as rows:
        build_thread(graph.compile(), Path(rows.url), "t", {"messages": [asked]})
        (one,) = _examples(rows, "t", tmp_path)

    assert messages_from_dict(one["inputs"]["messages"]) == [asked]
    assert messages_from_dict(one["outputs"]["messages"]) == [said]


def test_p7_a_call_that_was_not_recorded_stops_the_replay_and_nothing_is_paid(tmp_path: Path) -> None:
    world, amounts = World(), count(1)
    graph = agent([world.refund()], lambda messages: _pay_once(messages, next(amounts)))
    build_thread(graph, tmp_path / "prod.sqlite", "t", {"messages": [("human", "pay")]})
    assert world.n_ran == 1

    with experiment_on(tmp_path / "prod.sqlite", graph, tmp_path / "debug.sqlite") as opened:
        experiment = replace(opened, recording=record_thread(opened.source, "t"))
        recorded = replay(experiment, about_to_run(experiment.source, "t", "tools"))
        missed = replay(experiment, about_to_run(experiment.source, "t", "agent"))

    assert [one.served_by for one in recorded.group.runs[0].tool_calls] == ["recorded"]
    assert [one.served_by for one in missed.group.runs[0].tool_calls] == ["blocked"]
    assert missed.group.runs[0].status == "blocked"
    assert world.n_ran == 1


def test_p8_a_model_that_answers_otherwise_is_counted_and_not_hidden(tmp_path: Path) -> None:
    answers = count()
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [AIMessage(f"answer {next(answers) % 2}")]})
    graph.add_edge(START, "agent")
    compiled = graph.compile()
    build_thread(compiled, tmp_path / "prod.sqlite", "t", {"messages": [("human", "?")]})

    with experiment_on(tmp_path / "prod.sqlite", compiled, tmp_path / "debug.sqlite") as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "agent"), n=4)

    assert sorted(run.reply or "" for run in report.group.runs) == ["answer 0", "answer 0", "answer 1", "answer 1"]


def test_p8_a_recorded_model_answers_as_often_as_asked_and_costs_nothing(rows: Rows, tmp_path: Path) -> None:
    answers = count()
    model = Asked(script=lambda *_: AIMessage(f"answer {next(answers) % 2}"))
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    compiled = graph.add_edge(START, "agent").compile()
    with models_run(), stock_saver(rows.url) as saver:
        go(compiled.copy(update={"checkpointer": saver}), "free", {"messages": [("human", "?")]})

    with experiment_on(
        rows.url, compiled, tmp_path / "debug.sqlite", models=recording_at(rows.url, "free@root")
    ) as one:
        group = replay(one, about_to_run(one.source, "free", "agent"), n=4).group

    assert [(run.reply, run.usage.recorded, run.usage.output_tokens) for run in group.runs] == [("answer 0", 1, 0)] * 4
    assert next(answers) == 1


@pytest.mark.parametrize("caller", ["a node", "an asynchronous node", "a router", "a tool node"])
def test_p9_synchronous_asynchronous_and_routed_tools_are_all_kept_from_running(tmp_path: Path, caller: str) -> None:
    world = World()
    refund, lookup = world.refund(), world.async_lookup()
    paying = {"order_id": "A1", "amount": 1.0}

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(refund.invoke(paying))]}

    async def asynchronous(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(await lookup.ainvoke({"order_id": "A1"}))]}

    def router(state: MessagesState) -> str:
        return str(refund.invoke(paying))

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [calling(call("lookup_order", "c1", order_id="A1"))]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", {"a node": node, "an asynchronous node": asynchronous}.get(caller, think))
    graph.add_node("tools", ToolNode([lookup]))
    graph.add_edge(START, "agent")
    if caller == "a router":
        graph.add_conditional_edges("agent", router, ["tools"])
    else:
        graph.add_edge("agent", "tools")
    build_thread(_shop(), tmp_path / "prod.sqlite", "t", {"messages": [("human", "a lamp?")]})

    with experiment_on(tmp_path / "prod.sqlite", graph.compile(), tmp_path / "debug.sqlite") as experiment:
        run = replay(experiment, about_to_run(experiment.source, "t", "agent")).group.runs[0]
    assert (run.status, [one.served_by for one in run.tool_calls]) == ("blocked", ["blocked"])
    assert world.ran == []


def _pay_once(messages: list[Any], amount: int) -> AIMessage:
    if messages[-1].type == "tool":
        return AIMessage("paid")
    return calling(call("issue_refund", "c1", order_id="A1", amount=float(amount)))
