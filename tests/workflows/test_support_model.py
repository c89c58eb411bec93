"""The workflow's model: the script against the policy on generated orders, its variance, and a real provider's path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentctl.testing import ScriptedModel, Turn
from fixtures.incidents.support.seeding import last_reply
from graphs.common.versions import UnknownPrompt
from graphs.support_refunds.catalog import REFUNDS_TOOLS
from graphs.support_refunds.model import make_model
from graphs.support_refunds.policy import load_policies
from graphs.support_refunds.prompts import refunds_prompt
from graphs.support_refunds.script import SLIP_RATE, support_script
from tests.support.backoffice import TODAY, SupportWorld, customer, say
from tests.support.openai_loopback import openai_loopback

TEXTS = {
    "lost": "{id} never arrived, refund me.",
    "damaged": "{id} is broken, refund me.",
    "return": "I want to return {id}.",
    "cancelled": "I cancelled {id}, refund me.",
}
POLICIES = load_policies()

money = st.decimals("0.01", "5000.00", places=2)


@st.composite
def orders(draw: st.DrawFn) -> dict[str, Any]:
    """Orders as the order service may answer them, consistent in themselves."""
    goods, shipping = draw(money), draw(st.sampled_from([Decimal("0.00"), Decimal("4.90")]))
    total = goods + shipping
    refunded = draw(st.sampled_from([Decimal("0.00"), total, (total / 2).quantize(Decimal("0.01"))]))
    status = draw(st.sampled_from(["processing", "in_transit", "delivered", "lost", "cancelled"]))
    n_days = draw(st.integers(0, 90))
    return {
        "order_id": f"{draw(st.sampled_from('ABXZ'))}{draw(st.integers(100, 99_999_999))}",
        "status": status,
        "currency": draw(st.sampled_from(["EUR", "USD", "CHF"])),
        "total": f"{total:.2f}",
        "shipping": f"{shipping:.2f}",
        "refunded": f"{refunded:.2f}",
        "lines": [{"sku": "s", "quantity": 1, "unit_price": f"{goods:.2f}"}],
        "eligible": draw(st.booleans()) and refunded < total,
        "ordered_on": (TODAY - timedelta(days=n_days + 3)).isoformat(),
        "delivered_on": (TODAY - timedelta(days=n_days)).isoformat() if status == "delivered" else None,
    }


def _answer(order: Mapping[str, Any], topic: str, version: str, prompt: str = "v3", **turn: Any) -> AIMessage:
    """The model's message after both look-ups of a refund."""
    system = refunds_prompt(prompt, ticket_id="T-1", today=TODAY.isoformat(), preferences={})
    opening = (SystemMessage(system), HumanMessage(f"Order {TEXTS[topic].format(id=order['order_id'])}"))
    asked = support_script(Turn(opening, REFUNDS_TOOLS))
    results = {"lookup_order": order, "get_refund_policy": POLICIES[version].answer(topic)}
    told = [
        ToolMessage(json.dumps(results[call["name"]]), tool_call_id=str(call["id"]), name=call["name"])
        for call in asked.tool_calls
    ]
    return support_script(Turn((*opening, asked, *told), REFUNDS_TOOLS, **turn))


def _owed(order: Mapping[str, Any], topic: str, version: str, *, window: bool = True) -> Decimal | None:
    """The policy in other words: a table from status and reason to what is paid back."""
    rule = POLICIES[version].topics[topic]
    left = Decimal(order["total"]) - Decimal(order["refunded"])
    owed = left if rule["covers"] == "full" else left - Decimal(order["shipping"])
    is_late = False
    if window and rule["window_days"] is not None and order["delivered_on"]:
        last_day = date.fromisoformat(order["delivered_on"]) + timedelta(days=int(str(rule["window_days"])))
        is_late = last_day < TODAY
    due: dict[tuple[str, str], Decimal | None] = {
        ("delivered", "damaged"): None if is_late else owed,
        ("delivered", "return"): None if is_late or not order["eligible"] else owed,
        ("cancelled", "cancelled"): left,
    }
    amount = left if order["status"] == "lost" else due.get((order["status"], topic))
    return amount if amount is not None and amount > 0 and left > 0 else None


@given(orders(), st.sampled_from(sorted(TEXTS)), st.sampled_from(sorted(POLICIES)))
@settings(max_examples=300, deadline=None)
def test_the_scripted_model_decides_every_order_by_the_policy(order: dict[str, Any], topic: str, version: str) -> None:
    answer, owed = _answer(order, topic, version), _owed(order, topic, version)
    if owed is None:
        assert answer.tool_calls == []
        assert str(answer.content).startswith(f"No refund is due on order {order['order_id']}:")
        return
    (call,) = answer.tool_calls
    assert call["name"] == "issue_refund"
    assert call["args"] == {
        "order_id": order["order_id"],
        "amount": f"{owed:.2f}",
        "currency": order["currency"],
        "reason": topic,
    }


