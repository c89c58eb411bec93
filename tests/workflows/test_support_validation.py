"""The boundary where data enters the agent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.backoffice.support import put_order
from fixtures.incidents.support.files import order_record
from fixtures.incidents.support.seeding import last_reply
from graphs.support_refunds.validation import InvalidResult, check_result
from tests.support.backoffice import TODAY, SupportWorld, answers, converse, customer, say

GOOD = order_record(
    {
        "order_id": "A100",
        "status": "delivered",
        "total": "120.00",
        "shipping": "5.00",
        "ordered_days_ago": 20,
        "delivered_days_ago": 4,
    },
    TODAY,
)


def _check(**changes: Any) -> None:
    check_result("lookup_order", {"order_id": "A100"}, json.dumps({**GOOD, **changes}))


def test_a_sound_order_passes() -> None:
    _check()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"status": "teleported"}, 'status is "teleported"'),
        ({"total": "12000"}, 'total is "12000"'),
        ({"total": 120.0}, "total is 120.0"),
        ({"total": "121.00"}, "total 121.00 is not the sum of its lines and shipping, 120.00"),
        ({"refunded": "120.01"}, "refunded 120.01 is above the order's total 120.00"),
        ({"currency": "euro"}, 'currency is "euro"'),
        ({"eligible": "perhaps"}, 'eligible is "perhaps"'),
        ({"refunded": "120.00"}, "eligible although all of it was refunded"),
        ({"delivered_on": None}, "status is delivered without delivered_on"),
        ({"lines": []}, "lines is []"),
        ({"order_id": "Z999"}, "order_id is Z999, but A100 was asked for"),
    ],
)
def test_a_bad_order_is_named_field_by_field(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidResult) as caught:
        _check(**changes)
    assert named in str(caught.value)


def test_a_result_that_is_no_json_is_invalid() -> None:
    with pytest.raises(InvalidResult):
        check_result("lookup_order", {"order_id": "A100"}, "<html>502</html>")


def test_a_refund_of_another_amount_than_was_asked_for_is_invalid() -> None:
    answer = {"refund_id": "r", "order_id": "A100", "amount": "9.00", "currency": "EUR", "status": "accepted"}
    args = {"order_id": "A100", "amount": "90.00", "currency": "EUR"}
    with pytest.raises(InvalidResult, match=r"amount is 9.00, but 90.00 was asked for"):
        check_result("issue_refund", args, json.dumps(answer))


def test_a_policy_window_of_no_days_is_invalid() -> None:
    answer = {"policy_version": "2026-10", "topic": "return", "covers": "goods", "window_days": 0}
    with pytest.raises(InvalidResult, match="window_days is 0"):
        check_result("get_refund_policy", {"topic": "return"}, json.dumps(answer))


def test_tools_without_a_schema_are_not_checked() -> None:
    check_result("send_email", {}, "anything")


def test_the_model_hears_of_a_bad_result_tries_again_and_goes_on(world: SupportWorld) -> None:
    record = world.put_order("A100", "lost")
    put_order(world.backoffice, record, replica={**record, "total": "12000"})
    world.backoffice.add_fault("stale", "GET /orders", times=1)
    state = say(world.graph(InMemorySaver()), customer("t"), "Order A100 is lost, refund me.")
    first, second = answers(state["messages"], "lookup_order")
    assert (first.status, second.status) == ("error", "success")
    assert 'lookup_order gave a result that cannot be right: total is "12000"' in first.content
    assert last_reply(state["messages"]) == "Your refund of 120.00 EUR for order A100 is on its way."


def test_a_result_that_stays_bad_is_escalated_to_a_person(world: SupportWorld) -> None:
    record = world.put_order("A100", "lost")
    put_order(world.backoffice, record, replica={**record, "total": "12000"})
    world.backoffice.add_fault("stale", "GET /orders")
    state = say(world.graph(InMemorySaver()), customer("t"), "Order A100 is lost, refund me.")
    assert "passed your request to a colleague" in last_reply(state["messages"])
    assert [ticket["status"] for ticket in world.backoffice.effects("ticket")] == ["escalated"]
    assert world.backoffice.effects("refund") == []


def test_without_validation_the_bad_result_is_believed(world: SupportWorld) -> None:
    record = world.put_order("A100", "delivered", delivered_days_ago=2)
    put_order(world.backoffice, record, replica={**record, "total": "12000"})
    world.backoffice.add_fault("stale", "GET /orders")
    config = customer("t", validate_results=False)
    reply = converse(world.graph(InMemorySaver()), config, "Order A100 arrived broken, refund me.")
    assert reply == "Your refund of 12000.00 EUR for order A100 is on its way."


@pytest.mark.parametrize("text", ["false", "False", "0", "no"])
def test_validation_can_be_switched_off_by_text_too(world: SupportWorld, text: str) -> None:
    record = world.put_order("A100", "in_transit")
    put_order(world.backoffice, record, replica={**record, "total": "12000"})
    world.backoffice.add_fault("stale", "GET /orders")
    state = say(world.graph(InMemorySaver()), customer("t", validate_results=text), "Where is order A100?")
    assert last_reply(state["messages"]) == "Order A100 is in transit."


def test_an_unknown_order_reaches_the_model_as_an_error(world: SupportWorld) -> None:
    state = say(world.graph(InMemorySaver()), customer("t"), "Where is order A100?")
    assert answers(state["messages"], "lookup_order")[0].content == "orders refused: there is no such order"
    assert "passed your request to a colleague" in last_reply(state["messages"])
