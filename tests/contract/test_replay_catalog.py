"""Replays of every checkpoint of every kind of thread: planned nodes really start, and the source stays as it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentctl.errors import Refused
from agentctl.experiments.experiment import Target
from agentctl.experiments.replay import replay
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.base import Reader
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader
from tests.catalog import CATALOG, sqlite_thread
from tests.support.experiments import contents, experiment_on

ENDS = {"done", "interrupted", "error"}
SAME_AS_OTHERS = {"empty", "id with at", "id with colons", "id with spaces"}


def starts(reader: Reader, thread: str) -> list[tuple[Target, tuple[str, ...]]]:
    """Every checkpoint of every namespace from which something runs, with what."""
    found = []
    for ns in reader.namespaces(thread):
        nexts = StepReader(reader, thread, ns).next(read_tree(reader, thread, ns).ids)
        found += [(Target(thread, id, ns), names) for id, names in nexts.items() if names]
    return found


@pytest.mark.parametrize("name", sorted(CATALOG.keys() - SAME_AS_OTHERS))
def test_every_checkpoint_of_a_thread_replays_from_where_it_stands(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]
    folder = tmp_path / "prod"
    folder.mkdir()
    prod = sqlite_thread(folder, case)
    before = contents(prod)
    wrong: list[Any] = []
    with experiment_on(prod, case.build(None), tmp_path / "debug.sqlite") as experiment:
        experiment = replace(experiment, recording=record_thread(experiment.source, case.thread))
        for target, names in starts(experiment.source, case.thread):
            try:
                report = replay(experiment, target)
            except Refused as refused:
                wrong += [] if target.ns and refused.hint else [(target, names, refused.message)]
                continue
            (run,) = report.group.runs
            if run.status not in ENDS or report.side_effects.escaped:
                wrong.append((target.ns, target.id, names, run.status, run.error, run.nodes, run.tool_calls))
    assert wrong == []
    assert contents(prod) == before
