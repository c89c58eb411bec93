"""Channel values read from rows, beside those of the loaded graph."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentctl.codec.packed import join_map, split_map
from agentctl.codec.values import decode
from agentctl.errors import DecodeError, NotFound
from agentctl.records.rows import Stored
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.layout import is_state_channel
from agentctl.stores.reading.lineage import head_id
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.view import read_checkpoint
from tests.catalog import CATALOG, config_of, run_case, sqlite_case, sqlite_thread

SERDE = JsonPlusSerializer()


def inert(value: object) -> object:
    return decode(Stored(*SERDE.dumps_typed(value)))


@pytest.mark.parametrize("name", [name for name in CATALOG if not name.startswith("functional")])
def test_values_equal_those_of_the_loaded_graph(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]
    with sqlite_case(tmp_path, case) as (path, graph):
        compare_with_graph(open_reader(str(path)), graph, case.thread)


def test_values_on_postgres_equal_those_of_the_loaded_graph(fresh_postgres_url: str) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        reader = open_reader(fresh_postgres_url)
        for name, case in CATALOG.items():
            if not name.startswith("functional"):
                compare_with_graph(reader, run_case(case, saver), case.thread)
        reader.close()


def compare_with_graph(reader: Reader, graph: Any, thread: str) -> None:
    """What rows cannot tell is noted, or was never written (the graph then shows its reducer's empty value)."""
    for snapshot in graph.get_state_history(config_of(thread)):
        read = read_values(reader, thread, "", snapshot.config["configurable"]["checkpoint_id"])
        expected = {name: inert(value) for name, value in snapshot.values.items()}
        certain = {channel: value for channel, value in read.values.items() if channel not in read.notes}

        assert not read.unreadable
        assert certain == {channel: expected[channel] for channel in certain}
        assert all(not expected[channel] for channel in expected.keys() - read.values.keys() - read.notes.keys())


def test_a_delta_channel_with_a_reducer_of_the_app_shows_its_writes(tmp_path: Path) -> None:
    case = CATALOG["delta"]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        read = read_values(reader, case.thread, "", head_id(reader, case.thread))
        notes = graph.get_state(config_of(case.thread)).values["notes"]
        assert read.values["notes"] == {"$writes": [[note] for note in notes]}
        view = read_checkpoint(reader, case.thread, "", head_id(reader, case.thread))

    assert read.notes.keys() == {"notes"}
    assert view.notes == read.notes


def test_an_update_given_with_an_answer_is_noted(tmp_path: Path) -> None:
    case = CATALOG["resume with update"]
    with sqlite_case(tmp_path, case) as (path, _):
        reader = open_reader(str(path))
        asked = [row for row in reader.rows(case.thread) if row.step == 1]
        read = read_values(reader, case.thread, "", asked[0].id)

    assert read.values.keys() == {"log"}
    assert "Command" in read.notes["n"]


def test_a_functional_entrypoint_shows_what_it_returned(tmp_path: Path) -> None:
    case = CATALOG["functional answered"]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        read = read_values(reader, case.thread, "", head_id(reader, case.thread))

        assert read.values == {"__end__": inert(graph.get_state(config_of(case.thread)).values)}


@pytest.mark.parametrize("name", ["subgraph nested answered", "subgraph persistent", "deep agent"])
def test_values_of_inner_namespaces_equal_those_of_the_stock_saver(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        inner = [ns for ns in reader.namespaces(case.thread) if ns]
        for ns in inner:
            for found in graph.checkpointer.list(config_of(case.thread, checkpoint_ns=ns)):
                stored = found.checkpoint["channel_values"]
                read = read_values(reader, case.thread, ns, found.checkpoint["id"]).values
                plain = {name: inert(value) for name, value in stored.items() if is_state_channel(name)}
                assert {name: value for name, value in read.items() if name in plain} == plain

        assert inner


def test_the_files_and_messages_of_a_deep_agent_are_rebuilt(tmp_path: Path) -> None:
    case = CATALOG["deep agent"]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        read = read_values(reader, case.thread, "", head_id(reader, case.thread), channels=["files", "messages"])
        values = graph.get_state(config_of(case.thread)).values

    assert read.values == {"files": inert(values["files"]), "messages": inert(values["messages"])}
    assert read.values["files"]
    assert not read.notes


def test_reading_a_delta_channel_writes_nothing(tmp_path: Path) -> None:
    path = sqlite_thread(tmp_path, CATALOG["deep agent"])
    before = path.read_bytes()
    reader = open_reader(str(path))

    read_values(reader, "t-deep-agent", "", head_id(reader, "t-deep-agent"))

    assert path.read_bytes() == before


def test_one_unreadable_channel_shows_its_error_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = sqlite_thread(tmp_path, CATALOG["values"])
    reader = open_reader(str(path))
    id = head_id(reader, "t-values")
    edit_state(path, id, lambda channels: channels | {"table": b"\xc7\x01\x02\xc1"})

    read = read_values(reader, "t-values", "", id)

    assert "damaged" in read.unreadable["table"]
    assert read.values["text"] == "naïve ☕"


def test_a_row_of_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    path = sqlite_thread(tmp_path, CATALOG["values"])
    reader = open_reader(str(path))
    id = head_id(reader, "t-values")
    edit_state(path, id, lambda channels: channels | {"table": b"\xc1"})

    with pytest.raises(DecodeError):
        read_values(reader, "t-values", "", id)


def test_a_missing_checkpoint_is_not_found(tmp_path: Path) -> None:
    reader = open_reader(str(sqlite_thread(tmp_path, CATALOG["linear"])))

    with pytest.raises(NotFound):
        read_values(reader, "t-linear", "", "1f0b0000-0000-6000-8000-000000000000")


def test_only_the_asked_channels_are_read(tmp_path: Path) -> None:
    reader = open_reader(str(sqlite_thread(tmp_path, CATALOG["values"])))

    read = read_values(reader, "t-values", "", head_id(reader, "t-values"), channels=["small", "flag"])

    assert read.values == {"small": -6, "flag": True}


def edit_state(path: Path, id: str, edit: Callable[[dict[str, bytes]], dict[str, bytes]]) -> None:
    """Changes the packed channel values of one stored checkpoint."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (data,) = connection.execute("SELECT checkpoint FROM checkpoints WHERE checkpoint_id = ?", (id,)).fetchone()
        parts = split_map(data)
        parts["channel_values"] = join_map(edit(split_map(parts["channel_values"])))
        connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (join_map(parts), id))
