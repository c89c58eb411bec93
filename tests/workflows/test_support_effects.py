"""Effects exactly once: dropped answers, outages, forgotten keys, open breakers, and who may cause them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.backoffice.support import IDENTITY
from fixtures.incidents.support.seeding import last_reply
from graphs.common.effects import NotProduction, application_database, http_client
from graphs.common.outbound import KeyReused, OutboundLog
from graphs.common.services import CircuitBreaker, Retries, ServiceUnavailable
from tests.support.backoffice import SupportWorld, answers, customer, say

LOST = "Order A100 is lost, refund me."


def _requests(world: SupportWorld) -> list[dict[str, Any]]:
    return OutboundLog(application_database(world.database_url)).rows("t")


def test_a_refund_whose_answer_was_dropped_is_paid_once(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    world.backoffice.add_fault("drop_answer", "POST /refunds", times=1)
    state = say(world.graph(InMemorySaver()), customer("t"), LOST)
    assert last_reply(state["messages"]) == "Your refund of 120.00 EUR for order A100 is on its way."
    assert len(world.backoffice.effects("refund")) == 1
    assert world.backoffice.counters()["by_route"]["POST /refunds"] == 1, "it was looked up, not repeated"


def test_a_refund_that_answers_after_the_timeout_is_paid_once(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    world.backoffice.add_fault("delay", "POST /refunds", seconds=0.6, times=1)
    with http_client(world.backoffice.url, identity=IDENTITY, timeout_s=0.15) as impatient:
        graph = world.graph(InMemorySaver(), tools=world.tools(http=impatient))
        state = say(graph, customer("t"), LOST)
    assert "is on its way" in last_reply(state["messages"])
    assert len(world.backoffice.effects("refund")) == 1


def test_transient_errors_are_tried_again_under_the_same_key(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    world.backoffice.add_fault("error", "POST /refunds", status=502, times=2)
    say(world.graph(InMemorySaver()), customer("t"), LOST)
    refund = world.backoffice.effects("refund")[0]
    counters = world.backoffice.counters()
    assert counters["by_key"][refund["reference"]] == 3
    assert counters["effects_by_key"][refund["reference"]] == 1


def test_when_retries_end_the_run_stops_and_resumes_where_it_was(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    world.backoffice.add_fault("error", "POST /refunds")
    graph, config = world.graph(InMemorySaver()), customer("t")
    with pytest.raises(ServiceUnavailable, match=r"refunds: HTTP 503 \(3 attempts\)"):
        say(graph, config, LOST)
    assert graph.get_state(config).next == ("tools",)
    assert [row["status"] for row in _requests(world)] == ["started"]
    world.backoffice.clear_faults()
    state = graph.invoke(None, config, durability="sync")
    assert "is on its way" in last_reply(state["messages"])
    assert len(world.backoffice.effects("refund")) == 1


def test_a_forgotten_idempotency_key_does_not_pay_twice(world: SupportWorld) -> None:
    world.put_order("A100", "lost", "120.00")
    world.backoffice.add_fault("drop_answer", "POST /refunds", times=1)
    world.backoffice.add_fault("error", "GET /refunds")
    graph, config = world.graph(InMemorySaver()), customer("t")
    with pytest.raises(ServiceUnavailable):
        say(graph, config, LOST)
    assert len(world.backoffice.effects("refund")) == 1
    world.backoffice.clear_faults()
    world.backoffice.expire_keys()
    state = graph.invoke(None, config, durability="sync")
    assert "is on its way" in last_reply(state["messages"])
    assert len(world.backoffice.effects("refund")) == 1
    assert world.backoffice.counters()["by_route"]["POST /refunds"] == 1, "it was looked up before it was repeated"


def test_the_back_office_really_forgets_a_key(world: SupportWorld) -> None:
    """So the protection above is the workflow's, not the receiver's."""
    email, headers = {"order_id": "A100", "subject": "s", "body": "b"}, {"Idempotency-Key": "k"}
    statuses = [world.http.post("/emails", json=email, headers=headers).status_code for _ in range(2)]
    world.backoffice.expire_keys()
    statuses.append(world.http.post("/emails", json=email, headers=headers).status_code)
    assert statuses == [201, 200, 201]
    assert len(world.backoffice.effects("email")) == 2


def test_a_refusal_reaches_the_model_at_once_as_an_error(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    world.backoffice.add_fault("error", "POST /refunds", status=422)
    state = say(world.graph(InMemorySaver()), customer("t"), LOST)
    refused = answers(state["messages"], "issue_refund")[0]
    assert (refused.status, refused.content) == ("error", "refunds refused: the service is not available")
    assert world.backoffice.counters()["by_route"]["POST /refunds"] == 1
    assert [row["status"] for row in _requests(world) if row["operation"] == "issue_refund"] == ["refused"]


def test_a_breaker_stops_calls_to_one_service_and_lets_the_others_work(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    seconds = [0.0]
    tools = world.tools(breaker=lambda: CircuitBreaker(threshold=2, cooldown_s=30.0, clock=lambda: seconds[0]))
    graph, config = world.graph(InMemorySaver(), tools=tools), customer("t")
    world.backoffice.add_fault("error", "POST /refunds")
    with pytest.raises(ServiceUnavailable, match="circuit breaker is open"):
        say(graph, config, LOST)
    assert world.backoffice.counters()["by_route"]["POST /refunds"] == 2
    with pytest.raises(ServiceUnavailable, match="circuit breaker is open"):
        graph.invoke(None, config, durability="sync")
    assert world.backoffice.counters()["by_route"]["POST /refunds"] == 2, "nothing was called while it was open"
    assert "lost" in last_reply(say(graph, customer("other"), "Where is order A100?")["messages"])
    world.backoffice.clear_faults()
    seconds[0] = 31.0
    state = graph.invoke(None, config, durability="sync")
    assert "is on its way" in last_reply(state["messages"])
    assert len(world.backoffice.effects("refund")) == 1


def test_the_row_of_a_request_is_written_before_the_call(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    world.backoffice.add_fault("error", "POST /refunds")
    with pytest.raises(ServiceUnavailable):
        say(world.graph(InMemorySaver()), customer("t"), LOST)
    (row,) = _requests(world)
    assert row["request_key"].startswith("t:issue_refund:call_")
    assert (row["operation"], row["status"], row["response"]) == ("issue_refund", "started", None)


def test_a_key_cannot_stand_for_two_requests(tmp_path: Path) -> None:
    log = OutboundLog(application_database(str(tmp_path / "a.sqlite")))
    log.begin("k", thread="t", operation="issue_refund", request={"amount": "1.00"})
    with pytest.raises(KeyReused):
        log.begin("k", thread="t", operation="issue_refund", request={"amount": "2.00"})


def test_retries_wait_longer_each_time_and_are_bounded() -> None:
    waits: list[float] = []
    retries = Retries(max_attempts=4, backoff_s=0.1, sleep=waits.append)
    for attempt in range(retries.max_attempts):
        retries.pause(attempt)
    assert waits == [0.1, 0.2, 0.4]


@pytest.mark.parametrize("env", [{}, {"AGENTCTL_ENV": "staging"}])
def test_tools_with_an_effect_refuse_outside_production(world: SupportWorld, env: dict[str, str]) -> None:
    world.put_order("A100", "lost")
    with pytest.raises(NotProduction, match="issue_refund refuses"):
        say(world.graph(InMemorySaver(), tools=world.tools(env=env)), customer("t"), LOST)
    counters = world.backoffice.counters()
    assert counters["n_effects"] == 0
    assert set(counters["by_route"]) == {"GET /orders", "GET /policies"}
    assert not Path(world.database_url).exists(), "nothing was written either"


def test_memory_is_not_written_outside_production(world: SupportWorld) -> None:
    with pytest.raises(NotProduction, match="remember_preference"):
        say(world.graph(InMemorySaver(), tools=world.tools(env={})), customer("t"), "I always prefer store credit.")


def test_an_effect_from_another_identity_is_refused_and_raises_an_alert(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    with http_client(world.backoffice.url, identity="support-agent@debug") as debug:
        say(world.graph(InMemorySaver(), tools=world.tools(http=debug)), customer("t"), LOST)
    assert world.backoffice.counters()["n_effects"] == 0
    (alert,) = world.backoffice.alerts()
    assert (alert["identity"], alert["route"]) == ("support-agent@debug", "POST /refunds")


def test_calls_are_counted_by_key_and_by_identity(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    say(world.graph(InMemorySaver()), customer("t"), LOST)
    counters = world.backoffice.counters()
    assert counters["by_identity"] == {IDENTITY: counters["n_calls"]}
    assert all(key.startswith("t:") and n == 1 for key, n in counters["by_key"].items())
    assert world.backoffice.alerts() == []
