"""Every fault that `doctor` knows is found in a thread damaged so, on both kinds of database, and nothing else is."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from agentctl.records.faults import Examined, Fault
from agentctl.stores.open import open_reader
from agentctl.upkeep.doctor.codes import CODES
from agentctl.upkeep.doctor.examine import Examination
from tests.catalog import CATALOG, config_of
from tests.support.damage import Rows
from tests.support.damaging import (
    DAMAGES,
    KEY,
    Order,
    Ordered,
    behead,
    delete_row,
    encrypt,
    leak,
    messages,
    route_to,
    ruin_write,
)

ELSEWHERE = {
    "layout_newer", "layout_old", "layout_altered", "key_lacking",
    "node_gone", "channel_gone", "trigger_gone", "resume_lost", "resume_plan",
}  # fmt: skip


def examine(rows: Rows, thread: str) -> Examined:
    with closing(open_reader(rows.url)) as reader:
        return Examination(reader, datetime.now(UTC)).thread(thread)


def codes(examined: Examined, severity: str | None = None) -> set[str]:
    return {fault.code for fault in examined.faults if severity in (None, fault.severity)}


def test_every_code_has_a_damage() -> None:
    assert DAMAGES.keys() | ELSEWHERE == CODES.keys()
    assert not DAMAGES.keys() & ELSEWHERE


@pytest.mark.parametrize("code", DAMAGES)
def test_a_damage_is_found_and_nothing_else(rows: Rows, code: str) -> None:
    damage = DAMAGES[code]
    if damage.only not in (None, rows.kind):
        pytest.skip(f"{rows.kind} cannot be damaged so")
    damage.do(rows, code)

    found = examine(rows, code)

    assert code in codes(found), found.faults
    assert codes(found, "fault") - {code} == damage.also, found.faults
    for fault in found.faults:
        assert fault.thread == code
        assert fault.severity == CODES[fault.code].severity
        assert fault.command.removeprefix("LANGGRAPH_AES_KEY=KEY ").startswith("agentctl ")


def only(examined: Examined, code: str) -> Fault:
    (found,) = [fault for fault in examined.faults if fault.code == code]
    return found


def test_an_unanswered_call_is_named_with_what_came_after_it(rows: Rows) -> None:
    messages("agent", lambda found: [*found[:3], found[4]])(rows, "named")
    fault = only(examine(rows, "named"), "call_unanswered")

    assert fault.cause == "get_policy (c2) has no result, and an ai message came after it"
    assert fault.checkpoint == rows.ids("named")[-1]
    assert fault.command.startswith(f"agentctl fork named@{fault.checkpoint} --answer 'c2=")


def test_calls_that_end_a_finished_thread_are_unanswered(rows: Rows) -> None:
    messages("agent", lambda found: found[:2])(rows, "ended")
    found = examine(rows, "ended")

    assert codes(found, "fault") == {"call_unanswered"}
    assert {fault.cause for fault in found.faults} == {
        "lookup_order (c1) has no result, and the thread ended there",
        "get_policy (c2) has no result, and the thread ended there",
    }


def test_call_ids_that_repeat_across_turns_are_paired_by_position(rows: Rows) -> None:
    rows.run("agent two turns", "turns")
    head = rows.ids("turns")[-1]
    assert codes(examine(rows, "turns")) == set()
    rows.value("turns", head, "messages", lambda found: [*found[:3], *found[4:]])
    fault = only(examine(rows, "turns"), "call_unanswered")

    assert fault.cause == "get_policy (c2) has no result, and an ai message came after it"


def test_calls_of_a_subgraph_are_looked_at_in_its_namespace(rows: Rows) -> None:
    rows.run("deep agent", "deep")
    found = rows.sql("SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = 'deep'")
    inner = next(ns for (ns,) in found if ns)
    head = rows.ids("deep", inner)[-1]
    assert codes(examine(rows, "deep"), "fault") == set()
    rows.value("deep", head, "messages", lambda found: again_list(found, drop=1), ns=inner)
    fault = only(examine(rows, "deep"), "call_orphaned")

    assert (fault.ns, fault.checkpoint) == (inner, head)
    assert fault.command == f"agentctl show deep@{head} --ns {inner}"


def again_list(found: Any, drop: int) -> Any:
    """A list of messages, or a delta channel's snapshot of one, without one of them."""
    from langgraph.checkpoint.serde.types import _DeltaSnapshot

    if isinstance(found, _DeltaSnapshot):
        return _DeltaSnapshot([*found.value[:drop], *found.value[drop + 1 :]])
    return [*found[:drop], *found[drop + 1 :]]


def test_a_question_is_a_fault_when_it_has_waited_too_long(rows: Rows) -> None:
    rows.run("interrupt inside", "asks")
    now = datetime.now(UTC) + timedelta(days=3)
    with closing(open_reader(rows.url)) as reader:
        young = Examination(reader, now, timedelta(days=4)).thread("asks")
        old = Examination(reader, now, timedelta(days=2)).thread("asks")

    assert [(f.code, f.severity) for f in young.faults] == [("interrupt_pending", "info")]
    assert [(f.code, f.severity) for f in old.faults] == [("interrupt_pending", "fault")]
    assert old.faults[0].cause.endswith("has waited for 3 days")


