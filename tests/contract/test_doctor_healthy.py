"""`doctor` finds no fault in a thread that nothing happened to, and leaves no trace on any store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import EphemeralValue, Topic, UntrackedValue
from langgraph.graph import START, StateGraph

from agentctl.records.faults import Examined
from agentctl.stores.open import open_reader
from agentctl.upkeep.doctor.examine import Examination
from tests.catalog import CATALOG, config_of, run_case
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.incidents import seeded_store
from tests.support.postgres import new_database


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    """Every thread of the catalog in one store."""
    if request.param == "sqlite":
        with sqlite_rows(tmp_path_factory.mktemp("catalog")) as filled:
            yield _filled(filled)
    else:
        with new_database(request.getfixturevalue("postgres_url")) as url, postgres_rows(url) as filled:
            yield _filled(filled)


def _filled(rows: Rows) -> Rows:
    for name, case in CATALOG.items():
        run_case(case, rows.saver, name)
    return rows


@pytest.fixture(scope="module")
def examined(rows: Rows) -> dict[str | None, Examined]:
    """What is found, on rows that are the same afterwards."""
    before = _tables(rows)
    found = _all(rows.url)
    assert _tables(rows) == before
    return found


def _tables(rows: Rows) -> list[list[tuple[Any, ...]]]:
    tables = ("checkpoints", "{writes}", *(("checkpoint_blobs",) if rows.kind == "postgres" else ()))
    return [rows.sql(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5") for table in tables]


def _all(url: str) -> dict[str | None, Examined]:
    with closing(open_reader(url)) as reader:
        return {each.thread: each for each in Examination(reader, datetime.now(UTC)).all_threads()}


def codes(examined: Examined) -> set[str]:
    return {fault.code for fault in examined.faults}


def test_no_thread_of_the_catalog_has_a_fault(examined: dict[str | None, Examined]) -> None:
    assert examined.keys() == {None, *CATALOG} - {"empty"}
    assert [fault for each in examined.values() for fault in each.faults if fault.severity == "fault"] == []


def test_what_is_told_of_healthy_threads_is_told_of_the_right_ones(examined: dict[str | None, Examined]) -> None:
    told = {code for each in examined.values() for code in codes(each)}
    by_code = {code: {str(name) for name, each in examined.items() if code in codes(each)} for code in told}

    assert told == {"interrupt_pending", "several_heads", "head_edited", "task_failed"}
    assert by_code["task_failed"] == {
        "failed", "failed twice", "half done", "half done sends", "asking and failing", "failed in subgraph",
        "own calls failing",
    }  # fmt: skip
    assert {"agent asking", "interrupt inside", "subgraph nested", "functional"} <= by_code["interrupt_pending"]
    assert not by_code["interrupt_pending"] & {"interrupt answered", "agent approved", "functional answered", "linear"}
    assert {"update fork", "several forks", "delta fork"} <= by_code["several_heads"] & by_code["head_edited"]
    assert examined["linear"].faults == ()


class Passing(TypedDict, total=False):
    """Channels that keep nothing, or not for long."""

    untracked: Annotated[dict[str, int], UntrackedValue]
    once: Annotated[dict[str, int], EphemeralValue]
    topic: Annotated[list[dict[str, int]], Topic(dict)]
    kept: dict[str, int]
    nothing: None


def test_channels_that_keep_nothing_have_lost_nothing(rows: Rows) -> None:
    graph = StateGraph(Passing)
    for name in ("first", "second", "third"):
        one = {name: 1}
        graph.add_node(name, lambda _, one=one: {"untracked": one, "once": one, "topic": [one], "nothing": None})
    graph.add_node("last", lambda _: {"kept": {}})
    graph.add_edge(START, "first").add_edge("first", "second").add_edge("second", "third").add_edge("third", "last")
    graph.compile(checkpointer=rows.saver).invoke({"kept": {}}, config_of("passing"), durability="sync")
    with closing(open_reader(rows.url)) as reader:
        assert Examination(reader, datetime.now(UTC)).thread("passing").faults == ()


@pytest.mark.parametrize("durability", ["exit", "async"])
def test_a_subgraph_that_keeps_its_state_belongs_to_steps_that_were_never_stored(rows: Rows, durability: str) -> None:
    case, thread = CATALOG["subgraph persistent"], f"passed-{durability}"
    graph = case.build(rows.saver)
    for _ in range(2):
        graph.invoke({"log": ["go"]}, config_of(thread), durability=durability)
    with closing(open_reader(rows.url)) as reader:
        assert Examination(reader, datetime.now(UTC)).thread(thread).faults == ()


@pytest.mark.parametrize("workflow", ["support_refunds", "loan_underwriting"])
def test_no_thread_of_a_seeded_store_has_a_fault(workflow: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with seeded_store(tmp_path_factory.mktemp(workflow), workflow=workflow) as seeded:
        found = _all(seeded.url)

    assert len(found) > 5
    assert [fault for each in found.values() for fault in each.faults if fault.severity != "info"] == []
