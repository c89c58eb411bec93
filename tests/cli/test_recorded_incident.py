"""A production incident replayed with no model: the recorded answers of its thread stand for it, on either store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.testing import run_cli
from tests.support.incidents import SUPPORT, SeededStore, seeded_store

THREAD = "support-stale-order"
NO_MODEL = ("--model", "recorded", "--json")


@pytest.fixture(params=["sqlite", "postgres"])
def production(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SeededStore]:
    url = str(request.getfixturevalue("fresh_postgres_url")) if request.param == "postgres" else ""
    with seeded_store(tmp_path / "shop", url, SUPPORT, only=["stale-order"], n_ordinary=0) as seeded:
        yield seeded


def _run(verb: str, at: str, *words: str, production: SeededStore) -> tuple[int, dict[str, Any]]:
    target = f"{production.profile}::{at}" if production.profile else at
    done = run_cli(verb, target, *words, *NO_MODEL, cwd=production.folder)
    (run,) = done.json["runs"]
    return done.code, run


def test_it_comes_to_its_reply_and_a_fork_stops_where_the_model_would_be_told(
    production: SeededStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {**production.environ, "AGENTCTL_STORE": production.url, "AGENTCTL_MODEL": "nobody:nothing"}
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)

    code, run = _run("replay", f"{THREAD}@after:triage", production=production)
    assert (code, run["status"]) == (0, "done")
    assert run["reply"].startswith("No refund is due on order A1042")
    assert run["usage"]["model_calls"] == run["usage"]["recorded"] == 2

    code, run = _run("replay", f"{THREAD}@root", production=production)
    assert (code, run["status"]) == (5, "blocked")
    assert "triage stored no message of its model" in run["error"]

    code, run = _run("fork", THREAD, "--patch", 'lookup_order:status="lost"', production=production)
    assert (code, run["status"]) == (5, "blocked")
    assert "the result of lookup_order, is not as recorded" in run["error"]