def test_each_of_several_questions_is_answered_by_its_id(rows: Rows) -> None:
    rows.run("parallel interrupts", "both")
    found = [fault for fault in examine(rows, "both").faults if fault.code == "interrupt_pending"]

    assert len(found) == 2
    assert all(" --map " in fault.command for fault in found)


def test_a_route_to_a_node_that_is_not_there_is_a_failed_router(rows: Rows) -> None:
    route_to(rows, "nowhere", lambda state: "audit")
    fault = only(examine(rows, "nowhere"), "router_failed")

    assert fault.cause == "count routed to audit, which the graph did not have: nothing ran"
    assert codes(examine(rows, "nowhere"), "fault") == {"router_failed"}


def test_the_writes_of_one_of_two_parallel_nodes_are_missed(rows: Rows) -> None:
    rows.run("join", "one lost")
    where = "WHERE thread_id = 'one lost' AND task_path = '~__pregel_pull, left'"
    assert rows.sql(f"SELECT count(*) FROM {{writes}} {where}") != [(0,)]
    rows.sql(f"DELETE FROM {{writes}} {where}")
    found = examine(rows, "one lost")

    assert only(found, "writes_missing").cause.startswith("left ran from ")


def test_a_lost_write_of_a_sent_task_and_lost_sends_are_missed(rows: Rows) -> None:
    for thread in ("sent", "sending"):
        rows.run("fan out", thread)
    (at, task) = rows.sql(
        "SELECT checkpoint_id, task_id FROM {writes} WHERE thread_id = 'sent' AND task_path LIKE ? ORDER BY 2",
        "~__pregel_push%",
    )[0]
    rows.sql("DELETE FROM {writes} WHERE thread_id = 'sent' AND task_id = ?", task)
    rows.sql("DELETE FROM {writes} WHERE thread_id = 'sending' AND channel = '__pregel_tasks'")
    sent, sending = (only(examine(rows, thread), "writes_missing") for thread in ("sent", "sending"))

    assert sent.checkpoint == at
    assert sent.cause.startswith("1 of 3 tasks that were sent ran from")
    assert sending.cause.startswith("the step changed the Sends, and no stored write")


def test_parents_that_lead_back_are_wrong(rows: Rows) -> None:
    rows.run("linear", "looped")
    _, _, third, *_, last = rows.ids("looped")
    rows.sql(
        "UPDATE checkpoints SET parent_checkpoint_id = ? WHERE thread_id = 'looped' AND checkpoint_id = ?", last, third
    )
    found = examine(rows, "looped")

    assert codes(found, "fault") == {"parent_wrong", "head_superseded"}
    assert {fault.checkpoint for fault in found.faults if fault.severity == "fault"} >= {third}


def test_a_delta_channel_of_a_checkpoint_that_lost_its_parent_is_broken(rows: Rows) -> None:
    rows.run("delta", "unrooted")
    id = rows.ids("unrooted")[2]
    rows.sql(
        "UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = 'unrooted' AND checkpoint_id = ?", id
    )

    assert codes(examine(rows, "unrooted"), "fault") == {"delta_broken"}


def test_a_version_that_the_parent_had_is_missed(rows: Rows) -> None:
    rows.run("linear", "unversioned")
    before, head = rows.ids("unversioned")[-2:]
    rows.checkpoint("unversioned", head, lambda document: document["channel_versions"].pop("log"))
    fault = only(examine(rows, "unversioned"), "versions_missing")

    assert (fault.checkpoint, fault.command) == (head, f"agentctl diff unversioned@{before} unversioned@{head}")


def test_writes_that_only_metadata_tells_of_are_those_of_an_old_version(rows: Rows) -> None:
    rows.run("linear", "old")
    rows.sql("DELETE FROM {writes} WHERE thread_id = ?", "old")
    ids = rows.ids("old")
    for id, node in zip(ids, ("__start__", None, "collect", "decide", "answer"), strict=True):
        rows.metadata("old", id, lambda found, node=node: found.update(writes={node: {}} if node else None))

    assert "writes_missing" not in codes(examine(rows, "old"))
    rows.metadata("old", ids[3], lambda found: found.update(writes=None))
    assert only(examine(rows, "old"), "writes_missing").checkpoint == ids[2]


def test_durability_async_stores_a_join_that_was_not_complete(rows: Rows) -> None:
    graph = CATALOG["uneven join"].build(rows.saver)
    found: list[set[str]] = []
    # It is a race that LangGraph loses more or less often.
    for number in range(60):
        graph.invoke({"log": ["input"]}, config_of(f"async {number}"), durability="async")
        found.append(set(codes(examine(rows, f"async {number}"), "fault")))
        if found[-1]:
            break

    assert all(each <= {"join_wrong"} for each in found)
    assert {"join_wrong"} in found, "if LangGraph does not do this any more, tell docs/doctor.md"


