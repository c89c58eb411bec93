"""Every checkpoint of every catalog thread, read from rows alone, against `graph.get_state_history`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from agentctl.errors import NotFound
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.history import read_history
from agentctl.stores.reading.steps import StepReader
from agentctl.stores.reading.view import read_checkpoint
from tests.catalog import CATALOG, ThreadCase, config_of, run_case, sqlite_case
from tests.support.stock import differences, inert, stock_history, value_differences


@pytest.fixture(scope="module")
def filled_postgres_url(postgres_url: str) -> Iterator[str]:
    """A database with LangGraph's tables, shared by this module: every case has its own thread id."""
    name = f"catalog_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        url = postgres_url.replace("/postgres?", f"/{name}?")
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
        yield url
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass(frozen=True)
class Ran:
    """A case that was run in a SQLite file of its own."""

    case: ThreadCase
    path: Path
    graph: Any
    reader: Reader


@pytest.fixture(scope="module", params=CATALOG)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    case = CATALOG[request.param]
    folder = tmp_path_factory.mktemp("case")
    with sqlite_case(folder, case) as (path, graph), closing(open_reader(str(path))) as reader:
        yield Ran(case, path, graph, reader)


def test_steps_of_a_sqlite_thread_equal_stock(ran: Ran) -> None:
    for ns in ran.reader.namespaces(ran.case.thread):
        assert differences(ran.reader, ran.graph, ran.case.thread, ns) == []


def test_a_history_and_its_views_equal_stock(ran: Ran) -> None:
    stock = stock_history(ran.graph, ran.case.thread)
    if not stock:
        with pytest.raises(NotFound):
            read_history(ran.reader, ran.case.thread)
        return
    history = read_history(ran.reader, ran.case.thread)
    assert [row.id for row in history.items] == list(stock)
    assert history.head == ran.graph.get_state(config_of(ran.case.thread)).config["configurable"]["checkpoint_id"]
    for row, snapshot in zip(history.items, stock.values(), strict=True):
        assert sorted(row.next) == sorted(snapshot.next)
        assert sorted(i.id or "" for i in row.interrupts) == sorted(i.id for i in snapshot.interrupts)
        view = read_checkpoint(ran.reader, ran.case.thread, "", row.id)
        assert view.next == row.next
        assert _results(view.tasks) == _stock_results(snapshot.tasks)


def _results(tasks: Iterable[Any]) -> dict[str, dict[str, int]]:
    """Returns how often each finished task wrote to each channel of the state."""
    found: dict[str, dict[str, int]] = {}
    for task in tasks:
        for channel, _ in task.result or ():
            counts = found.setdefault(task.id, {})
            counts[channel] = counts.get(channel, 0) + 1
    return found


def _stock_results(tasks: Iterable[Any]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for task in tasks:
        result = task.result
        if task.path[-1] == "pipeline" and result is not None:
            found[task.id] = {"__end__": 1}
        elif result:
            found[task.id] = {
                channel: len(value["$writes"]) if isinstance(value, dict) and "$writes" in value else 1
                for channel, value in result.items()
            }
    return found


def test_every_loop_checkpoint_has_writers_that_were_next_before(ran: Ran) -> None:
    for ns in ran.reader.namespaces(ran.case.thread):
        steps = StepReader(ran.reader, ran.case.thread, ns)
        by_id = {step.row.id: step for step in steps.steps(steps.tree.ids)}
        for step in by_id.values():
            if step.row.source != "loop":
                continue
            assert step.wrote and UNKNOWN not in step.wrote
            parent = by_id.get(step.row.parent or "")
            if parent and parent.row.step == (step.row.step or 0) - 1 and not parent.writes.rerouted:
                plain = [name for name in step.wrote if not name.startswith("__error_handler__")]
                failed = [task.name for task in parent.tasks if not task.finished]
                assert sorted(plain + failed) == sorted(parent.next)


def test_rows_without_task_paths_read_the_same(ran: Ran, tmp_path: Path) -> None:
    """As in files older than that column. Without paths an entrypoint's first run cannot be told from a graph's."""
    if ran.case.name.startswith("functional"):
        pytest.skip("not knowable")
    copy = tmp_path / "without_paths.sqlite"
    with closing(sqlite3.connect(ran.path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        target.execute("UPDATE writes SET task_path = ''")
        target.commit()
    with closing(open_reader(str(copy))) as reader:
        for ns in reader.namespaces(ran.case.thread):
            assert differences(reader, ran.graph, ran.case.thread, ns) == []


@pytest.mark.parametrize("name", CATALOG)
def test_steps_and_values_of_a_postgres_thread_equal_stock(name: str, filled_postgres_url: str) -> None:
    case = CATALOG[name]
    with (
        PostgresSaver.from_conn_string(filled_postgres_url) as saver,
        closing(open_reader(filled_postgres_url)) as reader,
    ):
        graph = run_case(case, saver)
        for ns in reader.namespaces(case.thread):
            assert differences(reader, graph, case.thread, ns) == []
        assert value_differences(reader, graph, case.thread) == []


def test_an_empty_thread_is_not_found_and_names_the_next_command(tmp_path: Path) -> None:
    with sqlite_case(tmp_path, CATALOG["empty"]) as (path, _), closing(open_reader(str(path))) as reader:
        with pytest.raises(NotFound, match="t-empty has no checkpoints") as raised:
            read_history(reader, "t-empty")
        assert raised.value.hint == "agentctl threads"


def test_questions_are_shown_with_their_values(tmp_path: Path) -> None:
    case = CATALOG["parallel interrupts"]
    with sqlite_case(tmp_path, case) as (path, graph), closing(open_reader(str(path))) as reader:
        asked = {i.id: i.value for i in read_history(reader, case.thread).items[0].interrupts}
        assert asked == {i.id: inert(i.value) for i in graph.get_state(config_of(case.thread)).interrupts}
