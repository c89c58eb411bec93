"""The incidents: each really happened, and in a world put right the customer would have been told the right thing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from fixtures.backoffice.support import put_order, put_policy
from fixtures.incidents.common import SeededThread
from fixtures.incidents.support.files import Incident, load_incidents, order_record, replica_of
from fixtures.incidents.support.seeding import last_reply, seed
from graphs.support_refunds.model import make_model
from tests.support.backoffice import TODAY, SupportWorld, answers, converse, customer, support_world

INCIDENTS = {incident.name: incident for incident in load_incidents()}
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
VERDICTS = {
    "stale-order": "tool_data",
    "cents-as-dollars": "tool_data",
    "missing-window": "model_or_prompt",
    "temperature": "nondeterminism",
    "wrong-agent": "routing",
    "wrong-preference": "state",
    "parallel-policy": "tool_data",
    "repaired-order": "tool_data",
}


@dataclasses.dataclass(frozen=True)
class Seeded:
    world: SupportWorld
    store: Path
    threads: Mapping[str, SeededThread]


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    """All incidents, seeded once with a few ordinary threads."""
    folder = tmp_path_factory.mktemp("seeded")
    with support_world(folder) as world:
        threads = seed(str(folder / "prod.sqlite"), world.backoffice, now=NOW, n_ordinary=10)
        yield Seeded(world, folder / "prod.sqlite", {thread.thread: thread for thread in threads})


def test_there_are_eight_incidents_with_the_verdicts_they_were_written_for() -> None:
    assert {name: incident.experiment.expected["verdict"] for name, incident in INCIDENTS.items()} == VERDICTS


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_the_customer_was_really_told_the_wrong_thing(seeded: Seeded, name: str) -> None:
    incident = INCIDENTS[name]
    thread = seeded.threads[incident.conversation.thread]
    assert thread.status == "done"
    assert incident.wrong_reply in thread.reply
    wanted = incident.experiment.check.removeprefix("reply contains ")
    assert wanted.lower() in thread.reply.lower()


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_with_the_world_put_right_the_customer_is_told_the_right_thing(world: SupportWorld, name: str) -> None:
    incident = INCIDENTS[name]
    assert incident.right_reply in _reply(world, _put_right(incident))


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_the_right_reply_does_not_fail_the_incidents_check(name: str) -> None:
    wanted = INCIDENTS[name].experiment.check.removeprefix("reply contains ")
    assert wanted.lower() not in INCIDENTS[name].right_reply.lower()


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_another_order_number_and_amount_give_the_same_mistake_about_that_order(world: SupportWorld, name: str) -> None:
    """So nothing knows an incident by its literals."""
    incident = INCIDENTS[name]
    (order,) = incident.orders
    old = order["order_id"]
    renamed = dataclasses.replace(
        incident,
        orders=({**order, "order_id": "X9001", "total": "31.50"},),
        replicas={"X9001": {**incident.replicas[old], **_in_cents(name)}} if incident.replicas else {},
        faults=tuple(
            {**fault, "subject": "X9001" if fault["subject"] == old else fault["subject"]} for fault in incident.faults
        ),
        conversation=dataclasses.replace(
            incident.conversation,
            steps=tuple(
                dataclasses.replace(step, message=step.message and step.message.replace(old, "X9001"))
                for step in incident.conversation.steps
            ),
        ),
    )
    reply = _reply(world, renamed)
    wanted = incident.experiment.check.removeprefix("reply contains ").replace("12900", "3150")
    assert "X9001" in reply
    assert wanted.lower() in reply.lower()


def _in_cents(name: str) -> dict[str, str]:
    return {"total": "3150"} if name == "cents-as-dollars" else {}


@pytest.mark.parametrize(
    ("name", "order", "reply"),
    [
        ("stale-order", {"status": "lost"}, "Your refund of 120.00 EUR"),
        ("stale-order", {"status": "in_transit"}, "your order is in transit"),
        ("cents-as-dollars", {"total": "129.00"}, "Your refund of 129.00 EUR"),
        ("missing-window", {"status": "in_transit"}, "No refund is due"),
        ("temperature", {"status": "delivered", "delivered_on": "2026-11-20"}, "delivered on 2026-11-20"),
        ("wrong-agent", {"status": "processing"}, "is processing"),
        ("wrong-preference", {"refunded": "75.00", "eligible": False}, "it was refunded already"),
        ("parallel-policy", {"eligible": False}, "these goods cannot be returned"),
        ("repaired-order", {"status": "lost"}, "Your refund of 99.00 EUR"),
    ],
)
def test_altering_an_incidents_order_changes_its_outcome(
    world: SupportWorld, name: str, order: dict[str, Any], reply: str
) -> None:
    incident = INCIDENTS[name]
    (original,) = incident.orders
    record = order_record(original, TODAY)
    seen = replica_of(record, incident.replicas.get(original["order_id"], {}), TODAY) or record
    assert reply in _reply(world, incident, seen={**seen, **order})


def test_with_results_checked_the_cents_are_caught_and_escalated(world: SupportWorld) -> None:
    validated = dataclasses.replace(INCIDENTS["cents-as-dollars"], settings={})
    assert "passed your request to a colleague" in _reply(world, validated)
    assert world.backoffice.effects("refund") == []


def test_the_repaired_order_reads_right_now_and_the_stale_one_still_does_not(seeded: Seeded) -> None:
    assert seeded.world.http.get("/orders/H8055").json()["status"] == "lost"
    assert seeded.world.http.get("/orders/A1042").json()["status"] == "delivered"


def test_seeding_called_production_under_its_own_identity_and_raised_no_alert(seeded: Seeded) -> None:
    assert seeded.world.backoffice.alerts() == []
    assert seeded.world.backoffice.counters()["n_effects"] > 10


def test_the_store_looks_like_productions(seeded: Seeded) -> None:
    ordinary = [thread for thread in seeded.threads.values() if thread.incident is None]
    assert {thread.status for thread in ordinary} == {"done", "interrupted", "error"}
    with SqliteSaver.from_conn_string(str(seeded.store)) as saver:
        found = {row.config["configurable"]["thread_id"]: row.metadata for row in saver.list(None)}
    assert set(found) == set(seeded.threads)
    metadata: Any = found["support-stale-order"]
    assert (metadata["user_id"], metadata["tenant"], metadata["workflow"]) == ("u-1042", "acme", "support_refunds")
    assert metadata["run_id"]
    settings: Any = found["support-cents-as-dollars"]
    assert settings["validate_results"] is False


def test_the_wrong_preference_lies_in_the_memory_store_beside_the_checkpoints(seeded: Seeded) -> None:
    with SqliteStore.from_conn_string(str(seeded.store)) as memory:
        item = memory.get(("preferences", "acme", "u-6620"), "refund_method")
    assert item is not None
    assert item.value == {"value": "store_credit"}


def test_the_bad_policy_came_beside_a_good_order_in_one_turn(seeded: Seeded) -> None:
    with SqliteSaver.from_conn_string(str(seeded.store)) as saver:
        row: Any = saver.get_tuple({"configurable": {"thread_id": "support-parallel-policy"}})
    messages = row.checkpoint["channel_values"]["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "tool", "ai"]
    assert '"window_days": 3,' in answers(messages, "get_refund_policy")[0].content


def test_seeding_twice_gives_the_same_threads_and_replies(tmp_path: Path, seeded: Seeded) -> None:
    with support_world(tmp_path) as world:
        again = seed(str(tmp_path / "prod.sqlite"), world.backoffice, now=NOW, n_ordinary=10)
    assert {thread.thread: thread for thread in again} == seeded.threads


def test_an_incident_can_be_seeded_into_postgres(world: SupportWorld, fresh_postgres_url: str) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    (thread,) = seed(fresh_postgres_url, world.backoffice, now=NOW, incidents=[INCIDENTS["stale-order"]], n_ordinary=0)
    assert thread.reply.startswith("No refund is due")
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        row = saver.get_tuple({"configurable": {"thread_id": "support-stale-order"}})
    assert row is not None
    assert row.metadata["user_id"] == "u-1042"  # type: ignore[typeddict-item]


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_an_experiment_is_a_command_line(name: str) -> None:
    incident = INCIDENTS[name]
    arguments = incident.experiment.arguments("prod", incident.conversation.thread)
    assert arguments[0].startswith(f"prod::{incident.conversation.thread}")
    assert arguments[1:5] == ["--check", incident.experiment.check, "-n", str(incident.experiment.n)]
    assert all(variant.expected["verdict"] for variant in incident.variants)


def test_the_first_incident_is_diagnosed_as_the_documentation_says() -> None:
    arguments = INCIDENTS["stale-order"].experiment.arguments("prod", "support-stale-order")
    assert arguments == [
        "prod::support-stale-order",
        "--check",
        "reply contains no refund",
        "-n",
        "5",
        "--patch",
        'lookup_order:status="lost"',
    ]


def _put_right(incident: Incident) -> Incident:
    """The incident with nothing wrong: no faults, today's settings, no earlier thread, a word that triage knows."""
    steps = tuple(
        dataclasses.replace(step, message=step.message and step.message.replace("reimbursed", "refunded"))
        for step in incident.conversation.steps
    )
    conversation = dataclasses.replace(incident.conversation, steps=steps)
    return dataclasses.replace(
        incident, faults=(), replicas={}, policies=(), settings={}, seed=None, earlier=None, conversation=conversation
    )


