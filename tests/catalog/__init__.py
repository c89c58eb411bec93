"""Real graphs and threads, made by stock LangGraph: what every reader, copier and runner is tested on.

`CATALOG` maps a name to a `ThreadCase`; `run_case(case, saver)` builds its graph on any sync saver and runs it there.
All of it is deterministic, offline and fast; every run has durability "sync", but for the cases named `exit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tests.catalog import agents, failures, flows, forks, handoffs, interrupts, owncalls, research, storage, subgraphs
from tests.catalog.case import (
    Saver,
    ThreadCase,
    config_of,
    go,
    run_case,
    sqlite_case,
    sqlite_thread,
)

CATALOG: Mapping[str, ThreadCase] = MappingProxyType(
    {
        entry.name: entry
        for module in (flows, interrupts, subgraphs, failures, forks, storage, agents, owncalls, handoffs, research)
        for entry in module.CASES
    }
)

__all__ = ["CATALOG", "Saver", "ThreadCase", "config_of", "go", "run_case", "sqlite_case", "sqlite_thread"]
