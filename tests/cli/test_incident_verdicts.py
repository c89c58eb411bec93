"""Incidents and their variants end in the verdict that they were written for.

All of them on SQLite; on Postgres those whose fork changes the outcome, which is what a store has a part in.
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
from tests.support.incidents import SUPPORT, WORKFLOWS, SeededStore, experiments, seeded_store

EXPERIMENTS = {workflow: experiments(workflow) for workflow in WORKFLOWS}
VARIANT = re.compile(r"-\d+$")
WHATEVER_THE_STORE = ("nondeterminism", "model_or_prompt")


def _cases() -> Iterator[Any]:
    for workflow in WORKFLOWS:
        for store in ("sqlite", "postgres"):
            # One production store serves every experiment of its group, which one process runs.
            group = pytest.mark.xdist_group(f"verdicts-{workflow}-{store}")
            for name, (_, experiment) in EXPERIMENTS[workflow].items():
                of_the_store = experiment.expected["verdict"] not in WHATEVER_THE_STORE
                if store == "sqlite" or (of_the_store and not VARIANT.search(name)):
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
                opened[store, workflow] = stack.enter_context(seeded_store(folder, url, workflow))
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


def _stores() -> Iterator[Any]:
    for store in ("sqlite", "postgres"):
        yield pytest.param(store, marks=pytest.mark.xdist_group(f"verdicts-{SUPPORT}-{store}"))


@pytest.mark.parametrize("store", tuple(_stores()))
def test_an_incident_comes_to_its_reply_without_a_model(
    production: Open, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded = production(store, SUPPORT)
    environ = {**seeded.environ, "AGENTCTL_STORE": seeded.url, "AGENTCTL_MODEL": "nobody:nothing"}
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    where = f"{seeded.profile}::support-stale-order" if seeded.profile else "support-stale-order"
    given = ("--model", "recorded", "--isolation", "off", "--json")

    done = run_cli("replay", f"{where}@after:triage", *given, cwd=seeded.folder)
    assert done.code == 0, done.out + done.err
    (run,) = done.json["runs"]
    assert run["reply"].startswith("No refund is due on order A1042")
    assert run["usage"]["model_calls"] == run["usage"]["recorded"] == 2

    done = run_cli("replay", f"{where}@root", *given, cwd=seeded.folder)
    (run,) = done.json["runs"]
    assert (done.code, run["status"]) == (5, "blocked")
    assert "triage stored no message of its model" in run["error"]

    form = ("--patch", 'lookup_order:status="lost"')
    done = run_cli("fork", where, *form, *given, cwd=seeded.folder)
    (run,) = done.json["runs"]
    assert (done.code, run["status"]) == (5, "blocked")
    assert "the result of lookup_order, is not as recorded" in run["error"]
