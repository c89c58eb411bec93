"""Every checkpoint of every catalog thread, read from rows alone, against `graph.get_state_history`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.steps import StepReader
from tests.catalog import CATALOG, run_case, sqlite_case
from tests.support.stock import differences, stock_history


@pytest.mark.parametrize("name", CATALOG)
def test_steps_of_a_sqlite_thread_equal_stock(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        for ns in reader.namespaces(case.thread) or [""]:
            assert differences(reader, graph, case.thread, ns) == []
        reader.close()
