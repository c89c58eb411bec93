"""Every thread of the catalog, copied in every direction, read by the stock savers and by its own graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentctl.masking.keys import Key
from agentctl.masking.masker import Masker
from agentctl.masking.reader import masked
from agentctl.masking.rules import rules_of
from agentctl.records.copies import CopyReport
from agentctl.records.masking import MaskSettings
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy
from agentctl.stores.open import open_reader, open_writer
from tests.catalog import CATALOG, Saver, run_case
from tests.support.copies import history, stock_saver, tuples, without_repeated_snapshots
from tests.support.postgres import new_database

NAMES = sorted(name for name in CATALOG if name != "empty")
DIRECTIONS = {
    "sqlite to sqlite": ("sqlite", "other sqlite"),
    "sqlite to postgres": ("sqlite", "other postgres"),
    "postgres to sqlite": ("postgres", "other sqlite"),
    "postgres to postgres": ("postgres", "other postgres"),
    "inside sqlite": ("sqlite", "sqlite"),
    "inside postgres": ("postgres", "postgres"),
}
MASKED = {"masked to sqlite": ("sqlite", "other sqlite"), "masked inside postgres": ("postgres", "postgres")}
"""A masked copy takes its rows apart and makes them anew; in these threads nothing is personal, so all is as it was."""


@dataclass
class Stores:
    """Four stores; `sqlite` and `postgres` hold every case of the catalog, run there by its own graph."""

    urls: dict[str, str]
    savers: dict[str, Saver]
    graphs: dict[tuple[str, str], Any]
    reports: dict[str, dict[str, CopyReport]] = field(default_factory=dict)
    tuples: dict[tuple[str, str], list[tuple[Any, ...]]] = field(default_factory=dict)
    histories: dict[tuple[str, str], list[tuple[Any, ...]]] = field(default_factory=dict)

    def source_tuples(self, source: str, name: str) -> list[tuple[Any, ...]]:
        """Returns what the stock saver loads of a case in the store where it ran, asked once: no copy changes it."""
        if (source, name) not in self.tuples:
            self.tuples[source, name] = tuples(self.savers[source], CATALOG[name].thread)
        return self.tuples[source, name]

    def source_history(self, source: str, name: str) -> list[tuple[Any, ...]]:
        """Returns the history that a case's own graph tells where it ran, asked once: no copy changes it."""
        if (source, name) not in self.histories:
            self.histories[source, name] = history(self.graphs[source, name], CATALOG[name].thread)
        return self.histories[source, name]

    def copied(self, direction: str) -> dict[str, CopyReport]:
        """Copies all threads in one transaction, once a direction; returns the reports by case."""
        if direction not in self.reports:
            source, target = (DIRECTIONS | MASKED)[direction]
            with ExitStack() as stack:
                reader, writer = open_reader(self.urls[source]), open_writer(self.urls[target])
                stack.callback(reader.close)
                if direction in MASKED:
                    masker = Masker(rules_of(MaskSettings()), Key(bytes(32)))
                    reader = masked(reader, lambda: masker, trusts_marks=True)
                stack.callback(writer.close)
                plans = []
                for name in NAMES:
                    thread = CATALOG[name].thread
                    head = reader.rows(thread)[0].id
                    plans.append(for_copy(reader, thread, "", head, "all", f"{thread} {direction}"))
                self.reports[direction] = dict(zip(NAMES, copy(reader, writer, plans), strict=True))
        return self.reports[direction]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Stores]:
    folder: Path = tmp_path_factory.mktemp("copies")
    with ExitStack() as stack:
        urls = {
            "sqlite": str(folder / "source.sqlite"),
            "other sqlite": str(folder / "target.sqlite"),
            "postgres": stack.enter_context(new_database(postgres_url)),
            "other postgres": stack.enter_context(new_database(postgres_url)),
        }
        savers = {name: stack.enter_context(stock_saver(url)) for name, url in urls.items()}
        graphs = {
            (kind, name): run_case(CATALOG[name], savers[kind]) for kind in ("sqlite", "postgres") for name in NAMES
        }
        yield Stores(urls, savers, graphs)


@pytest.mark.parametrize("direction", DIRECTIONS | MASKED)
def test_the_stock_saver_loads_a_copy_as_it_loads_the_source(stores: Stores, direction: str) -> None:
    source, target = (DIRECTIONS | MASKED)[direction]
    for name, report in stores.copied(direction).items():
        expected = stores.source_tuples(source, name)
        found = tuples(stores.savers[target], report.target.thread)
        if (source, target) in (("sqlite", "other postgres"), ("postgres", "other sqlite")):
            expected, found = without_repeated_snapshots(expected), without_repeated_snapshots(found)
        assert expected == found, name
        assert report.verified
        assert report.n_checkpoints == len(expected), name


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_history_of_a_copy_equals_its_source_at_every_checkpoint(stores: Stores, direction: str) -> None:
    source, target = DIRECTIONS[direction]
    for name, report in stores.copied(direction).items():
        graph = CATALOG[name].build(stores.savers[target])
        assert history(graph, report.target.thread) == stores.source_history(source, name), name
