"""The same threads read over HTTP and in the database that the server checkpoints into, value by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentctl.records.threads import HistoryRow, Task
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.history import read_history
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import StepReader
from agentctl.testing import run_cli
from tests.support.agent_server import GROUP, NAMES, AgentServer, thread_id

pytestmark = pytest.mark.xdist_group(GROUP)

WITH_RUNS = tuple(name for name in NAMES if name not in ("empty", "bare"))


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest) -> AgentServer:
    found: AgentServer = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture
def both(server: AgentServer) -> Iterator[tuple[Reader, Reader]]:
    with closing(open_reader(server.url)) as over_http, closing(open_reader(server.database)) as in_database:
        yield over_http, in_database


def test_namespaces_and_checkpoints_are_the_same(both: tuple[Reader, Reader]) -> None:
    over_http, in_database = both
    for name in WITH_RUNS:
        thread = thread_id(name)
        namespaces = over_http.namespaces(thread)
        assert list(namespaces) == list(in_database.namespaces(thread)), name
        for ns in namespaces:
            rows, stored = over_http.rows(thread, ns), in_database.rows(thread, ns)
            assert [(row.id, row.parent, row.step, row.source) for row in rows] == [
                (row.id, row.parent, row.step, row.source) for row in stored
            ]
            for row, other in zip(rows, stored, strict=True):
                assert {key: row.metadata.get(key) for key in other.metadata} == other.metadata, (name, row.id)


def test_every_step_is_the_same(both: tuple[Reader, Reader]) -> None:
    in_database = both[1]
    for name in WITH_RUNS:
        thread = thread_id(name)
        for ns in in_database.namespaces(thread):
            ids = [row.id for row in in_database.rows(thread, ns, metadata=False)]
            stated, stored = (StepReader(reader, thread, ns).tasks(ids) for reader in both)
            for id in ids:
                assert tasks_of(stated[id]) == tasks_of(stored[id]), (name, ns, id)


def test_every_line_of_every_history_is_the_same(both: tuple[Reader, Reader]) -> None:
    for name in WITH_RUNS:
        stated, stored = (read_history(reader, thread_id(name), all_namespaces=True) for reader in both)
        assert (stated.head, stated.status, stated.n_branches) == (stored.head, stored.status, stored.n_branches), name
        for row, other in zip(stated.items, stored.items, strict=True):
            known = row if "?" not in row.wrote else row._replace(wrote=other.wrote, as_node=other.as_node)
            assert line(known) == line(other), name


def test_every_value_of_every_checkpoint_is_the_same(both: tuple[Reader, Reader]) -> None:
    for name in WITH_RUNS:
        thread = thread_id(name)
        for ns in both[1].namespaces(thread):
            for row in both[1].rows(thread, ns, metadata=False):
                stated, stored = (read_values(reader, thread, ns, row.id).values for reader in both)
                assert fields(stored) == fields({channel: stated[channel] for channel in stored}), (name, ns, row.id)
                only_stated = {channel: value for channel, value in stated.items() if channel not in stored}
                assert not any(only_stated.values()), "a server gives the empty values that no row stores yet"


def test_conversations_and_statuses_read_the_same(server: AgentServer) -> None:
    for words in (
        ["show", thread_id("forked"), "--messages", "--all"],
        ["show", thread_id("chat"), "--call", "lookup_order"],
    ):
        over_http, in_database = (run_cli(*words, "--store", store).out for store in (server.url, server.database))
        assert over_http.replace(server.url, "STORE") == in_database.replace(server.database, "STORE")
    listed, stored = (
        {item["thread"]: item["status"] for item in run_cli("threads", "--store", store, "--json").json["items"]}
        for store in (server.url, server.database)
    )
    assert {thread: listed[thread] for thread in stored} == stored


def test_a_thread_on_the_server_and_in_its_database_differ_in_nothing(server: AgentServer, tmp_path: Path) -> None:
    (tmp_path / "agentctl.yaml").write_text(
        f"profiles:\n  http: {{store: '{server.url}'}}\n  rows: {{store: '{server.database}'}}\n", "utf-8"
    )
    thread = thread_id("forked")

    found = run_cli("diff", f"http::{thread}", f"rows::{thread}", "--json", "--exit-code", cwd=tmp_path)

    assert (found.code, found.json["equal"]) == (0, True), found.out


def tasks_of(tasks: tuple[Task, ...]) -> list[tuple[Any, ...]]:
    """Tasks in no order, with what they wrote, failed with and asked."""
    return sorted(
        (
            task.id,
            task.name,
            task.path,
            task.finished,
            task.error,
            task.ns or "",
            repr([(one.id, fields(one.value)) for one in task.interrupts]),
            repr(sorted((name, repr(fields(value))) for name, value in task.result or ())),
        )
        for task in tasks
    )


def line(row: HistoryRow) -> HistoryRow:
    """A line of a history with nodes in no order."""
    return row._replace(wrote=tuple(sorted(row.wrote)), next=tuple(sorted(row.next)))


def fields(value: object) -> object:
    """A value as JSON has it: without the names of types."""
    if isinstance(value, Mapping):
        return {key: fields(inner) for key, inner in sorted(value.items()) if key != "$type"}
    return [fields(item) for item in value] if isinstance(value, list | tuple) else value
