"""Threads in a stock store of either kind, made once, and forks of them into debug stores of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import parse_forms
from agentctl.experiments.replay import replay
from agentctl.records.runs import ForkReport, ReplayReport
from agentctl.revisions.grammar import parse_revision
from agentctl.revisions.resolve import resolve
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.base import Reader
from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.open import open_reader
from agentctl.stores.reading.facts import StoredFacts
from tests.catalog import config_of
from tests.support.copies import stock_saver
from tests.support.experiments import experiment_on, policy
from tests.support.postgres import new_database


@dataclass(frozen=True)
class Source:
    """A stock store with threads in it, and where their forks go.

    Attributes:
        prod: The store.
        debug: The debug store; where it is the same one, the forks lie beside their source.
    """

    prod: str
    debug: str

    def run(self, build: Callable[[Any], Any], thread: str, drive: Callable[[Any, str], None]) -> None:
        """Builds a graph on the stock saver and drives a thread of it."""
        with stock_saver(self.prod) as saver:
            drive(build(saver), thread)

    @contextmanager
    def experiment(self, graph: Any, thread: str, **settings: Any) -> Iterator[Experiment]:
        """Gives an experiment with the recording of the whole thread, and nothing else that answers a tool."""
        with closing(open_reader(self.prod)) as reader:
            recording = record_thread(reader, thread)
        given = {"policy": policy(), "recording": recording, **settings}
        with experiment_on(self.prod, graph, self.debug, **given) as experiment:
            yield experiment

    def fork(self, graph: Any, at: str, n: int = 1, *, run: bool = True, **given: Any) -> ForkReport:
        """Forks `THREAD@REV`; keyword arguments that are forms are its forms, the rest settings of the experiment.

        Nothing of the source may be written, which a SQLite source is held to byte for byte.
        """
        forms = {name: given.pop(name) for name in list(given) if name in _FORMS}
        with self.experiment(graph, at.partition("@")[0], **given) as experiment, self._untouched():
            return fork(experiment, target_at(experiment.source, at), parse_forms(**forms), n, run=run)

    def replay(self, graph: Any, at: str, n: int = 1, **settings: Any) -> ReplayReport:
        """Replays `THREAD@REV`."""
        with self.experiment(graph, at.partition("@")[0], **settings) as experiment, self._untouched():
            return replay(experiment, target_at(experiment.source, at), n)

    def state(self, graph: Any, thread: str, **where: Any) -> Any:
        """Returns what stock LangGraph says of a debug thread."""
        with stock_saver(self.debug) as saver:
            return graph.copy(update={"checkpointer": saver}).get_state(config_of(thread, **where))

    @contextmanager
    def _untouched(self) -> Iterator[None]:
        before = fingerprint(self.prod) if self.prod != self.debug else {}
        yield
        assert (fingerprint(self.prod) if self.prod != self.debug else {}) == before


_FORMS = frozenset({"answer", "patch", "assign", "update", "as_node", "goto", "resume", "new_input", "memory"})


def target_at(reader: Reader, text: str) -> Target:
    """Returns the checkpoint that `THREAD@REV` names, as the command line resolves it."""
    thread, _, revision = text.partition("@")
    found = resolve(parse_revision(revision or "head"), StoredFacts(reader, thread), now=datetime.now(UTC))
    return Target(found.thread, found.id, found.ns, reader.info.url, "prod", found.call)


def sqlite_source(folder: Path) -> Source:
    """Returns a source in a SQLite file of its own folder."""
    (folder / "prod").mkdir()
    return Source(str(folder / "prod" / "prod.sqlite"), str(folder / "debug.sqlite"))


ON_BOTH = pytest.mark.parametrize("source", ["sqlite", "postgres"], indirect=True)
"""For tests whose `source` is to be of either kind; others take SQLite."""


@contextmanager
def sources(
    fill: Callable[[Source], None], folder: Path, postgres_url: Callable[[], str]
) -> Iterator[Callable[[str], Source]]:
    """Gives sources by kind of store, each made and filled when it is first asked for.

    Args:
        fill: Makes the threads.
        folder: Where SQLite files go.
        postgres_url: Gives the server, started only where it is needed.
    """
    made: dict[str, Source] = {}
    with ExitStack() as stack:

        def of(kind: str) -> Source:
            if kind not in made:
                if kind == "sqlite":
                    made[kind] = sqlite_source(folder)
                else:
                    url = stack.enter_context(new_database(postgres_url()))
                    made[kind] = Source(url, url)
                fill(made[kind])
            return made[kind]

        yield of
