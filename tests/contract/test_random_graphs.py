"""Threads of graphs drawn at random, read from rows alone, against `graph.get_state_history`."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.stores.open import open_reader
from agentctl.stores.reading.history import read_history
from tests.support.random_graphs import GraphSpec, Move, build, drive, graph_specs, moves
from tests.support.stock import differences, value_differences


@settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(spec=graph_specs(), todo=moves())
def test_a_random_thread_reads_as_stock_reads_it(spec: GraphSpec, todo: list[Move]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threads.sqlite"
        with SqliteSaver.from_conn_string(str(path)) as saver:
            saver.setup()
            saver.conn.execute("PRAGMA synchronous = OFF")
            graph = build(spec, saver)
            drive(graph, "t", todo)
            with closing(open_reader(str(path))) as reader:
                assert differences(reader, graph, "t", silent_ids=False) == []
                assert value_differences(reader, graph, "t") == []
                assert read_history(reader, "t", limit=3).items == read_history(reader, "t").items[:3]
