"""From a wrong answer to a verdict, command by command, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.postgres.reading_role import reading_role
from tests.support.incidents import seeded_store
from tests.support.processes import Shell
from tests.support.wheel import build_wheel, install_wheel

DIAGNOSE = "--check 'reply contains no refund' --patch lookup_order:status='\"lost\"'"
EXPORT = "agentctl export debug::support-stale-order.fork-1 --dataset refunds --format jsonl"

pytestmark = pytest.mark.real_process


def test_the_whole_path_from_the_wheel_in_an_empty_folder(tmp_path: Path) -> None:
    program = install_wheel(build_wheel(tmp_path / "dist"), tmp_path / "venv")
    work = tmp_path / "work"
    work.mkdir()
    toured = Shell(work, (str(program),)).type("agentctl tour --workflow support_refunds --json").ok().json
    assert (toured["n_total"], len(toured["items"])) == (8, 8)
    assert all((item["verdict"], item["problem"]) == (item["expected"], "") for item in toured["items"])
    assert toured["side_effects"]["escaped"] == 0
    assert (toured["backoffice_unchanged"], toured["store_unchanged"]) == (True, True)

    assert toured["commands"][0] == "cd agentctl-tour"
    shell = Shell(work / "agentctl-tour", (str(program),))
    production = str(shell.cwd / ".agentctl" / "tour" / "prod.sqlite")
    before = fingerprint(production)
    _looks_around(shell, "prod::")
    _diagnoses(shell, "prod::")
    _keeps_it(shell)
    assert fingerprint(production) == before


def test_the_same_path_on_postgres_as_a_role_that_may_only_select(tmp_path: Path, fresh_postgres_url: str) -> None:
    with seeded_store(tmp_path, fresh_postgres_url) as production, reading_role(fresh_postgres_url) as reading:
        assert reading is not None
        before, counters = fingerprint(fresh_postgres_url), production.backoffice.counters()
        shell = Shell(
            tmp_path, variables={"AGENTCTL_STORE": reading, "SUPPORT_BACKOFFICE_URL": production.backoffice.url}
        )
        _looks_around(shell, "")
        _diagnoses(shell, "")
        _keeps_it(shell)
        assert fingerprint(fresh_postgres_url) == before
        assert production.backoffice.counters() == counters
        assert production.backoffice.alerts() == []
        spelt_out = shell.type(f"agentctl history support-stale-order --store '{reading}' --json").ok().json
        assert "agentctl_reader" in spelt_out["store"]
        assert "***" in spelt_out["store"]


def _looks_around(shell: Shell, prefix: str) -> None:
    """Finds the thread, lists its checkpoints and reads what was said."""
    found = shell.type(f"agentctl threads {prefix} --where user_id=u-1042 --json").ok().json
    assert [item["thread"] for item in found["items"]] == ["support-stale-order"]
    listed = shell.type(f"agentctl history {prefix}support-stale-order --json").ok().json
    wrote = [item["wrote"] for item in listed["items"]]
    assert wrote == [["refunds_agent"], ["tools"], ["refunds_agent"], ["triage"], ["__start__"], []]
    said = shell.type(f"agentctl show {prefix}support-stale-order --messages").ok().out
    assert "I want my money back" in said
    assert "No refund is due" in said


def _diagnoses(shell: Shell, prefix: str) -> None:
    done = shell.type(f"agentctl diagnose {prefix}support-stale-order {DIAGNOSE} --json").ok()
    document: dict[str, Any] = done.json
    assert (document["replays"]["n"], document["replays"]["n_failed"]) == (5, 5)
    (fork,) = document["forks"]
    assert (fork["n"], fork["n_failed"], fork["n_undecided"]) == (5, 0, 0)
    assert {run["reply"] for run in fork["runs"]} == {"Your refund of 120.00 EUR for order A1042 is on its way."}
    assert document["verdict"] == "tool_data"
    (change,) = document["cause"]["substituted"]
    assert (change["call"]["name"], document["cause"]["fields"]) == ("lookup_order", ["status"])
    assert (document["side_effects"]["escaped"], document["side_effects"]["live"]) == (0, 0)


def _keeps_it(shell: Shell) -> None:
    """Exports the fork, and reads the example as a program would."""
    assert shell.type(f"{EXPORT} --json").ok().json["n_examples"] == 1
    lines = (shell.cwd / "datasets" / "refunds" / "examples.jsonl").read_text(encoding="utf-8").splitlines()
    (example,) = [json.loads(line) for line in lines]
    assert "Your refund of 120.00 EUR" in json.dumps(example["outputs"])
    assert "support-stale-order" in json.dumps(example["metadata"]["source"])