def _reply(world: SupportWorld, incident: Incident, *, seen: Mapping[str, Any] | None = None) -> str:
    """Runs an incident, approving whatever is asked; `seen` is the order as the agent gets to see it."""
    for entry in incident.orders:
        record = order_record(entry, TODAY)
        replica = seen or replica_of(record, incident.replicas.get(entry["order_id"]), TODAY)
        put_order(world.backoffice, record, replica=replica)
    if seen is not None:
        world.backoffice.add_fault("stale", "GET /orders")
    for entry in incident.policies:
        record = world.http.get(f"/policies/{entry['version']}/{entry['topic']}").json()
        put_policy(world.backoffice, entry["version"], entry["topic"], record, replica={**record, **entry["replica"]})
    for fault in incident.faults:
        world.backoffice.add_fault(**{name: value for name, value in fault.items() if name != "repaired"})
    model = make_model("scripted", seed=incident.seed)
    graph = world.graph(InMemorySaver(), model=model, memory=InMemoryStore())
    reply = ""
    for conversation in (incident.earlier, incident.conversation):
        for step in conversation.steps if conversation else ():
            if step.message is not None and conversation is not None:
                config = customer(
                    conversation.thread, user_id=incident.user_id, tenant=incident.tenant, **incident.settings
                )
                reply = converse(graph, config, step.message)
    return reply


def test_last_reply_of_nothing_is_empty() -> None:
    assert last_reply([]) == ""
