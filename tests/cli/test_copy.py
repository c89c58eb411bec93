"""`agentctl copy`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import AGENT, EDITED, Cli


def test_a_copy_keeps_ids_and_says_where_it_is(cli: Cli) -> None:
    done = cli("copy", EDITED, "--reason", "INC-31", terminal=True)
    assert done.code == 0
    out = cli.named(done.out, EDITED).splitlines()
    assert out[0].startswith("copied   id-00008 -> debug: 8 checkpoints, ") and out[0].endswith(", verified")
    assert out[1:] == [
        "thread   debug::support-18.copy-1@<id 8>",
        "next     agentctl history debug::support-18.copy-1",
    ]
    copied = cli("history", "debug::support-18.copy-1", "--json").json
    assert [item["id"] for item in copied["items"]] == [id for i, id in enumerate(cli.ids(EDITED)) if i != 4]
    metadata = cli("threads", "debug::", "--json").json["items"][0]["metadata"]
    assert metadata["agentctl_reason"] == "INC-31"
    assert metadata["agentctl_origin"].startswith("prod::support-18@")


def test_scopes(cli: Cli) -> None:
    counts = {scope: cli("copy", EDITED, "--only", scope, "--json").json["n_checkpoints"] for scope in ("all", "point")}
    assert counts == {"all": 9, "point": 1}


def test_a_dry_run_writes_nothing(cli: Cli) -> None:
    done = cli("copy", EDITED, "--dry-run", "--json")
    assert (done.code, done.json["dry_run"], done.json["verified"]) == (0, True, False)
    assert list((cli.cwd / "debug").iterdir()) == []
    assert "not written" in cli("copy", EDITED, "--dry-run", terminal=True).out


def test_the_document(cli: Cli, tmp_path: Path) -> None:
    document = cli("copy", AGENT, "--to", tmp_path / "other.sqlite", "--as", "mine", "--json").json
    assert document["schema"] == "agentctl.copy/1"
    assert document["target"]["thread"] == "mine"
    assert document["target"]["store"] == str(tmp_path / "other.sqlite")
    assert document["masked"] is False and document["warnings"] == []
    assert document["n_bytes"] > 0


def test_the_source_stays_as_it_is(cli: Cli) -> None:
    before = {file.name: file.read_bytes() for file in cli.prod.parent.iterdir()}
    assert cli("copy", EDITED, "--only", "all").code == 0
    assert {file.name: file.read_bytes() for file in cli.prod.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("args", "code", "message", "hint"),
    [
        ([AGENT, "--to", "prod"], 5, "profile prod has access: read", "--to debug"),
        ([AGENT, "--only", "some"], 2, "--only some", "one of: lineage, all, point"),
        ([f"{AGENT}@step:9"], 3, "there is no step 9", ""),
    ],
)
def test_refusals(cli: Cli, args: list[str], code: int, message: str, hint: str) -> None:
    failed = cli("copy", *args)
    assert (failed.code, failed.out) == (code, "")
    assert message in failed.err and hint in failed.err


def test_the_source_store_is_never_the_target(cli: Cli) -> None:
    failed = cli("copy", AGENT, "--to", cli.prod)
    assert failed.code == 5
    assert "access: read" in failed.err


def test_a_thread_that_exists_is_not_written_into(cli: Cli) -> None:
    assert cli("copy", AGENT, "--as", "mine").code == 0
    again = cli("copy", AGENT, "--as", "mine", "--json")
    assert (again.code, again.json["error"]["kind"]) == (5, "refused")


@pytest.mark.parametrize("command", ["copy", "replay", "fork", "diagnose", "export"])
def test_nothing_leaves_a_profile_unmasked_whose_copies_must_be_masked(cli: Cli, command: str) -> None:
    (cli.cwd / "vault.sqlite").write_bytes(cli.prod.read_bytes())
    more = ["--dataset", "d"] if command == "export" else []
    for target in ([f"vault::{AGENT}"], [AGENT, "--store", "vault.sqlite"]):
        refused = cli(command, *target, "--no-mask", *more)
        assert (refused.code, refused.out) == (5, "")
        assert "has mask: always: nothing is copied out of it unmasked" in refused.err
    assert list((cli.cwd / "debug").iterdir()) == []
    assert cli("history", f"vault::{AGENT}").code == 0
