"""Every incident, and every variant of it, ends in the verdict that it was written for, on both stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentctl.stores.fingerprint import fingerprint
from agentctl.testing import run_cli
from tests.support.incidents import SeededStore, experiments, seeded_store

EXPERIMENTS = experiments()


@pytest.fixture(scope="session")
def sqlite_production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededStore]:
    with seeded_store(tmp_path_factory.mktemp("production")) as store:
        yield store


@pytest.fixture(scope="session")
def postgres_production(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[SeededStore]:
    from tests.support.postgres import new_database

    with new_database(postgres_url) as url, seeded_store(tmp_path_factory.mktemp("production"), url) as store:
        yield store


@pytest.fixture(params=["sqlite", "postgres"])
def production(request: pytest.FixtureRequest) -> SeededStore:
    store: SeededStore = request.getfixturevalue(f"{request.param}_production")
    return store


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_verdict_is_the_one_the_incident_was_written_for(
    production: SeededStore, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentctl.stores.postgres.reading_role import reading_role

    thread, experiment = EXPERIMENTS[name]
    monkeypatch.setenv("SUPPORT_BACKOFFICE_URL", production.backoffice.url)
    before, counters = fingerprint(production.url), production.backoffice.counters()
    command = ["diagnose", *experiment.arguments(production.profile, thread), "--json"]
    if production.profile:
        done = run_cli(*command, cwd=production.folder)
    else:
        with reading_role(production.url) as url:
            assert url is not None
            monkeypatch.setenv("AGENTCTL_STORE", url)
            done = run_cli(*command, cwd=production.folder)

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
    assert fingerprint(production.url) == before
    after = production.backoffice.counters()
    assert after["n_effects"] == counters["n_effects"]
    if "--live-reads" not in experiment.flags:
        assert after == counters
    assert production.backoffice.alerts() == []
