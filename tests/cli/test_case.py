"""`agentctl case`."""

from __future__ import annotations

import sqlite3

from tests.support.cli import AGENT, PATCH, Cli


def rows_of(cli: Cli, thread: str) -> int:
    with sqlite3.connect(cli.cwd / "debug" / "debug.sqlite") as database:
        (n,) = database.execute("SELECT count(*) FROM checkpoints WHERE thread_id = ?", (thread,)).fetchone()
    database.close()
    return int(n)


def test_a_case_opens_by_itself_and_keeps_the_evidence_when_it_is_closed(cli: Cli) -> None:
    assert cli("replay", f"{AGENT}@before:tools").code == 0
    assert cli("fork", AGENT, "--patch", PATCH).code == 0
    listed = cli("case", "list", "--json").json
    assert [(item["case"], item["state"], item["n_runs"]) for item in listed["items"]] == [("support-17", "open", 2)]
    shown = cli("case", "show", "support-17", terminal=True).out.splitlines()
    assert shown[0].startswith("support-17  open  opened ")
    assert f"debug    debug::{AGENT}.replay-1" in shown
    assert any(line.startswith("report   ") and line.endswith("001-replay.json") for line in shown)
    closed = cli("case", "close", "support-17", "--conclusion", "stale replica", "--json")
    assert (closed.code, closed.json["state"], closed.json["conclusion"]) == (0, "closed", "stale replica")
    assert all(thread["deleted_at"] for thread in closed.json["threads"])
    assert (rows_of(cli, f"{AGENT}.replay-1"), rows_of(cli, f"{AGENT}.fork-1")) == (0, 0)
    assert len(closed.json["reports"]) == 2
    assert cli("case", "close", "support-17").code == 5


def test_a_dry_run_says_what_would_be_deleted(cli: Cli) -> None:
    assert cli("replay", f"{AGENT}@before:tools").code == 0
    told = cli("case", "close", "support-17", "--dry-run", terminal=True)
    assert told.code == 0
    assert f"debug    debug::{AGENT}.replay-1  would be deleted" in told.out.splitlines()
    assert rows_of(cli, f"{AGENT}.replay-1") > 0
    assert cli("case", "show", "support-17", "--json").json["state"] == "open"
    assert cli("case", "close", "support-17", "--dry-run", "--json").json["dry_run"] is True


def test_a_thread_that_the_case_did_not_make_stays(cli: Cli) -> None:
    """Someone else's thread came to have the name of one that the case had made."""
    assert cli("replay", f"{AGENT}@before:tools").code == 0
    with sqlite3.connect(cli.cwd / "debug" / "debug.sqlite") as database:
        database.execute("DELETE FROM checkpoints")
        database.execute("DELETE FROM writes")
    database.close()
    assert cli("copy", AGENT, "--as", f"{AGENT}.replay-1").code == 0
    refused = cli("case", "close", "support-17")
    assert (refused.code, refused.out) == (5, "")
    assert "was not made by case support-17" in refused.err
    assert rows_of(cli, f"{AGENT}.replay-1") > 0
    assert cli("case", "show", "support-17", "--json").json["state"] == "open"
    assert cli("case", "close", "support-17", "--dry-run").code == 5


def test_a_debug_profile_that_leads_elsewhere_now_is_refused(cli: Cli) -> None:
    assert cli("replay", f"{AGENT}@before:tools").code == 0
    other = cli.cwd / "debug" / "other.sqlite"
    assert cli("copy", AGENT, "--debug-store", other, "--as", f"{AGENT}.replay-1").code == 0
    refused = cli("case", "close", "support-17", "--debug-store", other)
    assert refused.code == 5
    assert f"was made in {cli.cwd / 'debug' / 'debug.sqlite'}" in refused.err
    assert cli("case", "close", "support-17").code == 0


def test_a_case_whose_store_is_gone_can_be_closed(cli: Cli) -> None:
    assert cli("replay", f"{AGENT}@before:tools").code == 0
    for file in (cli.cwd / "debug").glob("debug.sqlite*"):
        file.unlink()
    assert cli("case", "close", "support-17", "--json").json["state"] == "closed"
    assert not (cli.cwd / "debug" / "debug.sqlite").exists()


def test_open_list_and_names(cli: Cli) -> None:
    assert cli("case", "list", terminal=True).out.startswith("no cases in ")
    opened = cli("case", "open", "INC-31", "--reason", "refund refused", terminal=True)
    assert opened.out.splitlines()[0] == "INC-31  open  opened 0s ago"
    assert cli("case", "list").rows[0][:2] == ["INC-31", "open"]
    assert cli("replay", f"{AGENT}@before:tools", "--case", "INC-31", "--json").json["case"] == "INC-31"
    missing = cli("case", "show", "INC-32")
    assert missing.code == 3
    assert missing.err.splitlines()[-1] == "hint: did you mean INC-31?"
    assert cli("case", "open", "../x").code == 2
    assert cli("case").code == 2
