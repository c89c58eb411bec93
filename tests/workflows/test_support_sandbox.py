"""The sandbox registry: in parity with production, and nothing behind it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import Call, CallBlocked
from fixtures.incidents.support.seeding import last_reply
from graphs.support_refunds.catalog import NAMES
from graphs.support_refunds.graph import build_graph, graph
from graphs.support_refunds.model import make_model
from graphs.support_refunds.policy import load_policies
from graphs.support_refunds.tools import registry_from_environment
from graphs.support_refunds.validation import check_result
from sandbox_tools.answers import NoAnswer
from sandbox_tools.support import registry
from tests.support.backoffice import SupportWorld, answers, customer, say

ARGUMENTS: dict[str, dict[str, Any]] = {
    "issue_refund": {"order_id": "A100", "amount": "9.00", "currency": "EUR", "reason": "lost"},
    "send_email": {"order_id": "A100", "subject": "s", "body": "b"},
    "update_ticket": {"ticket_id": "T-1", "status": "resolved", "note": "n"},
    "remember_preference": {"name": "language", "value": "de"},
}


def test_sandbox_and_production_have_the_same_tools_schemas_and_effects(world: SupportWorld) -> None:
    production, sandbox = world.tools(), registry()
    assert sandbox.names == production.names == NAMES
    for real, stub in zip(production, sandbox, strict=True):
        assert (real.name, real.effect, real.schema) == (stub.name, stub.effect, stub.schema)
        assert real.tool.description == stub.tool.description


def test_every_tool_with_an_effect_has_a_stub() -> None:
    sandbox = registry()
    assert {entry.name for entry in sandbox if entry.effect == "write"} == set(ARGUMENTS)
    assert all(sandbox.answers(name) for name in ARGUMENTS)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_a_stub_answers_as_production_would_and_the_same_each_time(name: str) -> None:
    first, second = (registry()[name].invoke(ARGUMENTS[name]) for _ in range(2))
    assert first == second
    check_result(name, ARGUMENTS[name], first)
    assert json.loads(first)


def test_stubs_have_the_fields_of_production(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    state = say(world.graph(InMemorySaver()), customer("t"), "Order A100 is lost, refund me.")
    real = json.loads(answers(state["messages"], "issue_refund")[0].content)
    stub = json.loads(registry()["issue_refund"].invoke(ARGUMENTS["issue_refund"]))
    assert set(real) - set(stub) == {"reason", "reference"}


def test_an_order_that_nobody_recorded_is_not_invented() -> None:
    sandbox = registry()
    assert not sandbox.answers("lookup_order")
    with pytest.raises(NoAnswer, match="A100"):
        sandbox["lookup_order"].invoke({"order_id": "A100"})


def test_a_call_for_an_order_that_nobody_recorded_is_blocked() -> None:
    desk = Desk(Policy(registry=registry()))
    with pytest.raises(CallBlocked):
        desk.admit(Call("lookup_order", {"order_id": "A100"}, "c1"))
    assert desk.admit(Call("get_refund_policy", {"topic": "lost"}, "c2")).served_by == "stub"


def test_the_sandbox_reads_the_policy_that_the_thread_is_judged_by(world: SupportWorld) -> None:
    world.put_order("A100", "delivered", delivered_days_ago=3)
    tools = registry()
    real = world.tools()
    sandboxed = build_graph(
        type(tools)([entry if entry.name != "lookup_order" else next(iter(real)) for entry in tools]),
        model=make_model(env={}),
    )
    sandboxed.checkpointer = InMemorySaver()
    config = customer("t", policy_version="2026-04")
    state = say(sandboxed, config, "Order A100 arrived broken, refund me.")
    read = json.loads(answers(state["messages"], "get_refund_policy")[0].content)
    assert read == load_policies()["2026-04"].answer("damaged")
    assert sandboxed.get_state(config).next == ("approve_refund",)


def test_the_sandbox_never_reaches_the_back_office(world: SupportWorld) -> None:
    sandboxed = build_graph(registry(), model=make_model(env={}))
    sandboxed.checkpointer = InMemorySaver()
    state = say(sandboxed, customer("t"), "From now on I prefer store credit.")
    assert last_reply(state["messages"]) == "Thank you, I have noted that."
    assert world.backoffice.counters()["n_calls"] == 0


def test_outside_production_the_environment_gives_a_registry_that_can_only_read(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    tools = registry_from_environment({"SUPPORT_BACKOFFICE_URL": world.backoffice.url})
    assert json.loads(tools["lookup_order"].invoke({"order_id": "A100"}))["status"] == "lost"
    assert world.backoffice.counters()["by_identity"] == {"support-agent@debug": 1}


def test_in_production_the_environment_must_name_identity_and_database(world: SupportWorld) -> None:
    with pytest.raises(KeyError, match="SUPPORT_SERVICE_IDENTITY"):
        registry_from_environment({"SUPPORT_BACKOFFICE_URL": world.backoffice.url, "AGENTCTL_ENV": "production"})


def test_a_server_outside_production_serves_the_sandbox() -> None:
    assert set(asyncio.run(graph({"configurable": {}})).nodes) >= {
        "triage",
        "orders_agent",
        "refunds_agent",
        "approve_refund",
        "tools",
    }