@given(orders(), st.sampled_from(["damaged", "return"]))
@settings(max_examples=150, deadline=None)
def test_a_rule_that_the_prompt_lacks_is_not_applied(order: dict[str, Any], topic: str) -> None:
    answer, owed = _answer(order, topic, "2026-10", prompt="v2"), _owed(order, topic, "2026-10", window=False)
    assert [call["args"]["amount"] for call in answer.tool_calls] == ([] if owed is None else [f"{owed:.2f}"])


@given(orders(), st.sampled_from(sorted(TEXTS)))
@settings(max_examples=50, deadline=None)
def test_the_same_messages_give_the_same_answer(order: dict[str, Any], topic: str) -> None:
    first, second = (_answer(order, topic, "2026-10") for _ in range(2))
    assert (first.content, first.tool_calls) == (second.content, second.tool_calls)


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 2))
def test_a_turn_slips_exactly_where_draw_and_temperature_say_so(draw: float, temperature: float) -> None:
    order = {**_LOST, "total": "50.00"}
    answer = _answer(order, "lost", "2026-10", draw=draw, temperature=temperature)
    assert (answer.tool_calls == []) == (draw < SLIP_RATE * temperature)


_LOST = {
    "order_id": "A100",
    "status": "lost",
    "currency": "EUR",
    "total": "50.00",
    "shipping": "0.00",
    "refunded": "0.00",
    "eligible": True,
    "delivered_on": None,
}


def test_without_a_seed_four_answers_in_ten_slip_at_temperature_1() -> None:
    draws = iter([number / 1000 for number in range(1000)])
    model = ScriptedModel(script=_slips, random_source=lambda: next(draws))
    said = [model.invoke("x", temperature=1.0).content for _ in range(1000)]
    assert said.count("slipped") == 400


def _slips(turn: Turn) -> AIMessage:
    return AIMessage("slipped" if turn.slips(SLIP_RATE) else "fine")


def test_at_temperature_0_nothing_slips_and_a_seed_fixes_the_draw() -> None:
    model = ScriptedModel(script=_slips)
    assert {model.invoke("x").content for _ in range(50)} == {"fine"}
    draws = [
        ScriptedModel(script=lambda turn: AIMessage(str(turn.draw)), seed=seed).invoke("x").content
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_a_script_may_not_call_a_tool_that_is_not_bound() -> None:
    model = ScriptedModel(script=lambda turn: AIMessage("", tool_calls=[turn.call("issue_refund", {})]))
    with pytest.raises(ValueError, match="not bound: issue_refund"):
        model.invoke("x")


def test_the_scripted_model_reports_its_usage() -> None:
    usage = ScriptedModel(script=lambda _: AIMessage("12345678")).invoke("1234").usage_metadata
    assert usage is not None
    assert (usage["input_tokens"], usage["output_tokens"]) == (1, 2)


async def _ask(model: ScriptedModel) -> str:
    return str((await model.ainvoke("x")).content)


def test_the_scripted_model_answers_async_too() -> None:
    import asyncio

    assert asyncio.run(_ask(ScriptedModel(script=_slips))) == "fine"


def test_an_unknown_prompt_version_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownPrompt, match=r"no prompt refunds-v9; there are .*refunds-v2, refunds-v3"):
        refunds_prompt("v9", ticket_id="T", today="2026-11-30", preferences={})


def test_without_configuration_the_model_is_the_scripted_one() -> None:
    assert isinstance(make_model(env={}), ScriptedModel)
    assert isinstance(make_model("scripted", env={"AGENTCTL_MODEL": "openai:gpt-test"}), ScriptedModel)


def test_a_providers_model_runs_the_whole_workflow_over_its_protocol(
    world: SupportWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put_order("A100", "lost")
    with openai_loopback(support_script) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        model = make_model(env={"AGENTCTL_MODEL": "openai:gpt-test"})
        config = customer("t", temperature=0.25)
        state = say(world.graph(InMemorySaver(), model=model), config, "Order A100 is lost, refund me.")
    assert last_reply(state["messages"]) == "Your refund of 120.00 EUR for order A100 is on its way."
    assert len(world.backoffice.effects("refund")) == 1
    route, agent = provider.requests[0], provider.requests[1]
    assert route["tool_choice"] == {"type": "function", "function": {"name": "Route"}}
    assert [tool["function"]["name"] for tool in agent["tools"]] == list(REFUNDS_TOOLS)
    assert (agent["model"], agent["temperature"]) == ("gpt-test", 0.25)
    answered = [message for message in provider.requests[2]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in answered] == [
        call["id"] for call in provider.requests[2]["messages"][-3]["tool_calls"]
    ]
    usages = [message.usage_metadata for message in state["messages"] if isinstance(message, AIMessage)]
    assert all(usage is not None and usage["input_tokens"] == 11 and usage["output_tokens"] == 7 for usage in usages)
