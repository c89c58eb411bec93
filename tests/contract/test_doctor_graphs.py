"""A graph that changed since its rows were written, and tables that changed since their saver made them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

import psycopg
import pytest
from langgraph.graph import START, StateGraph

from agentctl.stores.open import open_reader
from agentctl.stores.reading.lineage import read_tree
from agentctl.upkeep.doctor.examine import Examination
from agentctl.upkeep.doctor.graphs import GraphRules, Resumed, resume
from agentctl.upkeep.doctor.heads import read_head
from agentctl.upkeep.doctor.records import Site
from tests.catalog import CATALOG, config_of
from tests.catalog.flows import Log, says
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.postgres import new_database


def found(rows: Rows, thread: str, graph: Any) -> dict[str, str]:
    """Causes by code of what is found beside a graph."""
    with closing(open_reader(rows.url)) as reader:
        rules = (GraphRules(graph, reader),)
        examined = Examination(reader, datetime.now(UTC), head_rules=rules).thread(thread)
    return {fault.code: fault.cause for fault in examined.faults}


def line(saver: Any, *nodes: str, before: str | None = None) -> Any:
    graph = StateGraph(Log)
    for name in nodes:
        graph.add_node(name, says(name))
    for source, end in zip((START, *nodes), nodes, strict=False):
        graph.add_edge(source, end)
    return graph.compile(checkpointer=saver, interrupt_before=[before] if before else None)


def start(rows: Rows, thread: str, before: str) -> None:
    line(rows.saver, "draft", "review", "send", before=before).invoke(
        {"log": ["input"]}, config_of(thread), durability="sync"
    )


def test_the_graph_that_wrote_the_rows_says_what_a_resume_would_run(rows: Rows) -> None:
    start(rows, "same", "review")
    same = line(None, "draft", "review", "send")

    assert found(rows, "same", same) == {"resume_plan": "a resume would run review"}


def test_a_finished_thread_has_nothing_to_resume(rows: Rows) -> None:
    line(rows.saver, "draft", "send").invoke({"log": []}, config_of("done"), durability="sync")

    assert found(rows, "done", line(None, "draft", "send")) == {}


def test_a_pending_node_that_was_renamed_is_gone(rows: Rows) -> None:
    start(rows, "renamed", "review")

    assert found(rows, "renamed", line(None, "draft", "reviews", "send")) == {
        "node_gone": "review is due, and the graph has draft, reviews, send"
    }


def test_a_channel_that_was_renamed_is_gone(rows: Rows) -> None:
    start(rows, "channel", "review")
    graph = StateGraph(Journal)
    for name in ("draft", "review", "send"):
        graph.add_node(name, lambda state: {"journal": []})
    graph.add_edge(START, "draft").add_edge("draft", "review").add_edge("review", "send")

    assert found(rows, "channel", graph.compile()) == {
        "channel_gone": "channel log is stored, and the graph has none of that name",
        "resume_plan": "a resume would run review",
    }


class Journal(TypedDict, total=False):
    journal: list[str]


def two_sides(saver: Any, *sides: str, before: str | None = None) -> Any:
    graph = StateGraph(Log)
    for name in (*sides, "end"):
        graph.add_node(name, says(name))
    for name in sides:
        graph.add_edge(START, name)
    graph.add_edge(list(sides), "end")
    return graph.compile(checkpointer=saver, interrupt_before=[before] if before else None)


def test_a_join_with_another_side_is_a_trigger_that_is_gone(rows: Rows) -> None:
    two_sides(rows.saver, "left", "right", before="end").invoke({"log": []}, config_of("join"), durability="sync")
    causes = found(rows, "join", two_sides(None, "left", "middle", "right"))

    assert causes == {"trigger_gone": "end is due by join:left+right:end, which the graph does not have"}


def test_nodes_that_wait_and_would_not_run_are_told(rows: Rows) -> None:
    start(rows, "lost", "review")
    with closing(open_reader(rows.url)) as reader:
        head = read_head(reader, "lost", Site("lost", ""), read_tree(reader, "lost"), root_head=None)
    assert head is not None
    (lost,) = resume(head, Resumed(()))
    (failed,) = resume(head, Resumed((), "the value of log is damaged"))

    assert (lost.code, failed.code) == ("resume_lost", "resume_lost")
    assert lost.cause == "review waits by the rows, and the graph would run nothing, without an error"
    assert failed.cause == "the graph cannot go on from it: the value of log is damaged"


def test_a_head_that_cannot_be_copied_is_lost(rows: Rows) -> None:
    start(rows, "ruined", "review")
    rows.ruin("ruined", rows.ids("ruined")[-1], "log")

    assert "resume_lost" in found(rows, "ruined", line(None, "draft", "review", "send"))


def test_a_subgraph_is_compared_with_the_graph_that_is_declared_for_it(rows: Rows) -> None:
    rows.run("subgraph interrupted", "inner")
    same = CATALOG["subgraph interrupted"].build(None)

    assert set(found(rows, "inner", same)) == {"interrupt_pending", "resume_plan"}


def own_tables(rows: Rows, change: str) -> set[str]:
    rows.run("linear", "linear")
    rows.sql(change)
    with closing(open_reader(rows.url)) as reader:
        examined = list(Examination(reader, datetime.now(UTC)).all_threads())
    assert examined[0].thread is None
    assert all(fault.thread is None and fault.command.startswith("agentctl ") for fault in examined[0].faults)
    assert [fault for each in examined[1:] for fault in each.faults] == []
    return {fault.code for fault in examined[0].faults}


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rows]:
    """A database that nobody else looks at."""
    if request.param == "sqlite":
        with sqlite_rows(tmp_path) as rows:
            yield rows
    else:
        with (
            new_database(request.getfixturevalue("postgres_url")) as url,
            postgres_rows(url) as rows,
        ):
            yield rows


BOTH = pytest.mark.parametrize("own", ["sqlite", "postgres"], indirect=True)
POSTGRES = pytest.mark.parametrize("own", ["postgres"], indirect=True)


@BOTH
def test_tables_as_their_saver_made_them_are_in_order(own: Rows) -> None:
    assert own_tables(own, "SELECT 1") == set()


@BOTH
def test_a_column_that_no_saver_makes_is_told(own: Rows) -> None:
    assert own_tables(own, "ALTER TABLE checkpoints ADD COLUMN tenant TEXT") == {"layout_altered"}


@BOTH
def test_writes_without_task_paths_are_of_an_old_layout(own: Rows) -> None:
    own.run("linear", "before")
    own.sql("ALTER TABLE {writes} DROP COLUMN task_path")
    with closing(open_reader(own.url)) as reader:
        first, *threads = Examination(reader, datetime.now(UTC)).all_threads()

    assert {fault.code for fault in first.faults} == {"layout_old"}
    assert [fault for each in threads for fault in each.faults if fault.severity == "fault"] == []


@POSTGRES
def test_tables_of_a_newer_migration_are_told(own: Rows) -> None:
    assert own_tables(own, "INSERT INTO checkpoint_migrations VALUES (99)") == {"layout_newer"}


@BOTH
def test_a_table_without_its_primary_key_is_a_fault(own: Rows) -> None:
    if own.kind == "postgres":
        codes = own_tables(own, "ALTER TABLE checkpoint_writes DROP CONSTRAINT checkpoint_writes_pkey")
    else:
        own.run("linear", "linear")
        own.sql("CREATE TABLE copied AS SELECT * FROM writes")
        own.sql("DROP TABLE writes")
        codes = own_tables_of_copy(own)
    assert codes == {"key_lacking"}


def own_tables_of_copy(rows: Rows) -> set[str]:
    rows.sql("ALTER TABLE copied RENAME TO writes")
    with closing(open_reader(rows.url)) as reader:
        first, *_ = Examination(reader, datetime.now(UTC)).all_threads()
    return {fault.code for fault in first.faults}


def test_a_role_that_may_not_read_migrations_is_no_fault(postgres_url: str) -> None:
    """The grants of docs/stores.md without the optional ones."""
    with new_database(postgres_url) as url, postgres_rows(url) as rows:
        rows.run("linear", "linear")
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("CREATE ROLE looker LOGIN")
            server.execute("GRANT SELECT ON checkpoints, checkpoint_blobs, checkpoint_writes TO looker")
        try:
            with closing(open_reader(url.replace("postgres@", "looker@"))) as reader:
                found = list(Examination(reader, datetime.now(UTC)).all_threads())
            assert [fault for each in found for fault in each.faults] == []
        finally:
            with psycopg.connect(url, autocommit=True) as server:
                server.execute("DROP OWNED BY looker")
                server.execute("DROP ROLE looker")


def test_a_sqlite_file_at_rest_has_no_companions_afterwards(tmp_path: Path) -> None:
    with sqlite_rows(tmp_path) as rows:
        rows.run("agent", "agent")
    with closing(sqlite3.connect(rows.url)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = sorted(path.name for path in tmp_path.iterdir())
    with closing(open_reader(rows.url)) as reader:
        list(Examination(reader, datetime.now(UTC)).all_threads())

    assert sorted(path.name for path in tmp_path.iterdir()) == before
