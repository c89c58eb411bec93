"""The sandbox registry: in parity with production, and nothing behind it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import Call, CallBlocked
from agentctl.sandbox.registry import RegisteredTool, ToolRegistry
from graphs.travel_booking.catalog import NAMES
from graphs.travel_booking.door import say
from graphs.travel_booking.graph import build_graph, graph
from graphs.travel_booking.model import make_model
from sandbox_tools.travel import FIRST_QUOTE, NoAnswer, registry
from tests.support.travel import BACK, OUT, TRIP, Agency, approve, asked, quoted, traveller

README = Path(__file__).parents[2] / "graphs" / "travel_booking" / "README.md"
READS = ("search_flights", "search_hotels", "check_hold")


def test_sandbox_and_production_have_the_same_tools_schemas_and_effects(agency: Agency) -> None:
    production, sandbox = agency.tools(), registry()
    assert sandbox.names == production.names == NAMES
    for real, stub in zip(production, sandbox, strict=True):
        assert (real.name, real.effect, real.schema) == (stub.name, stub.effect, stub.schema)
        assert real.tool.description == stub.tool.description
    assert {entry.name for entry in sandbox if entry.effect == "read"} == set(READS)
    assert all(sandbox.answers(entry.name) for entry in sandbox if entry.effect == "write")


def test_no_tool_takes_a_thread_a_key_or_a_card_number() -> None:
    arguments = {name for entry in registry() for name in entry.schema.get("properties", {})}  # type: ignore[attr-defined]
    assert not {name for name in arguments if "thread" in name or "key" in name or "card" in name or "passport" in name}


@pytest.mark.parametrize("name", ["search_flights", "search_hotels"])
def test_what_a_supplier_would_offer_is_not_invented(name: str) -> None:
    args: dict[str, Any] = {"city": "Oslo", "check_in": OUT, "check_out": BACK, "guests": 1}
    if name == "search_flights":
        route = {"airline": "aurora", "origin": "Lisbon", "destination": "Oslo"}
        args = {**route, "depart_on": OUT, "return_on": BACK, "travellers": 1}
    assert not registry().answers(name)
    with pytest.raises(NoAnswer):
        registry()[name].invoke(args)
    with pytest.raises(CallBlocked):
        Desk(Policy(registry=registry())).admit(Call(name, args, "c1"))


def test_a_trip_on_stubs_ends_as_in_production_and_calls_nobody(agency: Agency) -> None:
    """The two searches are answered as recorded; every other tool is the sandbox's."""
    real = quoted(agency, InMemorySaver())
    approve(real, traveller("t"))
    counters = agency.backoffice.counters()
    recorded = real.get_state(traveller("t")).values["messages"]
    answers = {
        m.tool_call_id: m.content
        for m in recorded
        if m.type == "tool" and m.name in ("search_flights", "search_hotels")
    }
    by_args = {
        json.dumps([call["name"], call["args"]], sort_keys=True): answers[call["id"]]
        for message in recorded
        for call in getattr(message, "tool_calls", ())
        if call["id"] in answers
    }
    sandboxed = build_graph(_answering(by_args), model=make_model(env={}))
    sandboxed.checkpointer = InMemorySaver()
    say(sandboxed, traveller("t"), TRIP)
    assert asked(sandboxed, traveller("t"))["quote_version"] == FIRST_QUOTE + 1
    state = approve(sandboxed, traveller("t"))
    assert (state["bookings"]["status"], state["payment"]["status"]) == ("published", "settled")
    assert "_sandbox_" in state["bookings"]["flight"]["booking_id"]
    assert agency.backoffice.counters() == counters


def test_stubs_answer_with_the_fields_of_production(agency: Agency) -> None:
    real = quoted(agency, InMemorySaver())
    state = approve(real, traveller("t"))
    answered = {message.name: json.loads(message.content) for message in state["messages"] if message.type == "tool"}
    calls = {call["name"]: call for message in state["messages"] for call in getattr(message, "tool_calls", ())}
    for name in set(answered) - {"search_flights", "search_hotels"}:
        stub = registry()[name].invoke({**calls[name], "type": "tool_call"})
        assert set(json.loads(stub.content)) == set(answered[name]), name


def test_a_server_outside_production_serves_the_sandbox() -> None:
    served = asyncio.run(graph({"configurable": {}}))
    assert set(served.nodes) >= {"intake", "approval", "capture", "ticketing", "publish"}


def test_the_readme_draws_the_graph_as_it_is() -> None:
    drawn = build_graph(registry(), model=make_model(env={})).get_graph().draw_mermaid(with_styles=False)
    assert drawn.strip() in README.read_text(encoding="utf-8")


def _answering(by_args: dict[str, str]) -> ToolRegistry:
    from langchain_core.tools import StructuredTool

    def answering(tool: BaseTool) -> BaseTool:
        def answer(**args: Any) -> str:
            return by_args[json.dumps([tool.name, args], sort_keys=True)]

        schema: Any = tool.args_schema
        return StructuredTool.from_function(answer, name=tool.name, description=tool.description, args_schema=schema)

    return ToolRegistry(
        entry if entry.answers else RegisteredTool(answering(entry.tool), entry.effect) for entry in registry()
    )
