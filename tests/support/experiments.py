"""An experiment on a stock SQLite thread, for tests of replays and forks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentctl.experiments.experiment import DebugStore, Experiment, Target
from agentctl.experiments.runs.running import Limits
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader, open_writer
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader

QUICK = Limits(timeout_s=60, max_steps=30)


@contextmanager
def experiment_on(source: Path | str, graph: Any, debug: Path | str, **settings: Any) -> Iterator[Experiment]:
    """Opens a source and a debug store around a graph; settings are fields of `Experiment`."""
    reader = open_reader(str(source), profile="prod")
    writer = open_writer(str(debug), profile="debug")
    writer.setup()
    try:
        yield Experiment(
            source=reader, debug=DebugStore(str(debug), writer), graph=graph, **{"limits": QUICK, **settings}
        )
    finally:
        reader.close()
        writer.close()


def policy(effects: Mapping[str, Any] | None = None, **settings: Any) -> Policy:
    return Policy(effects=Effects(dict(effects or {})), **settings)


def about_to_run(reader: Reader, thread: str, node: str, ns: str = "", visit: int = 0) -> Target:
    """The checkpoint of the thread from which `node` runs, the first visit by default."""
    steps = StepReader(reader, thread, ns)
    ids = sorted(read_tree(reader, thread, ns).ids)
    found = [id for id, names in steps.next(ids).items() if node in names]
    return Target(thread, found[visit], ns, store=reader.info.url, profile="prod")


def contents(path: Path) -> dict[str, bytes]:
    """Every file beside a database, to see that none of them changed."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
