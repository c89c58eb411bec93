"""Links, pipes and names that lead a command's files somewhere else."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentctl.casebook.cases import open_case
from agentctl.errors import Refused, StoreError
from agentctl.experiments.workflows.thread_locks import Holder, only_run
from agentctl.testing import run_cli
from tests.support.cli import EDITED, Cli

HELD = "what somebody else keeps\n"
NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder that nothing may be written into, with a file that nothing may change."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "held").write_text(HELD)
    return folder


def untouched(folder: Path) -> bool:
    return {path.name: path.read_text() for path in folder.iterdir()} == {"held": HELD}


@pytest.mark.parametrize("name", ["runs.jsonl", "calls.jsonl", "threads.jsonl", ".lock", "recording.json", "case.json"])
def test_a_link_in_a_case_is_not_written_through(cli: Cli, tmp_path: Path, elsewhere: Path, name: str) -> None:
    cli("case", "open", "c", "--debug-store", tmp_path / "debug.sqlite")
    case = tmp_path / "cases" / "c"
    (case / name).unlink(missing_ok=True)
    (case / name).symlink_to(elsewhere / "held")
    for words in (("case", "open", "c", "--reason", "again"), ("case", "show", "c"), ("case", "close", "c")):
        done = cli(*words, "--debug-store", tmp_path / "debug.sqlite")
        assert "Traceback" not in done.err
    assert untouched(elsewhere)


def test_a_link_in_the_place_of_the_reports_is_refused(tmp_path: Path, elsewhere: Path) -> None:
    from agentctl.casebook.ledger import add_report

    case = open_case(tmp_path / "cases", "c", now=NOW)
    (case.folder / "reports").rmdir()
    (case.folder / "reports").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="reports is a link"):
        add_report(case, "replay", {})
    assert untouched(elsewhere)


def test_a_file_that_was_put_where_a_document_is_made_leads_nowhere(tmp_path: Path, elsewhere: Path) -> None:
    case = open_case(tmp_path / "cases", "c", now=NOW)
    (case.folder / f".case.json.{os.getpid()}").symlink_to(elsewhere / "held")
    open_case(tmp_path / "cases", "c", now=NOW, reason="again")
    assert untouched(elsewhere)


def test_a_pipe_in_a_case_is_not_waited_for(cli: Cli, tmp_path: Path) -> None:
    cli("case", "open", "c", "--debug-store", tmp_path / "debug.sqlite")
    os.mkfifo(tmp_path / "cases" / "c" / "runs.jsonl")
    shown = cli("case", "show", "c", "--debug-store", tmp_path / "debug.sqlite")
    assert shown.code == 4
    assert "runs.jsonl is a link or a device, not a plain file" in shown.err


@pytest.mark.parametrize("linked", ["datasets/refunds", "datasets/refunds/examples.jsonl"])
def test_a_link_in_a_dataset_is_not_written_through(cli: Cli, tmp_path: Path, elsewhere: Path, linked: str) -> None:
    (elsewhere / "held").write_text("")
    (tmp_path / linked).parent.mkdir(parents=True)
    (tmp_path / linked).symlink_to(elsewhere if linked.endswith("refunds") else elsewhere / "held")
    words = ("export", f"prod::{EDITED}", "--dataset", "refunds", "--check", "reply contains no refund")
    done = cli(*words)
    assert "Traceback" not in done.err
    assert done.code == (4 if linked.endswith("refunds") else 0)
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {"held": ""}


@pytest.mark.parametrize("name", ["../x", "/x", "..", ".", "", "a/b", "a\nb", "CON/../x", "x" * 200, "\u0430bc", "-rf"])
def test_a_dataset_and_a_case_have_plain_names(cli: Cli, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    told = cli("export", f"prod::{EDITED}", f"--dataset={name}", "--check", "reply contains no refund")
    assert told.code == 2 and "Traceback" not in told.err
    told = cli("case", "open", "--", name)
    assert told.code == 2 and "Traceback" not in told.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("plant", ["link", "hard link", "pipe"])
def test_a_lock_of_a_run_empties_no_file_that_stands_in_its_place(tmp_path: Path, elsewhere: Path, plant: str) -> None:
    store, holder = tmp_path / "prod.sqlite", Holder("ada", "run", NOW)
    store.touch()
    with only_run(str(store), "t", holder, target="t"):
        (lock,) = tmp_path.glob("prod.sqlite-run-*")
    match plant:
        case "link":
            lock.symlink_to(elsewhere / "held")
        case "hard link":
            lock.hardlink_to(elsewhere / "held")
        case _:
            os.mkfifo(lock)
    with pytest.raises((StoreError, Refused), match="cannot be locked"), only_run(str(store), "t", holder, target="t"):
        pass
    assert untouched(elsewhere)


@pytest.mark.parametrize("store", ["pipe", "/dev/zero", "/dev/stdin", "x\0y"])
def test_a_store_that_is_no_plain_file_is_not_waited_for(tmp_path: Path, store: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    told = run_cli("threads", "--store", store, "--json", cwd=tmp_path)
    assert told.code == 4
    assert json.loads(told.out)["error"]["kind"] == "store"
