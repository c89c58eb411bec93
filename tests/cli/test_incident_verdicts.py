"""Incidents and their variants end in the verdict that they were written for.

All of them on SQLite. On Postgres one of each verdict that a fork's outcome decides, which is what a store has a part
in, and one of each workflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from agentctl.stores.fingerprint import fingerprint
from agentctl.testing import run_cli
from tests.support.incidents import WORKFLOWS, SeededStore, experiments, seeded_store

EXPERIMENTS = {workflow: experiments(workflow) for workflow in WORKFLOWS}
VARIANT = re.compile(r"-\d+$")
STORES = ("sqlite", "postgres")
PERSONAL = "loan_underwriting"
"""The workflow whose threads hold names, addresses and numbers of people."""
WHATEVER_THE_STORE = ("nondeterminism", "model_or_prompt")


def _on_postgres() -> dict[str, list[str]]:
    """Returns incidents by workflow: those whose verdict no workflow before has, or the first there is."""
    chosen: dict[str, list[str]] = {}
    covered: set[str] = set(WHATEVER_THE_STORE)
    for workflow in WORKFLOWS:
        verdicts = {
            name: experiment.expected["verdict"]
            for name, (_, experiment) in EXPERIMENTS[workflow].items()
            if not VARIANT.search(name) and experiment.expected["verdict"] not in WHATEVER_THE_STORE
        }
        first_of = {verdict: name for name, verdict in reversed(verdicts.items())}
        chosen[workflow] = [name for verdict, name in first_of.items() if verdict not in covered] or [
            next(iter(verdicts))
        ]
        covered.update(first_of)
    return chosen


ON_POSTGRES = _on_postgres()


def _cases() -> Iterator[Any]:
    for workflow in WORKFLOWS:
        for store, names in (("sqlite", EXPERIMENTS[workflow]), ("postgres", ON_POSTGRES[workflow])):
            # One production store serves every experiment of its group, which one process runs.
            group = pytest.mark.xdist_group(f"verdicts-{workflow}-{store}")
            for name in names:
                yield pytest.param(store, workflow, name, marks=group)


Open = Callable[[str, str], SeededStore]


@pytest.fixture(scope="session")
def production(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Open]:
    """Opens the production store of a workflow, seeded once."""
    from tests.support.postgres import new_database

    opened: dict[tuple[str, str], SeededStore] = {}
    with ExitStack() as stack:

        def open_(store: str, workflow: str) -> SeededStore:
            if (store, workflow) not in opened:
                url = stack.enter_context(new_database(postgres_url)) if store == "postgres" else ""
                folder = tmp_path_factory.mktemp("production")
                only = ON_POSTGRES[workflow] if url else None
                seeding = seeded_store(folder, url, workflow, only=only, n_ordinary=1)
                opened[store, workflow] = stack.enter_context(seeding)
            return opened[store, workflow]

        yield open_


@pytest.mark.parametrize(("store", "workflow", "name"), tuple(_cases()))
def test_the_verdict_is_the_one_the_incident_was_written_for(
    production: Open, store: str, workflow: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentctl.stores.postgres.reading_role import reading_role

    thread, experiment = EXPERIMENTS[workflow][name]
    # Two that all fail, or the least that can be significant; chance needs the runs that the incident asks for.
    least = 2 if experiment.expected["verdict"] == "model_or_prompt" else 4
    experiment = replace(experiment, n=min(experiment.n, least)) if experiment.n <= 5 else experiment
    seeded = production(store, workflow)
    for variable, value in seeded.environ.items():
        monkeypatch.setenv(variable, value)
    before, counters = fingerprint(seeded.url), seeded.counters()
    command = ["diagnose", *experiment.arguments(seeded.profile, thread), "--json"]
    if seeded.profile:
        done = run_cli(*command, cwd=seeded.folder)
    else:
        with reading_role(seeded.url) as url:
            assert url is not None
            monkeypatch.setenv("AGENTCTL_STORE", url)
            done = run_cli(*command, cwd=seeded.folder)

    document = done.json
    assert "verdict" in document, document
    assert document["verdict"] == experiment.expected["verdict"]
    assert done.code == (1 if document["verdict"] == "inconclusive" else 0)
    if "call" in experiment.expected:
        (change,) = document["cause"]["substituted"]
        assert change["call"]["name"] == experiment.expected["call"]
        assert document["cause"]["fields"] == experiment.expected["fields"]
    effects = document["side_effects"]
    assert (effects["escaped"], effects["blocked"]) == (0, 0)
    assert (effects["live"] > 0) == ("--live-reads" in experiment.flags)
    assert fingerprint(seeded.url) == before
    after = seeded.counters()
    assert after["n_effects"] == counters["n_effects"]
    if "--live-reads" not in experiment.flags:
        assert after == counters
    assert seeded.backoffice.alerts() == []


@pytest.mark.parametrize(
    "store", [pytest.param(store, marks=pytest.mark.xdist_group(f"verdicts-{PERSONAL}-{store}")) for store in STORES]
)
def test_a_masked_incident_ends_in_the_same_verdict(
    production: Open, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, experiment = EXPERIMENTS[PERSONAL]["stale-bureau"]
    seeded = production(store, PERSONAL)
    for variable, value in seeded.environ.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("AGENTCTL_STORE", seeded.url)
    done = run_cli("diagnose", *experiment.arguments(seeded.profile, thread), "--mask", "--json", cwd=seeded.folder)
    assert done.json["verdict"] == experiment.expected["verdict"]
    assert done.json["masking"]["values"]
    assert (done.json["side_effects"]["escaped"], done.json["side_effects"]["blocked"]) == (0, 0)
