"""Approving refunds: what is shown, who may answer, malformed answers, and two answers at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from fixtures.incidents.support.seeding import last_reply
from graphs.common.answers import AlreadyAnswered, AnswerClaims, NothingAsked, answer, recover
from graphs.common.effects import application_database
from graphs.common.owners import NotTheOwner, caller_of
from tests.support.backoffice import SupportWorld, answers, called, converse, customer, resume, say, staff
from tests.support.stored import is_postgres
from tests.support.stores import saver_at

BROKEN = "Order A100 arrived broken. I want a refund."


def _asked(graph: Any, config: Any) -> dict[str, Any]:
    (question,) = graph.get_state(config).interrupts
    return dict(question.value)


@pytest.fixture
def waiting(world: SupportWorld) -> tuple[SupportWorld, Any]:
    """A thread `t` that waits for the approval of a refund of 120.00."""
    world.put_order("A100", "delivered", delivered_days_ago=4)
    graph = world.graph(InMemorySaver())
    say(graph, customer("t"), BROKEN)
    return world, graph


def test_the_approver_is_shown_order_amount_and_reason(waiting: tuple[SupportWorld, Any]) -> None:
    _, graph = waiting
    question = _asked(graph, customer("t"))
    assert {name: question[name] for name in ("order_id", "amount", "currency", "reason", "problem")} == {
        "order_id": "A100",
        "amount": "120.00",
        "currency": "EUR",
        "reason": "damaged",
        "problem": "",
    }
    assert question["order"]["total"] == "120.00"


def test_nothing_is_paid_while_nobody_has_answered(waiting: tuple[SupportWorld, Any]) -> None:
    world, graph = waiting
    assert graph.get_state(customer("t")).next == ("approve_refund",)
    assert world.backoffice.effects("refund") == []


def test_an_approval_pays(waiting: tuple[SupportWorld, Any]) -> None:
    world, graph = waiting
    state = resume(graph, staff("t"), {"decision": "approve"})
    assert last_reply(state["messages"]) == "Your refund of 120.00 EUR for order A100 is on its way."
    (approval,) = state["approvals"].values()
    assert approval == {"decision": "approve", "by": "lead-3", "reason": ""}
    assert len(world.backoffice.effects("refund")) == 1


def test_an_edit_pays_the_other_amount_and_the_call_says_so(waiting: tuple[SupportWorld, Any]) -> None:
    world, graph = waiting
    state = resume(graph, staff("t"), {"decision": "edit", "amount": "80.00", "reason": "half of it is fine"})
    assert world.backoffice.effects("refund")[0]["amount"] == "80.00"
    assert [call["args"]["amount"] for call in called(state["messages"], "issue_refund")] == ["80.00"]
    assert "refund of 80.00 EUR" in last_reply(state["messages"])


def test_a_rejection_pays_nothing_and_the_customer_hears_the_reason(waiting: tuple[SupportWorld, Any]) -> None:
    world, graph = waiting
    state = resume(graph, staff("t"), {"decision": "reject", "reason": "the photo shows no damage"})
    assert answers(state["messages"], "issue_refund")[0].status == "error"
    assert "the photo shows no damage" in last_reply(state["messages"])
    assert world.backoffice.effects("refund") == []


@pytest.mark.parametrize(
    ("malformed", "problem"),
    [
        ("yes", "the answer: "),
        ({"decision": "maybe"}, "the answer: "),
        ({"decision": "reject"}, "reject.reason: Field required"),
        ({"decision": "edit", "amount": "80"}, "edit.amount: "),
        ({"decision": "edit", "amount": "500.00"}, "amount 500.00 is above what is left of the order, 120.00"),
        ({"decision": "edit", "amount": "0.00"}, "amount 0.00 is not above zero"),
        ({"decision": "approve", "actor": "lead-9"}, "approve.actor: Extra inputs are not permitted"),
    ],
)
def test_a_malformed_answer_asks_again_with_the_reason(
    waiting: tuple[SupportWorld, Any], malformed: object, problem: str
) -> None:
    world, graph = waiting
    resume(graph, staff("t"), malformed)
    assert _asked(graph, staff("t"))["problem"].startswith(problem)
    assert world.backoffice.effects("refund") == []
    resume(graph, staff("t"), {"decision": "approve"})
    assert len(world.backoffice.effects("refund")) == 1


@pytest.mark.parametrize(
    ("who", "problem"),
    [
        ({"actor": "u-1", "actor_role": "customer"}, "u-1 as customer may not approve refunds"),
        ({"actor": "agent-7", "actor_role": "agent"}, "agent-7 as agent may not approve refunds"),
        ({"actor": "u-1", "actor_role": "refund_approver"}, "u-1 as refund_approver may not approve refunds"),
        ({"tenant": "globex"}, "lead-3 may not act for another tenant or user"),
    ],
)
def test_who_answers_comes_from_the_callers_context_and_is_checked(
    waiting: tuple[SupportWorld, Any], who: dict[str, str], problem: str
) -> None:
    world, graph = waiting
    resume(graph, staff("t", **who), {"decision": "approve"})
    assert _asked(graph, staff("t"))["problem"] == problem
    assert world.backoffice.effects("refund") == []


def test_an_answer_that_was_not_accepted_is_not_taken_for_the_next_callers(waiting: tuple[SupportWorld, Any]) -> None:
    world, graph = waiting
    resume(graph, staff("t", actor="agent-7", actor_role="agent"), {"decision": "approve"})
    state = resume(graph, staff("t"), {"decision": "reject", "reason": "no"})
    assert world.backoffice.effects("refund") == []
    assert [approval["by"] for approval in state["approvals"].values()] == ["lead-3"]


def test_each_refund_of_one_turn_is_asked_about(world: SupportWorld) -> None:
    world.put_order("A100", "delivered", delivered_days_ago=4)
    world.put_order("B200", "delivered", "60.00", delivered_days_ago=5)
    graph, config = world.graph(InMemorySaver()), customer("t")
    say(graph, config, "Orders A100 and B200 arrived broken. I want a refund.")
    assert _asked(graph, config)["order_id"] == "A100"
    resume(graph, staff("t"), {"decision": "approve"})
    assert _asked(graph, config)["order_id"] == "B200"
    state = resume(graph, staff("t"), {"decision": "reject", "reason": "no photo"})
    assert [refund["order_id"] for refund in world.backoffice.effects("refund")] == ["A100"]
    assert "refund of 120.00 EUR for order A100" in last_reply(state["messages"])
    assert "I could not refund order B200" in last_reply(state["messages"])


def test_the_policy_approves_small_refunds_of_lost_parcels_by_itself(world: SupportWorld) -> None:
    world.put_order("A100", "lost", "150.00")
    state = say(world.graph(InMemorySaver()), customer("t"), "Order A100 is lost, refund me.")
    assert [approval["by"] for approval in state["approvals"].values()] == ["policy 2026-10"]
    world.put_order("B200", "lost", "150.01")
    graph, config = world.graph(InMemorySaver()), customer("t2")
    say(graph, config, "Order B200 is lost, refund me.")
    assert _asked(graph, config)["amount"] == "150.01"


def test_of_two_answers_at_once_one_wins_and_the_other_is_told_who(world: SupportWorld, store_url: str) -> None:
    world.put_order("A100", "delivered", delivered_days_ago=4)
    database_url = store_url if is_postgres(store_url) else world.database_url
    with saver_at(store_url) as saver:
        saver.setup()
        graph = world.graph(saver, tools=world.tools(database_url=database_url))
        say(graph, customer("t"), BROKEN)
        (question,) = graph.get_state(customer("t")).interrupts
    together = threading.Barrier(2)
    outcomes: dict[str, Any] = {}

    def run(actor: str) -> None:
        with saver_at(store_url) as own:
            graph = world.graph(own, tools=world.tools(database_url=database_url))
            claims = AnswerClaims(application_database(database_url))
            together.wait(timeout=30)
            try:
                outcomes[actor] = answer(
                    graph, staff("t", actor=actor), {"decision": "approve"}, claims=claims, asked=question.id
                )
            except AlreadyAnswered as taken:
                outcomes[actor] = taken

    threads = [threading.Thread(target=run, args=(actor,)) for actor in ("lead-3", "lead-4")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (loser,) = [actor for actor, outcome in outcomes.items() if isinstance(outcome, AlreadyAnswered)]
    winner = "lead-4" if loser == "lead-3" else "lead-3"
    assert outcomes[loser].winner == winner
    assert "is on its way" in last_reply(outcomes[winner]["messages"])
    assert [approval["by"] for approval in outcomes[winner]["approvals"].values()] == [winner]
    counters = world.backoffice.counters()
    assert counters["effects"] == {"refund": 1, "email": 1, "ticket": 1}
    assert set(counters["by_key"].values()) == {1}, "nothing ran twice"


def test_an_answer_is_refused_before_anything_is_written_where_the_caller_has_no_business(
    waiting: tuple[SupportWorld, Any],
) -> None:
    world, graph = waiting
    claims = AnswerClaims(application_database(world.database_url))
    before = graph.get_state(customer("t"))
    with pytest.raises(NotTheOwner):
        answer(graph, staff("t", tenant="globex"), {"decision": "approve"}, claims=claims)
    assert graph.get_state(customer("t")) == before


def test_an_answer_to_a_thread_that_asks_nothing_is_refused(world: SupportWorld) -> None:
    world.put_order("A100", "in_transit")
    graph = world.graph(InMemorySaver())
    converse(graph, customer("t"), "Where is order A100?")
    with pytest.raises(NothingAsked):
        answer(graph, staff("t"), {}, claims=AnswerClaims(application_database(world.database_url)))


def test_the_winning_answer_is_taken_up_again_after_its_process_died(waiting: tuple[SupportWorld, Any]) -> None:
    world, graph = waiting
    claims = AnswerClaims(application_database(world.database_url))
    (question,) = graph.get_state(customer("t")).interrupts
    claims.take("t", question.id, caller_of(staff("t")["configurable"]), {"decision": "approve"})
    with pytest.raises(AlreadyAnswered, match="lead-3"):
        answer(graph, staff("t", actor="lead-4"), {"decision": "approve"}, claims=claims)
    state = recover(graph, customer("t"), claims=claims)
    assert [approval["by"] for approval in state["approvals"].values()] == ["lead-3"]
    assert len(world.backoffice.effects("refund")) == 1
