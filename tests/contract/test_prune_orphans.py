"""`prune --orphans`: what no checkpoint refers to goes, whatever an application is about to store stays."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentctl.stores.reading.layout import TASKS
from agentctl.testing import run_cli
from agentctl.testing.commands import CliResult
from agentctl.upkeep.settled import is_settled
from tests.catalog import CATALOG, config_of
from tests.support.damage import Rows
from tests.support.damaging import DAMAGES
from tests.support.pruning import deleter_of, faults, named, prune, request, states

ORPHANS = {"writes_orphaned", "blobs_orphaned"}
Agentctl = Callable[..., CliResult]


@pytest.fixture
def agentctl(rows: Rows, tmp_path: Path) -> Agentctl:
    profile = {"store": rows.url, "default": True, "access": "write"}
    (tmp_path / "agentctl.yaml").write_text(yaml.safe_dump({"profiles": {"prod": profile}}), "utf-8")
    return lambda *words, **given: run_cli(*words, cwd=tmp_path, **given)


def put_write(rows: Rows, thread: str, id: str) -> None:
    """Stores a pending write of a checkpoint by its id alone."""
    columns = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, {value}"
    rows.sql(f"INSERT INTO {{writes}} ({columns}) VALUES (?, '', ?, 'lost', 0, 'x', 'null', ?)", thread, id, b"")


def put_blob(rows: Rows, thread: str, version: str) -> None:
    columns = "thread_id, checkpoint_ns, channel, version, type, blob"
    rows.sql(f"INSERT INTO checkpoint_blobs ({columns}) VALUES (?, '', 'x', ?, 'null', ?)", thread, version, b"")


def litter(rows: Rows, thread: str) -> None:
    """Leaves what a checkpoint that is gone had, of the time before the newest one."""
    put_write(rows, thread, rows.ids(thread)[0][:-1] + "-")
    if rows.kind == "postgres":
        put_blob(rows, thread, f"{1:032}.0.5")


def findings(agentctl: Agentctl, thread: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = agentctl("doctor", thread, "--json").json["items"]
    return [item for item in items if item["severity"] != "info"]


@pytest.mark.parametrize("case", ["linear", "delta"])
def test_the_command_of_doctor_takes_them_and_every_checkpoint_loads_as_before(
    rows: Rows, agentctl: Agentctl, case: str
) -> None:
    thread = f"littered {case}"
    graph = rows.run(case, thread)
    litter(rows, thread)
    before = states(graph, thread)
    told = findings(agentctl, thread)
    assert {item["code"] for item in told} == (ORPHANS if rows.kind == "postgres" else {"writes_orphaned"})
    assert {item["command"] for item in told} == {f"agentctl prune 'prod::{thread}' --orphans"}

    plan = agentctl(*shlex.split(told[0]["command"])[1:], "--json")
    assert findings(agentctl, thread) == told
    done = agentctl(*shlex.split(plan.json["command"])[1:], "--json")

    assert (plan.json["mode"], plan.json["items"][0]["goes"]["n_checkpoints"]) == ("orphans", 0)
    assert (done.code, done.json["items"][0]["faults"]) == (0, [])
    assert done.json["items"][0]["goes"] == plan.json["items"][0]["goes"]
    assert findings(agentctl, thread) == []
    assert states(graph, thread) == before


@pytest.mark.parametrize("code", sorted(ORPHANS))
def test_those_of_a_lost_head_go_where_the_thread_is_at_rest(rows: Rows, agentctl: Agentctl, code: str) -> None:
    if DAMAGES[code].only not in (None, rows.kind):
        pytest.skip(f"{rows.kind} keeps values inside checkpoints")
    thread = f"lost {code}"
    DAMAGES[code].do(rows, thread)
    commands = {item["command"] for item in findings(agentctl, thread) if item["code"] == code}
    assert commands == {f"agentctl prune 'prod::{thread}' --orphans --older-than 1h"}
    words = shlex.split(commands.pop())[1:]
    graph = CATALOG["interrupt inside"].build(rows.saver)
    before = states(graph, thread)

    young = agentctl(*words, "--apply", "--json")
    left = agentctl(*words[:3], "--json")
    assert (young.json["items"], young.json["total"]["n_passed"]) == ([], 1)
    assert left.json["items"][0]["goes"]["n_writes"] == left.json["items"][0]["goes"]["n_blobs"] == 0
    assert "a run may be about to store" in left.json["items"][0]["notes"][0]
    agentctl(*words, "--apply", now=lambda: datetime(2100, 1, 1, tzinfo=UTC))

    assert findings(agentctl, thread) == []
    assert states(graph, thread) == before


def test_writes_that_an_application_stores_before_their_checkpoint_stay(rows: Rows) -> None:
    graph = rows.run("linear", "early")
    parent = graph.get_state(config_of("early")).config
    tuple_ = rows.saver.get_tuple(parent)
    assert tuple_ is not None
    later = {**tuple_.checkpoint, "id": "2" + tuple_.checkpoint["id"][1:]}
    at = {"configurable": {**parent["configurable"], "checkpoint_id": later["id"]}}
    rows.saver.put_writes(at, [("x", "mine")], "task")

    prune(rows.url, named(request(orphans=True), "early"))
    rows.saver.put(parent, later, {**tuple_.metadata, "step": 9}, {})  # type: ignore[arg-type,typeddict-item]

    stored = rows.saver.get_tuple(at)
    assert stored is not None
    assert stored.pending_writes == [("task", "x", "mine")]


def test_sends_of_a_lost_parent_stay_where_its_child_is_of_a_format_that_reads_them(rows: Rows) -> None:
    rows.run("linear", "old format")
    *_, parent, child = rows.ids("old format")
    rows.checkpoint("old format", child, lambda document: document.update(v=3))
    rows.sql("UPDATE {writes} SET channel = ? WHERE thread_id = 'old format' AND checkpoint_id = ?", TASKS, parent)
    rows.delete("old format", parent)
    litter(rows, "old format")
    n_before = n_writes(rows, parent)

    (told,) = prune(rows.url, named(request(orphans=True), "old format"))

    assert (told.goes.n_writes, n_writes(rows, parent), told.faults) == (1, n_before, ())
    assert f"the writes of {parent} stay: a checkpoint of an old format" in told.notes[0]


def n_writes(rows: Rows, id: str) -> int:
    return int(rows.sql("SELECT count(*) FROM {writes} WHERE checkpoint_id = ?", id)[0][0])


def test_a_blob_of_a_version_that_a_run_may_name_next_stays(postgres: Rows) -> None:
    postgres.run("linear", "next")
    for version in (f"{1:032}.0.5", f"{99:032}.0.5", "odd"):
        put_blob(postgres, "next", version)

    (told,) = prune(postgres.url, named(request(orphans=True), "next"))

    assert (told.goes.n_blobs, told.faults) == (1, ())
    assert any("2 blobs stay" in note for note in told.notes)


def test_a_thread_that_asks_keeps_its_orphans_unless_it_is_named(rows: Rows) -> None:
    graph = rows.run("interrupt inside", "asks")
    litter(rows, "asks")
    before = states(graph, "asks")

    told = {one.thread: one for one in prune(rows.url, request(orphans=True))}
    assert told["asks"].action == "skip"
    assert "writes_orphaned" in faults(rows.url, "asks")
    prune(rows.url, named(request(orphans=True), "asks"))

    assert faults(rows.url, "asks") == set()
    assert states(graph, "asks") == before


def test_nothing_goes_of_a_thread_without_orphans(rows: Rows) -> None:
    rows.run("half done sends", "whole")
    with deleter_of(rows.url) as deleter:
        n_before = deleter.n_rows("whole")
        (told,) = prune(rows.url, named(request(orphans=True), "whole"))
        assert (told.goes.n_rows, deleter.n_rows("whole")) == (0, n_before)


def test_what_a_checkpoint_has_by_now_is_not_taken_in_the_deleting_transaction(rows: Rows) -> None:
    rows.run("interrupt inside", "by now")
    with deleter_of(rows.url) as deleter:
        n_before = deleter.n_rows("by now")
        with deleter.transaction() as deletion:
            keys = [weight.key for weight in deletion.weights("by now")]
            assert deletion.delete_stray_writes("by now", keys).n_rows == 0
        assert deleter.n_rows("by now") == n_before


def test_a_subgraph_beside_another_that_is_further_may_still_store_its_checkpoint() -> None:
    newest = {"": "1", "a:1": "5"}

    assert not is_settled(("b:1", "3"), newest)
    assert is_settled(("a:1", "3"), newest)
    assert is_settled(("b:1", "3"), {**newest, "": "4"})


def test_it_is_asked_for_alone(agentctl: Agentctl) -> None:
    for other in (("--delete",), ("--keep-turns", "1"), ("--snapshot",)):
        refused = agentctl("prune", "prod::", "--orphans", *other)
        assert refused.code == 2
        assert "every checkpoint stays" in refused.err