def test_orphaned_writes_are_told_by_their_checkpoint(rows: Rows) -> None:
    delete_row(rows, "orphans", "interrupt inside", -1, writes=False)
    fault = only(examine(rows, "orphans"), "writes_orphaned")

    assert fault.checkpoint not in rows.ids("orphans")
    assert fault.cause == f"1 pending write belongs to {fault.checkpoint}, which is not stored"


def test_a_subgraph_whose_enclosing_subgraph_is_gone_is_orphaned(rows: Rows) -> None:
    rows.run("subgraph nested", "nested")
    spaces = [ns for (ns,) in rows.sql("SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = 'nested'")]
    (middle,) = [ns for ns in spaces if ns and "|" not in ns]
    (inner,) = [ns for ns in spaces if "|" in ns]
    owner = rows.ids("nested", middle)[-1]
    for table in ("checkpoints", "{writes}", *(["checkpoint_blobs"] if rows.kind == "postgres" else [])):
        rows.sql(f"DELETE FROM {table} WHERE thread_id = 'nested' AND checkpoint_ns = ?", middle)
    found = examine(rows, "nested")

    assert codes(found, "fault") == {"namespace_orphaned"}
    assert only(found, "namespace_orphaned").ns == inner
    assert f"checkpoint {owner} of namespace {middle}, which is not" in only(found, "namespace_orphaned").cause


def test_a_thread_of_which_only_writes_are_left_is_looked_at_by_name(rows: Rows) -> None:
    rows.run("interrupt inside", "left")
    for table in ("checkpoints", *(["checkpoint_blobs"] if rows.kind == "postgres" else [])):
        rows.sql(f"DELETE FROM {table} WHERE thread_id = 'left'")
    found = examine(rows, "left")

    assert codes(found, "fault") == {"thread_headless", "writes_orphaned"}
    assert {fault.command for fault in found.faults} == {"agentctl prune left --delete"}


def test_a_thread_without_a_root_is_found_among_all(rows: Rows) -> None:
    behead(rows, "headless")
    with closing(open_reader(rows.url)) as reader:
        assert "headless" in Examination(reader, datetime.now(UTC)).names()


def test_encrypted_rows_are_looked_into_with_the_key(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    encrypt(rows, "sealed")
    assert codes(examine(rows, "sealed")) == {"key_missing"}
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY)
    assert codes(examine(rows, "sealed")) == set()
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY[::-1])
    assert codes(examine(rows, "sealed"), "fault") & {"row_unreadable", "value_unreadable"}


def test_a_value_is_missed_without_another_blob_of_its_channel(postgres: Rows) -> None:
    postgres.run("linear", "no blobs")
    postgres.sql("DELETE FROM checkpoint_blobs WHERE thread_id = 'no blobs'")
    found = examine(postgres, "no blobs")

    assert codes(found) == {"blob_missing"}
    assert {fault.checkpoint for fault in found.faults} == set(postgres.ids("no blobs")[1:])


def test_a_delta_snapshot_whose_blob_is_gone_is_missed(postgres: Rows) -> None:
    postgres.run("delta", "snapshots")
    postgres.sql("DELETE FROM checkpoint_blobs WHERE thread_id = 'snapshots' AND channel = 'messages'")
    found = examine(postgres, "snapshots")

    assert codes(found) == {"blob_missing"}
    assert {fault.cause for fault in found.faults} == {"the value of messages is not stored"}


def test_a_ruined_write_is_an_unreadable_value(rows: Rows) -> None:
    ruin_write(rows, "write")
    fault = only(examine(rows, "write"), "value_unreadable")

    assert fault.cause.startswith("a pending write to log cannot be read: ")


def test_the_same_finding_at_many_checkpoints_is_told_once(rows: Rows) -> None:
    leak(rows, "leaky")
    fault = only(examine(rows, "leaky"), "metadata_secret")

    assert fault.n_found == len(rows.ids("leaky"))
    assert "abcdef0123456789" not in repr(fault)


def test_names_that_only_sound_secret_are_left(rows: Rows) -> None:
    rows.run("linear", "harmless")
    harmless = {"langgraph_auth_user_id": "customer-1042", "max_tokens": 4096, "token": None, "auth": "none"}
    rows.metadata("harmless", rows.ids("harmless")[-1], lambda metadata: metadata.update(harmless))

    assert codes(examine(rows, "harmless")) == set()


def test_a_strict_loader_drifts_types(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same damage as LangGraph does it: a process that may not build the class goes on with the thread."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    def graph(saver: Any) -> Any:
        built = StateGraph(Ordered)
        built.add_node("keep", lambda state: {"order": state["order"]})
        built.add_edge(START, "keep")
        return built.compile(checkpointer=saver)

    graph(rows.saver).invoke({"order": Order("A1", 10.0)}, config_of("strict"), durability="sync")
    assert codes(examine(rows, "strict")) == set()
    stock: Any = rows.saver
    strict = type(stock)(conn=stock.conn, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    graph(strict).invoke({}, config_of("strict"), durability="sync")
    fault = only(examine(rows, "strict"), "value_drifted")

    assert "Order and is plain data since" in fault.cause
